// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "gpu/device/device.hpp"
#include "gpu/device/hash.hpp"
#include "gpu/device/remote/compilations.hpp"
#include "gpu/program/program_cache.hpp"

namespace catena::device_server {

/// Disk cache of kernels compiled by a device server for untrusted clients. So neither the next server nor the next
/// chain waits for a compiler. It belongs to the user of the server. Only binaries are kept, in files unreadable for
/// other users. File names are derived from SHA-256 of all compiler inputs, since a client could find another source
/// with the same Hash128 and so replace another client's kernel. A separate folder bounds the space for untrusted
/// clients. Any thread.
class ServerProgramCache : public device::remote::BinaryStore {
 public:
  /// `device` outlives this.
  ServerProgramCache(device::Device& device, program::ProgramCache cache)
      : device_(&device), cache_(std::move(cache)) {}

  std::optional<device::Binary> find(device::ProgramSource const& source) override;
  void keep(device::ProgramSource const& source, device::Binary const& binary) override;

 private:
  /// nullopt if hashing fails.
  std::optional<device::Hash128> key_of(device::ProgramSource const& source) const;

  device::Device* device_;
  program::ProgramCache cache_;
};

}  // namespace catena::device_server
