// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/remote/program.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/remote/memory.hpp"
#include "gpu/device/source.hpp"

namespace catena::device::remote {
namespace {

/// All that decides whether a device takes a launch, but for the values.
std::vector<std::uint32_t> signature(LaunchShape const& shape, std::span<const KernelArgument> arguments) {
  constexpr std::uint32_t kBuffer = std::numeric_limits<std::uint32_t>::max();
  constexpr std::uint32_t kSizes = kBuffer - 1;
  std::vector<std::uint32_t> words{shape.group_size, shape.local_bytes};
  for (KernelArgument const& argument : arguments) {
    const auto* bytes = std::get_if<std::span<const std::byte>>(&argument);
    const std::uint32_t other = std::holds_alternative<BufferSizes>(argument) ? kSizes : kBuffer;
    words.push_back(bytes == nullptr ? other : static_cast<std::uint32_t>(bytes->size()));
  }
  return words;
}

}  // namespace

Result<Binary> RemoteDevice::compile(ProgramSource const& source) {
  CATENA_RETURN_IF_ERROR(failed());
  CATENA_RETURN_IF_ERROR(check_source(source));
  ipc::Writer body;
  body.put(static_cast<std::uint32_t>(source.files.size()));
  for (SourceFile const& file : source.files) {
    body.put_text(file.name).put_text(file.text);
  }
  body.put(static_cast<std::uint32_t>(source.defines.size()));
  for (std::string const& define : source.defines) {
    body.put_text(define);
  }
  CATENA_ASSIGN_OR_RETURN(const Connection::Answer answer, connection_->call(Call::kCompile, body));
  const auto bytes = answer.body().take_bytes();
  return Binary(bytes.begin(), bytes.end());
}

Result<std::unique_ptr<Program>> RemoteDevice::load(std::span<const std::byte> binary) {
  CATENA_ASSIGN_OR_RETURN(const Connection::Answer answer,
                          connection_->call(Call::kLoad, ipc::Writer().put_bytes(binary)));
  return std::make_unique<RemoteProgram>(connection_, answer.body().take<std::uint32_t>());
}

Result<Kernel*> RemoteProgram::kernel(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  if (const auto known = kernels_.find(name); known != kernels_.end()) {
    return known->second.get();
  }
  CATENA_ASSIGN_OR_RETURN(const Connection::Answer answer,
                          connection_->call(Call::kKernel, ipc::Writer().put(number_).put_text(name)));
  auto kernel = std::make_unique<RemoteKernel>(answer.body().take<std::uint32_t>(), std::string(name));
  return kernels_.emplace(name, std::move(kernel)).first->second.get();
}

Result<ipc::Writer> RemoteKernel::launch_body(LaunchShape const& shape,
                                              std::span<const KernelArgument> arguments) const {
  ipc::Writer body;
  body.put(number_).put(shape.groups).put(shape.group_size).put(shape.local_bytes);
  body.put(static_cast<std::uint32_t>(arguments.size()));
  for (KernelArgument const& argument : arguments) {
    if (const auto* buffer = std::get_if<Buffer*>(&argument); buffer != nullptr) {
      body.put(ArgumentKind::kBuffer);
      body.put(*buffer == nullptr ? 0U : static_cast<RemoteBuffer*>(*buffer)->number());
      continue;
    }
    if (std::holds_alternative<BufferSizes>(argument)) {
      body.put(ArgumentKind::kSizes);
      continue;
    }
    const auto bytes = std::get<std::span<const std::byte>>(argument);
    if (bytes.size() > kMaxArgumentBytes) {
      return absl::InvalidArgumentError(
          concat("launch: kernel '", name_, "': an argument of ", bytes.size(), " bytes; at most ", kMaxArgumentBytes));
    }
    body.put(ArgumentKind::kBytes).put_bytes(bytes);
  }
  if (sizeof(CommandHeader) + body.bytes().size() > kMaxCommandBytes) {
    return absl::InvalidArgumentError(concat("launch: kernel '", name_, "': its arguments are ", body.bytes().size(),
                                             " bytes; at most ", kMaxCommandBytes));
  }
  return body;
}

bool RemoteKernel::has_taken(LaunchShape const& shape, std::span<const KernelArgument> arguments) const {
  const std::vector<std::uint32_t> words = signature(shape, arguments);
  const std::scoped_lock lock(mutex_);
  return taken_.find(words) != taken_.end();
}

void RemoteKernel::takes(LaunchShape const& shape, std::span<const KernelArgument> arguments) {
  const std::scoped_lock lock(mutex_);
  taken_.insert(signature(shape, arguments));
}

}  // namespace catena::device::remote
