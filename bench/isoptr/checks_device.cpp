// SPDX-License-Identifier: Apache-2.0
#include "bench/isoptr/checks_device.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <string_view>
#include <utility>

namespace catena::bench {
namespace {

constexpr std::string_view kHeader = "catena/kernel/iso_ptr.hpp";
constexpr std::string_view kOn = "inline constexpr bool kChecked = true;\n";
constexpr std::string_view kOff = "inline constexpr bool kChecked = false;\n";

}  // namespace

Result<device::ProgramSource> without_checks(device::ProgramSource source) {
  const auto header = std::find_if(source.files.begin(), source.files.end(),
                                   [](device::SourceFile const& file) { return file.name == kHeader; });
  if (header == source.files.end()) {
    return absl::InternalError(concat("a program without ", kHeader, " cannot be compiled without checks"));
  }
  const std::size_t at = header->text.find(kOn);
  if (at == std::string::npos || header->text.find(kOn, at + 1) != std::string::npos) {
    return absl::InternalError(concat(kHeader, " does not have the line that says that accesses are checked, or more ",
                                      "than one: bench/isoptr has to be changed with it"));
  }
  header->text.replace(at, kOn.size(), kOff);
  return source;
}

ChecksDevice::ChecksDevice(device::Device& real, Checks checks) : ForwardingDevice(real), checks_(checks) {
  if (checks_ == Checks::kOff) {
    info_.target += ", accesses not checked";
  }
}

Result<device::Binary> ChecksDevice::compile(device::ProgramSource const& source) {
  if (checks_ == Checks::kOn) {
    return ForwardingDevice::compile(source);
  }
  CATENA_ASSIGN_OR_RETURN(const device::ProgramSource unchecked, without_checks(source));
  return ForwardingDevice::compile(unchecked);
}

}  // namespace catena::bench
