// SPDX-License-Identifier: Apache-2.0
#include "nca/stream.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <exception>
#include <new>
#include <system_error>

using catena::concat;
using catena::Status;

namespace catena::nca {
namespace {

constexpr std::align_val_t kAlignment{64};
/// Between two polls of the device. A buffer takes longer, and on a CPU the thread must not keep a core from it.
constexpr std::chrono::microseconds kPollInterval{20};

/// Longer waits would overflow the clock.
constexpr std::chrono::hours kLongestWait{24 * 365};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Sizes sizes_of(std::span<const nca_packet> packets, std::uint32_t max_length) {
  Sizes sizes;
  std::uint32_t end = 0;
  std::uint32_t bytes = 0;
  for (nca_packet const& packet : packets.first(std::min(packets.size(), Sizes::kPackets))) {
    if (packet.data == nullptr || packet.length == 0 || packet.length > max_length) {
      break;
    }
    sizes.ends[sizes.packets] = end += catena::kernel::PackedPackets::space_of(packet.length);
    sizes.bytes[sizes.packets] = bytes += packet.length;
    ++sizes.packets;
  }
  return sizes;
}

/// Without a text, which would take memory.
Status no_memory() { return {absl::StatusCode::kResourceExhausted, ""}; }

/// What `body` returns; what it throws becomes a status: nothing may leave the stream's thread.
template <typename Body>
auto caught(Body const& body) -> decltype(body()) {
  try {
    return body();
  } catch (std::bad_alloc const&) {
    return no_memory();
  } catch (std::exception const&) {
    return Status(absl::StatusCode::kInternal, "");
  }
}

/// While it is there signals go to other threads, those of the application.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(BlockedSignals const&) = delete;
  BlockedSignals& operator=(BlockedSignals const&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

AlignedMemory::AlignedMemory(std::size_t bytes)
    : memory_(static_cast<std::byte*>(::operator new(bytes, kAlignment))), size_(bytes) {}

void AlignedMemory::Free::operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }

}  // namespace catena::nca

catena::Result<std::unique_ptr<nca_stream>> nca_stream::create(nca_context& context,
                                                               std::vector<nca_function*> functions,
                                                               catena::nca::StreamShape const& shape,
                                                               nca_notify_callback notify, void* user) {
  std::unique_ptr<nca_stream> stream(new nca_stream(context, std::move(functions), shape, notify, user));
  CATENA_RETURN_IF_ERROR(stream->allocate());
  CATENA_RETURN_IF_ERROR(stream->start());
  return stream;
}

Status nca_stream::allocate() {
  std::vector<catena::kernel::DeviceNf const*> device_nfs;
  std::vector<catena::kernel::PackedLaunch::Nf> nfs;
  for (nca_function* function : functions_) {
    reads_headers_ = reads_headers_ || function->what->reads_headers();
    if (context_->device == nullptr) {
      CATENA_ASSIGN_OR_RETURN(auto worker, function->what->host_worker());
      workers_.push_back(std::move(worker));
    } else {
      device_nfs.push_back(function->device_nf.get());
      nfs.push_back({function->device_nf.get(), function->returns_spill});
    }
  }
  CATENA_ASSIGN_OR_RETURN(format_,
                          catena::kernel::PackedFormat::create(device_nfs, shape_.buffer_packets, shape_.buffer_bytes));
  for (catena::nca::BufferQueue* queue : {&free_, &handed_over_, &running_, &complete_}) {
    queue->reserve(shape_.buffers);
  }
  for (std::uint32_t i = 0; i < shape_.buffers; ++i) {
    auto buffer = std::make_unique<Buffer>();
    if (context_->device == nullptr) {
      buffer->memory = std::make_unique<catena::nca::AlignedMemory>(format_.batch_bytes());
      buffer->own_packets = std::make_unique<catena::kernel::PackedPackets>(
          format_, buffer->memory->bytes(), catena::kernel::PackedPackets::Reader::kHost);
      buffer->packets = buffer->own_packets.get();
    } else {
      CATENA_ASSIGN_OR_RETURN(buffer->launch, catena::kernel::PackedLaunch::create(*context_->device, nfs, format_));
      buffer->packets = &buffer->launch->packets();
    }
    buffer->accepted.resize(shape_.buffer_packets);
    buffer->tags.resize(shape_.buffer_packets);
    buffer->results.resize(functions_.size());
    buffer->views.resize(functions_.size());
    for (nca_function_results const& view : buffer->views) {
      buffer->view_pointers.push_back(&view);
    }
    buffers_.push_back(std::move(buffer));
    free_.push(*buffers_.back());
  }
  if (shape_.times && context_->device != nullptr) {
    CATENA_ASSIGN_OR_RETURN(const auto clock, buffers_.front()->launch->make_clock());
    for (auto const& buffer : buffers_) {
      buffer->launch->trace(clock);
    }
  }
  return absl::OkStatus();
}

Status nca_stream::start() {
  descriptor_ = ::eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor_ < 0) {
    return absl::ResourceExhaustedError("the process has no descriptor left for the stream");
  }
  const catena::nca::BlockedSignals blocked;
  try {
    thread_ = std::thread(&nca_stream::run, this);
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat("the stream gets no thread: ", error.what()));
  }
  return absl::OkStatus();
}

