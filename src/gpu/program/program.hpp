// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/kernel/spec.hpp>
#include <catena/packet/fields.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "gpu/device/device.hpp"

/// From the source of a kernel to a loaded program.
namespace catena::program {

/// `files`, of which the first is compiled, and the headers that kernels may include; without macros.
device::ProgramSource with_sdk(std::span<const kernel::EmbeddedFile> files);
void define(device::ProgramSource& source, std::string_view name, std::uint32_t value);
void define_fields(device::ProgramSource& source, std::string_view name, packet::FieldSet fields);

/// Calls `add` with each text that a compiled program depends on, always in the same order.
void add_fields(device::DeviceInfo const& info, device::ProgramSource const& source,
                std::function<void(std::string_view)> const& add);

/// Compiles (or takes from the disk cache) and loads; `what` names the source in messages. The cache is
/// $CATENA_CACHE_DIR, else $XDG_CACHE_HOME/catena, else ~/.cache/catena; an unusable cache is no error. A cached binary
/// that does not load is compiled again. Errors: as Device::compile() and load().
Result<std::unique_ptr<device::Program>> build(device::Device& device, device::ProgramSource const& source,
                                               std::string_view what);

}  // namespace catena::program
