// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/remote/device.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/remote/partition.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

namespace catena::device::remote {
namespace {

Status server_is_gone() { return absl::UnavailableError("the device server is gone"); }

void ring(int notifier) {
  const std::uint64_t one = 1;
  static_cast<void>(write(notifier, &one, sizeof one));  // full: it rings already
}

}  // namespace

ipc::Reader Connection::Answer::body() const {
  ipc::Reader body(frame.body);
  static_cast<void>(body.take_status());
  return body;
}

Result<std::shared_ptr<Connection>> Connection::create(FileDescriptor socket, ipc::Mapping page, DeviceInfo& info) {
  std::shared_ptr<Connection> connection(new Connection(std::move(socket), std::move(page)));
  CATENA_RETURN_IF_ERROR(connection->hello(info));
  connection->free_slots_.resize(kTimeSlots);
  for (std::uint32_t slot = 0; slot < kTimeSlots; ++slot) {
    connection->free_slots_[slot] = kTimeSlots - 1 - slot;
  }
  connection->watcher_ = std::thread([raw = connection.get()] { raw->watch(); });
  return connection;
}

Status Connection::hello(DeviceInfo& info) {
  leaving_ = FileDescriptor(eventfd(0, EFD_CLOEXEC));
  notifier_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (page_.bytes().empty()) {
    CATENA_ASSIGN_OR_RETURN(page_, make_client_page());
  }
  if (page_.bytes().size() < sizeof(ClientPage)) {
    return absl::InvalidArgumentError("the memory is too small for a client of a device server");
  }
  if (!leaving_ || !notifier_) {
    return absl::ResourceExhaustedError("no descriptor is left for a connection to a device server");
  }
  // three descriptors change hands, one with each frame: the page and the notifier go there, the pidfd comes back
  CATENA_RETURN_IF_ERROR(ipc::send_frame(socket_.get(), static_cast<std::uint32_t>(Call::kHello),
                                         ipc::Writer().put(kVersion).bytes(), page_.fd()));
  CATENA_RETURN_IF_ERROR(ipc::send_frame(socket_.get(), static_cast<std::uint32_t>(Call::kHello), {}, notifier_.get()));
  CATENA_ASSIGN_OR_RETURN(ipc::Frame frame, ipc::receive_frame(socket_.get(), kMaxFrameBytes));
  ipc::Reader body(frame.body);
  CATENA_RETURN_IF_ERROR(body.take_status());
  info.backend = body.take_text();
  info.name = body.take_text();
  info.driver = body.take_text();
  info.target = body.take_text();
  info.compute_units = body.take<std::uint32_t>();
  info.memory_bytes = body.take<std::uint64_t>();
  info.local_memory_bytes = body.take<std::uint32_t>();
  info.max_group_size = body.take<std::uint32_t>();
  info.is_cpu = body.take<std::uint32_t>() != 0;
  info.ordinal = body.take<std::uint32_t>();
  info.has_turns = body.take<std::uint32_t>() != 0;
  server_ = std::move(frame.fd);
  return body.ok() && server_ ? absl::OkStatus()
                              : absl::UnavailableError("the peer is not a device server of this version");
}

Connection::~Connection() {
  ring(leaving_.get());
  if (watcher_.joinable()) {
    watcher_.join();
  }
}

/// Tells the device lost as soon as the server has ended, or has hung up. Of one that has ended all is gone, so that
/// nothing works on this process's memory any more; that is told by its process, and not by the socket.
void Connection::watch() {
  constexpr int kDying = 1000;  // ms from where the socket closes to where the process is gone
  std::array<pollfd, 3> fds{{{server_.get(), POLLIN, 0}, {leaving_.get(), POLLIN, 0}, {socket_.get(), POLLRDHUP, 0}}};
  while (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  if (fds[0].revents == 0 && fds[1].revents == 0) {
    fds[2].fd = -1;
    poll(fds.data(), fds.size(), kDying);
  }
  if (fds[0].revents != 0) {
    note_server_gone();
  } else if (fds[1].revents == 0) {
    health_.fail(absl::UnavailableError("the device server has hung up"));
  }
}

void Connection::note_server_gone() {
  is_server_gone_.store(true, std::memory_order_release);
  health_.fail(server_is_gone());
}

Result<Connection::Answer> Connection::call(Call call, ipc::Writer const& body, int fd) {
  CATENA_RETURN_IF_ERROR(failed());
  if (body.bytes().size() > kMaxFrameBytes) {
    return absl::InvalidArgumentError(
        concat("a call with ", body.bytes().size(), " bytes; a device server takes ", kMaxFrameBytes, " at most"));
  }
  const std::scoped_lock lock(calls_);
  Status status = ipc::send_frame(socket_.get(), static_cast<std::uint32_t>(call), body.bytes(), fd);
  if (status.ok()) {
    Result<ipc::Frame> frame = ipc::receive_frame(socket_.get(), std::numeric_limits<std::uint32_t>::max());
    if (frame.ok()) {
      CATENA_RETURN_IF_ERROR(ipc::Reader(frame->body).take_status());
      return Answer{*std::move(frame)};
    }
  }
  // it hung up; the watcher tells when it is gone altogether, and until then nobody else gets an answer either
  std::array<pollfd, 1> ended{{{server_.get(), POLLIN, 0}}};
  constexpr int kPatienceMs = 10'000;
  if (poll(ended.data(), ended.size(), kPatienceMs) == 1) {
    note_server_gone();
  }
  health_.fail(absl::UnavailableError("the device server has hung up"));
  return failed();
}

void Connection::free(Kind kind, std::uint32_t number) {
  if (!failed().ok()) {
    return;
  }
  const std::scoped_lock lock(calls_);
  const ipc::Writer body = ipc::Writer().put(kind).put(number);
  static_cast<void>(ipc::send_frame(socket_.get(), static_cast<std::uint32_t>(Call::kFree), body.bytes()));
}

void Connection::wake() {
  // the server says that it sleeps before it looks into the rings for the last time: one of both sees the other
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (page_.as<ClientPage>().server_sleeps.load(std::memory_order_relaxed) != 0) {
    ring(notifier_.get());
  }
}

Result<std::uint32_t> Connection::take_time_slot() {
  const std::scoped_lock lock(slots_mutex_);
  if (free_slots_.empty()) {
    return absl::ResourceExhaustedError(concat("more than ", kTimeSlots, " timestamps at a time"));
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  time(slot).store(kNotReached, std::memory_order_relaxed);
  return slot;
}

void Connection::give_time_slot(std::uint32_t slot) {
  const std::scoped_lock lock(slots_mutex_);
  free_slots_.push_back(slot);
}

void Connection::add_memory_range(std::uint32_t memory_range, std::span<const std::byte> bytes) {
  const std::unique_lock lock(memory_ranges_mutex_);
  memory_ranges_.push_back({bytes.data(), bytes.size(), memory_range});
}

void Connection::remove_memory_range(std::uint32_t memory_range) {
  {
    const std::unique_lock lock(memory_ranges_mutex_);
    std::erase_if(memory_ranges_, [memory_range](MemoryRange const& known) { return known.number == memory_range; });
  }
  free(Kind::kMemoryRange, memory_range);
}

std::optional<Connection::MemoryPlace> Connection::find(std::span<const std::byte> bytes) const {
  const std::shared_lock lock(memory_ranges_mutex_);
  for (MemoryRange const& memory_range : memory_ranges_) {
    // of two that have no bytes in common, at most one begins at or before the first byte and ends behind it
    const std::less_equal<const std::byte*> not_after;
    if (not_after(memory_range.begin, bytes.data()) &&
        not_after(bytes.data(), memory_range.begin + memory_range.bytes)) {
      const auto offset = static_cast<std::size_t>(bytes.data() - memory_range.begin);
      if (bytes.size() <= memory_range.bytes - offset) {
        return MemoryPlace{memory_range.number, offset};
      }
    }
  }
  return std::nullopt;
}

Result<std::vector<std::unique_ptr<Partition>>> RemoteDevice::divide(std::span<const std::uint32_t> compute_units) {
  ipc::Writer body;
  body.put(static_cast<std::uint32_t>(compute_units.size()));
  for (const std::uint32_t units : compute_units) {
    body.put(units);
  }
  CATENA_ASSIGN_OR_RETURN(const Connection::Answer answer, connection_->call(Call::kDivide, body));
  ipc::Reader reader = answer.body();
  std::vector<std::unique_ptr<Partition>> partitions;
  for (std::size_t i = 0; i < compute_units.size(); ++i) {
    const auto number = reader.take<std::uint32_t>();
    partitions.push_back(std::make_unique<RemotePartition>(connection_, number, reader.take<std::uint32_t>()));
  }
  return partitions;
}

Result<ipc::Mapping> make_client_page() { return ipc::Mapping::create("catena_device", sizeof(ClientPage)); }

Result<ipc::Mapping> map_client_page(FileDescriptor fd) { return ipc::Mapping::map(std::move(fd), sizeof(ClientPage)); }

Result<std::unique_ptr<Device>> connect(FileDescriptor socket, ipc::Mapping page) {
  DeviceInfo info;
  CATENA_ASSIGN_OR_RETURN(auto connection, Connection::create(std::move(socket), std::move(page), info));
  return std::make_unique<RemoteDevice>(std::move(connection), std::move(info));
}

}  // namespace catena::device::remote