nca_stream::~nca_stream() {
  if (thread_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    work_.notify_all();
    thread_.join();
  }
  buffers_.clear();  // waits for the device
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

void nca_stream::close_open_buffer() noexcept {
  Buffer& buffer = *open_;
  open_ = nullptr;
  buffer.state = Buffer::kSubmitted;
  buffer.is_closed = true;
  buffer.number = next_number_++;
  ++counts_.buffers_handed_over;
  handed_over_.push(buffer);
  work_.notify_one();
}

nca_status nca_stream::refuse(nca_packet const& packet, std::size_t position) {
  return error_.set(NCA_ERROR_PACKET, packet.data == nullptr
                                          ? concat("packet ", position, " has no data")
                                          : concat("packet ", position, " has ", packet.length,
                                                   " bytes; the stream takes 1 to ", shape_.packet_bytes));
}

nca_status nca_stream::add(std::span<const nca_packet> packets, std::size_t& accepted) {
  accepted = 0;
  while (accepted < packets.size()) {
    const catena::nca::Sizes sizes = catena::nca::sizes_of(packets.subspan(accepted), shape_.packet_bytes);
    std::unique_lock lock(mutex_);
    if (failed_ != NCA_OK) {
      return error_.set(failed_, failure_);
    }
    if (sizes.packets == 0) {
      ++counts_.packets_refused;
      return refuse(packets[accepted], accepted);
    }
    if (open_ == nullptr) {
      if (free_.empty()) {
        counts_.packets_full += packets.size() - accepted;
        return NCA_ERROR_FULL;
      }
      open_ = &free_.pop();
      open_->state = Buffer::kOpen;
    }
    Buffer& buffer = *open_;
    const auto reservation = buffer.packets->reserve(std::span(sizes.ends).first(sizes.packets));
    if (reservation.packets > 0) {
      counts_.packets_accepted += reservation.packets;
      counts_.bytes_accepted += sizes.bytes[reservation.packets - 1];
      ++buffer.writers;
    }
    if (reservation.packets < sizes.packets || buffer.packets->count() == shape_.buffer_packets) {
      close_open_buffer();
    }
    lock.unlock();
    if (reservation.packets > 0) {
      write(buffer, reservation, packets.subspan(accepted, reservation.packets), sizes);
      accepted += reservation.packets;
    }
  }
  return NCA_OK;
}

/// Lengths are those of `sizes`, for which space is reserved. The caller's memory may say something else by now.
void nca_stream::write(Buffer& buffer, catena::kernel::PackedPackets::Reservation const& reservation,
                       std::span<const nca_packet> packets, catena::nca::Sizes const& sizes) {
  for (std::uint32_t i = 0; i < reservation.packets; ++i) {
    nca_packet const& packet = packets[i];
    const std::uint32_t row = reservation.first_row + i;
    const std::uint32_t begin = reservation.begin + (i == 0 ? 0 : sizes.ends[i - 1]);
    const std::uint32_t length = sizes.bytes[i] - (i == 0 ? 0 : sizes.bytes[i - 1]);
    const auto* data = static_cast<const std::uint8_t*>(packet.data);
    catena::packet::Layers layers{};
    if (reads_headers_) {
      layers = shape_.link == NCA_IPV4 ? catena::packet::parse_ipv4(data, length) : catena::packet::parse(data, length);
    }
    buffer.packets->write(row, begin, {data, length}, layers);
    buffer.accepted[row] = {buffer.packets->bytes(row).data(), packet.tag, length, 0};
    buffer.tags[row] = packet.tag;
  }
  catena::kernel::PackedPackets::finish_writes();
  if (--buffer.writers == 0 && buffer.is_closed) {
    // whoever looked before this and saw a writer waits by now
    { const std::lock_guard lock(mutex_); }
    work_.notify_one();
  }
}

void nca_stream::buffer_ready() {
  const std::lock_guard lock(mutex_);
  if (open_ != nullptr && open_->packets->count() > 0) {
    close_open_buffer();
  }
}

nca_status nca_stream::flush(std::optional<std::chrono::nanoseconds> limit) {
  std::unique_lock lock(mutex_);
  if (open_ != nullptr && open_->packets->count() > 0) {
    close_open_buffer();
  }
  const std::uint64_t wanted = next_number_;
  const auto all_there = [&] { return counts_.buffers_completed >= wanted; };
  if (!limit) {
    done_.wait(lock, all_there);
  } else if (!done_.wait_for(lock, std::min<std::chrono::nanoseconds>(*limit, catena::nca::kLongestWait), all_there)) {
    return error_.set(NCA_ERROR_TIMEOUT, concat(wanted - counts_.buffers_completed, " buffers were not complete after ",
                                                limit->count(), " ns"));
  }
  return NCA_OK;
}

nca_status nca_stream::read(nca_results& results) {
  const std::lock_guard lock(mutex_);
  if (complete_.empty()) {
    return NCA_ERROR_EMPTY;
  }
  Buffer& buffer = complete_.pop();
  buffer.state = Buffer::kRead;
  std::uint64_t one = 0;
  [[maybe_unused]] const ssize_t bytes = ::read(descriptor_, &one, sizeof one);
  results.buffer = buffer.number;
  results.packet_count = buffer.packets->count();
  results.status = buffer.status;
  results.tags = buffer.tags.data();
  results.packets = buffer.accepted.data();
  results.function_count = buffer.status == NCA_OK ? functions_.size() : 0;
  results.functions = buffer.view_pointers.data();
  results.times = buffer.status == NCA_OK ? buffer.times : nca_times{};
  return NCA_OK;
}

nca_status nca_stream::release(nca_results const& results) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(buffers_.begin(), buffers_.end(), [&](auto const& buffer) {
    return buffer->state == Buffer::kRead && buffer->number == results.buffer;
  });
  if (found == buffers_.end()) {
    return error_.set(NCA_ERROR_ARGUMENT, concat("the results of buffer ", results.buffer, " are not given out"));
  }
  Buffer& buffer = **found;
  buffer.state = Buffer::kFree;
  buffer.is_closed = false;
  buffer.packets->clear();
  free_.push(buffer);
  return NCA_OK;
}

