// SPDX-License-Identifier: Apache-2.0
#include "program/program.hpp"

#include <catena/core/text.hpp>

#include "catena_kernel_sdk.hpp"
#include "core/process_work.hpp"
#include "device/hash.hpp"
#include "program/program_cache.hpp"

#include <spdlog/spdlog.h>

#include <optional>

namespace catena::program {
namespace {

/// Changes when what is compiled from the same source changes, e.g. the options given to a compiler.
constexpr std::string_view kRecipe = "catena program 1";

device::Hash128 cache_key(device::DeviceInfo const& info, device::ProgramSource const& source) {
  device::Hash128 key;
  key.add_field(kRecipe);
  key.add_field(info.backend).add_field(info.name).add_field(info.driver).add_field(info.target);
  for (device::SourceFile const& file : source.files) {
    key.add_field(file.name).add_field(file.text);
  }
  key.add_field("defines");
  for (std::string const& define : source.defines) {
    key.add_field(define);
  }
  return key;
}

}  // namespace

device::ProgramSource with_sdk(std::span<const kernel::EmbeddedFile> files) {
  device::ProgramSource source;
  for (kernel::EmbeddedFile const& file : files) {
    source.files.push_back({file.name, file.text});
  }
  for (kernel::EmbeddedFile const& file : catena_kernel_sdk()) {
    source.files.push_back({file.name, file.text});
  }
  return source;
}

void define(device::ProgramSource& source, std::string_view name, std::uint32_t value) {
  source.defines.push_back(concat(name, "=", value, "U"));
}

/// `UL` is a u64 in every dialect.
void define_fields(device::ProgramSource& source, std::string_view name, packet::FieldSet fields) {
  source.defines.push_back(concat(name, "=", fields, "UL"));
}

namespace {

Result<std::unique_ptr<device::Program>> build_here(device::Device& device, device::ProgramSource const& source,
                                                    std::string_view what) {
  const ProgramCache cache = ProgramCache::from_environment();
  const device::Hash128 key = cache_key(device.info(), source);

  if (const std::optional<device::Binary> cached = cache.find(key)) {
    Result<std::unique_ptr<device::Program>> program = device.load(*cached);
    if (program.ok()) {
      return program;
    }
    CATENA_RETURN_IF_ERROR(device.failed());
    spdlog::warn("{}: the cached program does not load and is compiled anew: {}", what,
                 std::string(program.status().message()));
  }
  CATENA_ASSIGN_OR_RETURN(const device::Binary binary, device.compile(source));
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<device::Program> program, device.load(binary));
  cache.store(key, binary);
  return program;
}

}  // namespace

Result<std::unique_ptr<device::Program>> build(device::Device& device, device::ProgramSource const& source,
                                               std::string_view what) {
  return do_process_work([&] { return build_here(device, source, what); });
}

}  // namespace catena::program
