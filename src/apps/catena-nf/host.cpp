// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-nf/host.hpp"

#include "base/ipc/mapping.hpp"
#include "gpu/device/remote/device.hpp"

#include <utility>

namespace catena::nf_program {

using ipc::Frame;
using ipc::Mapping;
using ipc::receive_frame;
using nf_process::Call;

namespace {

constexpr std::uint32_t kMaxCallBytes = 64U << 20;  // a chain file is in one

}  // namespace

Result<Frame> Host::next() { return receive_frame(socket_, kMaxCallBytes); }

Status Host::tell(Call call, std::string_view text) {
  const std::scoped_lock lock(mutex_);
  return nf_process::send(socket_, call, text);
}

Result<FileDescriptor> Host::memory_for(nf_process::StateOf const& state) {
  const std::scoped_lock lock(mutex_);
  CATENA_RETURN_IF_ERROR(nf_process::send(socket_, Call::kState, nf_process::to_json(state)));
  CATENA_ASSIGN_OR_RETURN(Frame frame, next());
  if (frame.call != static_cast<std::uint32_t>(Call::kStateMemory) || !frame.fd) {
    return absl::DataLossError("no memory for a state");
  }
  return std::move(frame.fd);
}

Result<std::unique_ptr<device::Device>> Host::open_device(std::string* why) {
  std::unique_lock lock(mutex_);
  CATENA_RETURN_IF_ERROR(nf_process::send(socket_, Call::kWantDevice, ""));
  CATENA_ASSIGN_OR_RETURN(Frame frame, next());
  if (frame.call != static_cast<std::uint32_t>(Call::kDevicePage)) {
    *why = nf_process::text_of(frame.body);
    return nullptr;
  }
  CATENA_ASSIGN_OR_RETURN(Mapping page, device::remote::map_client_page(std::move(frame.fd)));
  CATENA_ASSIGN_OR_RETURN(frame, next());
  lock.unlock();
  return device::remote::connect(std::move(frame.fd), std::move(page));
}

Result<Host::Opened> Host::ask(Call call, std::span<const std::byte> body) {
  const std::scoped_lock lock(mutex_);
  CATENA_RETURN_IF_ERROR(nf_process::send(socket_, call, nf_process::text_of(body)));
  CATENA_ASSIGN_OR_RETURN(Frame frame, next());
  if (frame.call != static_cast<std::uint32_t>(Call::kOutput)) {
    return absl::DataLossError("an output is not answered for");
  }
  Opened opened;
  CATENA_ASSIGN_OR_RETURN(opened.answer, nf_process::read_answer(nf_process::text_of(frame.body)));
  if (opened.answer.is_kept) {
    CATENA_ASSIGN_OR_RETURN(frame, next());
    opened.kept = std::string(nf_process::text_of(frame.body));
  }
  return opened;
}

}  // namespace catena::nf_program
