// SPDX-License-Identifier: Apache-2.0
#include <catena/core/text.hpp>

#include "nca/function.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace catena::nca {
namespace {

constexpr std::uint32_t kMaxResultBytes = 256;
constexpr std::uint32_t kMaxGroupSize = 1024;

class CustomFunction final : public Function {
 public:
  CustomFunction(std::string source, std::string name, std::vector<std::byte> state, std::uint32_t result_bytes,
                 kernel::LaunchPolicy policy)
      : source_(std::move(source)),
        name_(std::move(name)),
        state_(std::move(state)),
        file_{"kernel.cpp", source_.c_str()},
        result_bytes_(result_bytes),
        policy_(policy) {}
  CustomFunction(CustomFunction const&) = delete;
  CustomFunction& operator=(CustomFunction const&) = delete;

  nca_kind kind() const override { return NCA_KERNEL; }
  Result<std::unique_ptr<HostWorker>> host_worker() const override {
    return absl::UnimplementedError("a kernel runs on cuda and opencl devices; \"opencl\" may be a CPU");
  }
  Result<FunctionKernel> kernel_side() const override {
    FunctionKernel side;
    side.spec.source = {&file_, 1};
    side.spec.kernel = name_;
    side.spec.reads = packet::fields(packet::kPayload);
    side.spec.result_bytes = result_bytes_;
    side.spec.policy = policy_;
    side.state = state_;
    return side;
  }
  Status collect(kernel::PackedLaunch& launch, std::size_t number, FunctionResults& results) const override {
    const std::span<const std::byte> rows = launch.results(number);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(rows.data());
    results.bytes.assign(bytes, bytes + rows.size());
    if (launch.faults(number).count != 0) {
      for (std::uint32_t row = 0; row < launch.packets().count(); ++row) {
        if (launch.faulted(number, row)) {
          ++results.out_of_bounds;
          std::memset(results.bytes.data() + std::size_t{row} * result_bytes_, 0, result_bytes_);
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  std::string source_;
  std::string name_;
  std::vector<std::byte> state_;
  kernel::EmbeddedFile file_;
  std::uint32_t result_bytes_;
  kernel::LaunchPolicy policy_;
};

}  // namespace

Result<std::unique_ptr<Function>> make_custom(nca_kernel_config const& config) {
  if (config.source == nullptr || config.name == nullptr || (config.state == nullptr) != (config.state_bytes == 0)) {
    return absl::InvalidArgumentError(
        "a kernel needs its source and its name, and a state exactly if state_bytes is set");
  }
  kernel::LaunchPolicy policy;
  policy.lanes = config.lanes == 0 ? 1 : config.lanes;
  policy.group_size = config.group_size == 0 ? policy.group_size : config.group_size;
  policy.local_bytes = config.local_bytes;
  if (config.result_bytes == 0 || config.result_bytes % 4 != 0 || config.result_bytes > kMaxResultBytes ||
      policy.group_size > kMaxGroupSize || policy.group_size % policy.lanes != 0) {
    return absl::InvalidArgumentError(concat("result_bytes ", config.result_bytes, ", lanes ", policy.lanes,
                                             ", group_size ", policy.group_size,
                                             "; results have a multiple of 4 bytes from 4 to ", kMaxResultBytes,
                                             ", groups a multiple of lanes up to ", kMaxGroupSize));
  }
  const auto* state = static_cast<const std::byte*>(config.state);
  return std::make_unique<CustomFunction>(config.source, config.name,
                                          std::vector<std::byte>(state, state + config.state_bytes),
                                          config.result_bytes, policy);
}

}  // namespace catena::nca
