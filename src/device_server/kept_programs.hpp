// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "device/device.hpp"
#include "device/hash.hpp"
#include "device/remote/compilations.hpp"
#include "program/program_cache.hpp"

namespace catena::device_server {

/// What a device server has compiled for strangers, in the cache on disk of whom it runs for, so that neither the next
/// server nor the next chain waits for a compiler. Binaries alone are kept, in files that no other user can read; their
/// names come from SHA-256 of all that went into them, because whoever sends a source could find another one with the
/// same Hash128, and another's kernel would be his. A folder of its own bounds what strangers can fill it with. Any
/// thread.
class KeptPrograms : public device::remote::BinaryStore {
 public:
  /// `device` outlives this.
  KeptPrograms(device::Device& device, program::ProgramCache cache) : device_(&device), cache_(std::move(cache)) {}

  std::optional<device::Binary> find(device::ProgramSource const& source) override;
  void keep(device::ProgramSource const& source, device::Binary const& binary) override;

 private:
  /// None where no hash can be had.
  std::optional<device::Hash128> key_of(device::ProgramSource const& source) const;

  device::Device* device_;
  program::ProgramCache cache_;
};

}  // namespace catena::device_server
