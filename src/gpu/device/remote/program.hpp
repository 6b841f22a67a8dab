// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/remote/device.hpp"

#include <map>
#include <set>

namespace catena::device::remote {

class RemoteKernel final : public Kernel {
 public:
  RemoteKernel(std::uint32_t number, std::string name) : number_(number), name_(std::move(name)) {}
  /// The body of a launch command. InvalidArgument for an argument of more than kMaxArgumentBytes, or for arguments
  /// that do not fit into a command.
  Result<ipc::Writer> launch_body(LaunchShape const& shape, std::span<const KernelArgument> arguments) const;
  /// Whether the server has launched the kernel before with arguments of these kinds and sizes in groups like these, so
  /// that it cannot reject them. Any thread.
  bool has_taken(LaunchShape const& shape, std::span<const KernelArgument> arguments) const;
  void takes(LaunchShape const& shape, std::span<const KernelArgument> arguments);

 private:
  std::uint32_t number_;
  std::string name_;
  mutable std::mutex mutex_;
  std::set<std::vector<std::uint32_t>> taken_;
};

class RemoteProgram final : public Program {
 public:
  RemoteProgram(std::shared_ptr<Connection> connection, std::uint32_t number)
      : connection_(std::move(connection)), number_(number) {}
  ~RemoteProgram() override { connection_->free(Kind::kProgram, number_); }
  Result<Kernel*> kernel(std::string_view name) override;

 private:
  std::shared_ptr<Connection> connection_;
  std::uint32_t number_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<RemoteKernel>, std::less<>> kernels_;
};

}  // namespace catena::device::remote
