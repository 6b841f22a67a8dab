// SPDX-License-Identifier: Apache-2.0
#include "gpu/program/program.hpp"

#include <catena/core/text.hpp>

#include "base/core/process_work.hpp"
#include "catena_kernel_sdk.hpp"
#include "gpu/device/hash.hpp"
#include "gpu/program/program_cache.hpp"

#include <spdlog/spdlog.h>

#include <optional>

namespace catena::program {
namespace {

/// Changes when what is compiled from the same source changes, e.g. the options given to a compiler.
constexpr std::string_view kRecipe = "catena program 1";

}  // namespace

void add_fields(device::DeviceInfo const& info, device::ProgramSource const& source,
                std::function<void(std::string_view)> const& add) {
  for (const std::string_view field : {kRecipe, std::string_view(info.backend), std::string_view(info.name),
                                       std::string_view(info.driver), std::string_view(info.target)}) {
    add(field);
  }
  for (device::SourceFile const& file : source.files) {
    add(file.name);
    add(file.text);
  }
  add("defines");
  for (std::string const& define : source.defines) {
    add(define);
  }
}

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
  device::Hash128 key;
  add_fields(device.info(), source, [&key](std::string_view field) { key.add_field(field); });

  if (const std::optional<device::Binary> cached = cache.find(key)) {
    Result<std::unique_ptr<device::Program>> program = device.load(*cached);
    if (program.ok()) {
      return program;
    }
    CATENA_RETURN_IF_ERROR(device.failed());
    spdlog::warn("{}: the cached program does not load and is recompiled: {}", what,
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
