// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nca/nca.h>
#include <catena/core/status.hpp>
#include <catena/nf/refusal.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/core/wipe.hpp"
#include "gpu/launch/adapt.hpp"
#include "gpu/launch/packed_launch.hpp"

/// A network function of libnca, with its device side and its host side.
namespace catena::nca {

/// Results of one function for one buffer. Reused for each buffer.
struct FunctionResults {
  std::vector<nca_match> matches;
  std::vector<nca_rule_hit> rules;
  std::vector<nca_next_hop> next_hops;
  std::vector<nca_cipher_packet> ciphered;
  std::vector<std::uint8_t> bytes;
  std::uint32_t out_of_bounds = 0;

  void clear();
  /// The lists as returned by the API; valid until the next change.
  nca_function_results view(nca_kind kind, std::uint32_t packets) const;
};

/// Device side of a function.
struct FunctionKernel {
  FunctionKernel() = default;
  FunctionKernel(FunctionKernel&&) = default;
  FunctionKernel& operator=(FunctionKernel&&) = default;
  ~FunctionKernel() {
    if (has_keys) {
      wipe(state.data(), state.size());
    }
  }

  kernel::KernelSpec spec;
  copy::LaunchPlan plan;
  std::vector<std::byte> state;
  bool returns_spill = false;  ///< see PackedLaunch::Nf
  bool has_keys = false;       ///< the state contains keys and must be wiped
};

/// Host side of a function, for one stream. Used only by the stream's thread.
class HostWorker {
 public:
  virtual ~HostWorker() = default;
  /// Appends the results of `packets` to the empty `results`. Internal: a library failed.
  virtual Status run(kernel::PackedPackets const& packets, FunctionResults& results) = 0;
};

/// A configured function. Immutable. Thread rule: any thread; streams share it.
class Function {
 public:
  virtual ~Function() = default;
  virtual nca_kind kind() const = 0;
  /// True if the packets' headers must be parsed.
  virtual bool reads_headers() const { return false; }
  /// ResourceExhausted: the tables are too large for a device.
  virtual Result<FunctionKernel> kernel_side() const = 0;
  /// Unavailable: this processor lacks a feature needed by a library. Unimplemented: the function has no host side.
  /// ResourceExhausted: the configuration exceeds its tables.
  virtual Result<std::unique_ptr<HostWorker>> host_worker() const = 0;
  /// Converts the kernel's output, as function number `number` of `launch`, into the empty `results`, equal to a
  /// HostWorker's results. Internal: a device returned values that the kernel never writes. Other errors as
  /// PackedLaunch::fetch_spill().
  virtual Status collect(kernel::PackedLaunch& launch, std::size_t number, FunctionResults& results) const = 0;
};

/// True if the IPv4 packet of this row has a result of function number `number`; false for any other packet. A packet
/// with an out-of-bounds access by its kernel has no result and is counted in `results`. Precondition: the packets'
/// headers were parsed.
inline bool has_result(kernel::PackedLaunch& launch, std::size_t number, std::uint32_t row, FunctionResults& results) {
  if ((launch.packets().layers(row).flags & packet::kIpv4) == 0) {
    return false;
  }
  const bool out_of_bounds = launch.faulted(number, row);
  results.out_of_bounds += out_of_bounds ? 1 : 0;
  return !out_of_bounds;
}

/// Create a function from its configuration.
///   InvalidArgument  the configuration is invalid
///   NotFound         a file cannot be read
Result<std::unique_ptr<Function>> make_match(nca_match_config const& config);
Result<std::unique_ptr<Function>> make_classify(nca_classify_config const& config);
Result<std::unique_ptr<Function>> make_route(nca_route_config const& config);
/// Also ResourceExhausted and Unavailable, as cipher::CryptoBurst::create().
Result<std::unique_ptr<Function>> make_cipher(nca_cipher_config const& config);
Result<std::unique_ptr<Function>> make_custom(nca_kernel_config const& config);

struct PatternView {
  const char* bytes;
  std::uint32_t length;
  bool nocase;
};
/// Pattern number `number` of a function made by make_match(). Errors: InvalidArgument if it does not exist.
Result<PatternView> pattern_of(Function const& function, std::uint32_t number);
/// The rules refused by a function; empty unless the function was made by make_match().
std::span<const nf::Refusal> refusals_of(Function const& function);

}  // namespace catena::nca
