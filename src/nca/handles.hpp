// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nca/nca.h>
#include <catena/core/status.hpp>

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "gpu/device/device.hpp"
#include "gpu/launch/launch.hpp"
#include "nca/function.hpp"

/// Implementation of the API's handles.
namespace catena::nca {

/// The text of the last failure on a handle. Thread rule: any thread.
class LastError {
 public:
  /// Returns `status`. Without memory for the text, stores "out of memory" instead: exception handlers call this.
  nca_status set(nca_status status, std::string_view text) noexcept;
  /// As for nca_context_error().
  std::size_t copy(char* text, std::size_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// Copies `text` to `to`, truncated to `bytes` including the final 0. Returns the full length.
std::size_t copy_text(std::string_view text, char* to, std::size_t bytes);

/// The API code for an error of set-up or of a device.
nca_status status_of(Status const& status);

/// A context on the caller's device, which must outlive it; null: the host. For tests.
nca_context* open_on(device::Device* device, std::string name);

}  // namespace catena::nca

struct nca_function {
  ~nca_function();

  nca_context* context = nullptr;
  std::unique_ptr<catena::nca::Function> what;
  std::unique_ptr<catena::kernel::DeviceNf> device_nf;  ///< null on the host
  bool returns_spill = false;
  bool has_keys = false;    ///< in the state of `device_nf`
  std::size_t streams = 0;  ///< using it; guarded by the context's mutex
};

struct nca_context {
  std::string name;
  std::unique_ptr<catena::device::Device> owned;
  catena::device::Device* device = nullptr;  ///< null: the host
  mutable catena::nca::LastError error;

  std::mutex mutex;
  std::list<std::unique_ptr<nca_function>> functions;
  std::size_t streams = 0;
};