nca_statistics nca_stream::statistics() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

bool nca_stream::is_idle() const {
  const std::lock_guard lock(mutex_);
  const bool none_open = open_ == nullptr || open_->packets->count() == 0;
  return none_open && free_.size() + (open_ != nullptr ? 1 : 0) == buffers_.size();
}

std::uint64_t nca_stream::unread_packets() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t packets = 0;
  for (auto const& buffer : buffers_) {
    packets += buffer->state == Buffer::kFree || buffer->state == Buffer::kRead ? 0 : buffer->packets->count();
  }
  return packets;
}

void nca_stream::run() {
  ::prctl(PR_SET_TIMERSLACK, 1);  // ns; a poll that comes 50 us late, as it would, is several buffers' time
  std::unique_lock lock(mutex_);
  bool worked = false;  // then the next buffer may be done too
  while (true) {
    if (running_.empty()) {
      work_.wait(lock, [&] { return stop_ || may_submit(); });
    } else if (context_->device != nullptr && !worked) {
      work_.wait_for(lock, catena::nca::kPollInterval, [&] { return stop_ || may_submit(); });
    }
    if (stop_) {
      return;
    }
    submit(lock);
    worked = !running_.empty() && work(lock);
  }
}

/// Whether a buffer waits whose packets are all there, and a queue is free for it.
bool nca_stream::may_submit() const {
  const std::size_t queues = context_->device == nullptr ? 1 : shape_.queues;
  return running_.size() < queues && !handed_over_.empty() && handed_over_.front().writers == 0;
}

