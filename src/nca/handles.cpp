// SPDX-License-Identifier: Apache-2.0
#include "nca/handles.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

namespace catena::nca {

std::size_t copy_text(std::string_view text, char* to, std::size_t bytes) {
  if (to != nullptr && bytes > 0) {
    const std::size_t copied = std::min(text.size(), bytes - 1);
    std::memcpy(to, text.data(), copied);
    to[copied] = '\0';
  }
  return text.size();
}

nca_status LastError::set(nca_status status, std::string_view text) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    text_ = text;
  } catch (std::exception const&) {
    text_ = "out of memory";  // short enough to be in the string itself
  }
  return status;
}

std::size_t LastError::copy(char* text, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  return copy_text(text_, text, bytes);
}

nca_status status_of(Status const& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return NCA_OK;
    case absl::StatusCode::kInvalidArgument:
      return NCA_ERROR_ARGUMENT;
    case absl::StatusCode::kNotFound:
      return NCA_ERROR_FILE;
    case absl::StatusCode::kResourceExhausted:
      return NCA_ERROR_MEMORY;
    case absl::StatusCode::kUnimplemented:
      return NCA_ERROR_UNSUPPORTED;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return NCA_ERROR_DEVICE;
    default:
      return NCA_ERROR_INTERNAL;
  }
}

nca_context* open_on(device::Device* device, std::string name) {
  auto context = std::make_unique<nca_context>();
  context->name = std::move(name);
  context->device = device;
  return context.release();
}

}  // namespace catena::nca

nca_function::~nca_function() {
  if (has_keys && device_nf != nullptr) {
    device_nf->wipe_state().IgnoreError();  // of a device that is lost, with which nothing can be done
  }
}
