// SPDX-License-Identifier: Apache-2.0
#include <catena/core/text.hpp>

#include "nca/function.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace catena::nca {
namespace {

constexpr std::uint32_t kMaxGroupSize = 1024;

class CustomFunction final : public Function {
 public:
  /// `spec` lacks the source.
  CustomFunction(std::string source, kernel::KernelSpec spec, std::vector<std::byte> state, std::uint32_t result_bytes)
      : source_(std::move(source)),
        file_{"kernel.cpp", source_.c_str()},
        spec_(std::move(spec)),
        state_(std::move(state)),
        result_bytes_(result_bytes) {
    spec_.source = {&file_, 1};
  }
  CustomFunction(CustomFunction const&) = delete;
  CustomFunction& operator=(CustomFunction const&) = delete;

  nca_kind kind() const override { return NCA_KERNEL; }
  Result<std::unique_ptr<HostWorker>> host_worker() const override {
    return absl::UnimplementedError("a kernel runs on cuda and opencl devices; \"opencl\" may be a CPU");
  }
  Result<FunctionKernel> kernel_side() const override {
    FunctionKernel side;
    side.spec = spec_;
    side.plan.reads = packet::fields(packet::kPayload);
    side.plan.result_bytes = result_bytes_;
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
  kernel::EmbeddedFile file_;
  kernel::KernelSpec spec_;
  std::vector<std::byte> state_;
  std::uint32_t result_bytes_;
};

}  // namespace

Result<std::unique_ptr<Function>> make_custom(nca_kernel_config const& config) {
  if (config.source == nullptr || config.name == nullptr || (config.state == nullptr) != (config.state_bytes == 0)) {
    return absl::InvalidArgumentError(
        "a kernel needs its source and its name, and a state exactly if state_bytes is set");
  }
  kernel::KernelSpec spec;
  spec.name = config.name;
  spec.lanes = config.lanes == 0 ? 1 : config.lanes;
  spec.group_size = config.group_size == 0 ? spec.group_size : config.group_size;
  spec.local_bytes = config.local_bytes;
  if (config.result_bytes == 0 || config.result_bytes % 4 != 0 || config.result_bytes > kernel::kMaxResultBytes ||
      spec.group_size > kMaxGroupSize || spec.group_size % spec.lanes != 0) {
    return absl::InvalidArgumentError(concat("result_bytes ", config.result_bytes, ", lanes ", spec.lanes,
                                             ", group_size ", spec.group_size,
                                             "; results have a multiple of 4 bytes from 4 to ", kernel::kMaxResultBytes,
                                             ", groups a multiple of lanes up to ", kMaxGroupSize));
  }
  std::vector<std::byte> state(config.state_bytes);  // first: so many bytes may not be there at all
  std::copy_n(static_cast<const std::byte*>(config.state), state.size(), state.begin());
  return std::make_unique<CustomFunction>(config.source, std::move(spec), std::move(state), config.result_bytes);
}

}  // namespace catena::nca