/// Starts submitted buffers on the device, in order, as long as it has queues.
void nca_stream::submit(std::unique_lock<std::mutex>& lock) {
  while (may_submit()) {
    Buffer& buffer = handed_over_.pop();
    buffer.state = Buffer::kRunning;
    running_.push(buffer);
    if (context_->device != nullptr && failed_ == NCA_OK) {
      lock.unlock();
      const Status status = catena::nca::caught([&] { return buffer.launch->submit(); });
      lock.lock();
      if (!status.ok()) {
        fail(status);
      }
    }
  }
}

/// Completes the oldest buffer that runs, if it is done. False: it is not.
bool nca_stream::work(std::unique_lock<std::mutex>& lock) {
  Buffer& buffer = running_.front();
  if (failed_ != NCA_OK) {
    running_.pop();
    buffer.status = failed_;
    complete(buffer, lock);
    return true;
  }
  if (context_->device != nullptr) {
    lock.unlock();
    const catena::Result<bool> done = catena::nca::caught([&] { return buffer.launch->poll(); });
    lock.lock();
    if (!done.ok()) {
      fail(done.status());
    }
    if (!done.ok() || !*done) {
      return !done.ok();
    }
  }
  running_.pop();
  buffer.state = Buffer::kCollecting;
  if (context_->device != nullptr) {
    submit(lock);  // the device is not to wait while lists are made
  }
  lock.unlock();
  compute(buffer);
  lock.lock();
  complete(buffer, lock);
  return true;
}

/// Fills in the results of a buffer whose packets, or kernels' results, are there.
void nca_stream::compute(Buffer& buffer) {
  const Status status = catena::nca::caught([&] { return collect(buffer); });
  buffer.status = NCA_OK;
  if (status == catena::nca::no_memory()) {
    error_.set(NCA_ERROR_MEMORY, "the host has no memory for the results of a buffer");
    buffer.status = NCA_ERROR_MEMORY;
  } else if (!status.ok()) {
    const std::lock_guard lock(mutex_);
    fail(status);
    buffer.status = failed_;
  }
}

Status nca_stream::collect(Buffer& buffer) {
  if (shape_.times && context_->device != nullptr) {
    CATENA_ASSIGN_OR_RETURN(const catena::kernel::LaunchTimes times, buffer.launch->times());
    buffer.times = {times.begin_ns, times.moved_in_ns, times.computed_ns, times.moved_back_ns};
  } else if (shape_.times) {
    buffer.times.begin_ns = buffer.times.moved_in_ns = catena::nca::now_ns();
  }
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    catena::nca::Function const& function = *functions_[i]->what;
    catena::nca::FunctionResults& results = buffer.results[i];
    results.clear();
    if (context_->device == nullptr) {
      CATENA_RETURN_IF_ERROR(workers_[i]->run(*buffer.packets, results));
    } else {
      CATENA_RETURN_IF_ERROR(function.collect(*buffer.launch, i, results));
    }
    buffer.views[i] = results.view(function.kind(), buffer.packets->count());
  }
  if (shape_.times && context_->device == nullptr) {
    buffer.times.computed_ns = buffer.times.moved_back_ns = catena::nca::now_ns();
  }
  return absl::OkStatus();
}

void nca_stream::complete(Buffer& buffer, std::unique_lock<std::mutex>& lock) {
  buffer.state = Buffer::kComplete;
  complete_.push(buffer);
  ++counts_.buffers_completed;
  counts_.packets_completed += buffer.packets->count();
  if (buffer.launch) {
    counts_.bytes_to_device = 0;
    counts_.bytes_to_host = 0;
    for (auto const& each : buffers_) {
      counts_.bytes_to_device += each->launch->transfers().bytes_to_device;
      counts_.bytes_to_host += each->launch->transfers().bytes_to_host;
    }
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t bytes = ::write(descriptor_, &one, sizeof one);
  done_.notify_all();
  if (notify_ != nullptr) {
    lock.unlock();
    notify_(this, user_);
    lock.lock();
  }
}

void nca_stream::fail(Status const& status) noexcept {
  if (failed_ != NCA_OK) {
    return;
  }
  failed_ = NCA_ERROR_DEVICE;
  try {
    const std::string why = status.message().empty() ? status.ToString() : std::string(status.message());
    failure_ = concat(context_->name, " failed, and the stream with it: ", why);
  } catch (std::exception const&) {
    failure_ = "out of memory";  // short enough to be in the string itself
  }
  error_.set(failed_, failure_);
}
