// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/chains/judge.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

/// One case of the chain fuzzer: a chain, a capture, and ways to run it that must all give the same.
namespace catena::fuzz {

struct FuzzCase {
  FuzzChain chain;
  std::vector<CapturedFrame> frames;
};

/// A run that gave something else than the run on the CPU, or that broke a promise where the device failed.
struct Failure {
  std::string what;
  std::string device;
  Variant variant;
};

/// Runs cases in a folder of its own, which keeps what the last run was given: the chain file, the capture, the costs
/// of the plan, every file that they name, and README.txt with the commands that repeat it.
class CaseRunner {
 public:
  /// `folder` is made if it is not there. `repeat`: the command that makes this case again.
  static Result<CaseRunner> create(std::filesystem::path folder, std::string repeat, std::vector<std::string> devices);

  /// Errors: a run on the CPU failed.
  Result<FuzzCase> make(Random& random);
  /// Runs the case on the CPU, then in some ways on each device, and often on a device that fails; the first failure.
  /// `faulty_runs`: those of this process so far, which end at some hundred. Errors: as make().
  Result<std::optional<Failure>> run(Random& random, FuzzCase const& test, std::uint64_t& faulty_runs);
  /// Leaves NFs and packets away as long as `failure` stays one, for a while; leaves what is left in the folder.
  FuzzCase shrink(FuzzCase test, Failure& failure);

  /// Device runs so far.
  std::uint64_t runs() const { return runs_; }

 private:
  CaseRunner() = default;
  Status write(FuzzCase const& test, Variant const& variant, std::string const& device) const;
  Result<RunOutput> run_on_cpu(FuzzCase const& test);
  std::string run_on(std::string const& device, FuzzCase const& test, Variant const& variant,
                     RunOutput const& expected);
  std::optional<Failure> run_on_all(FuzzCase const& test, Variant const& variant, RunOutput const& expected);
  /// Whether the case still fails; sets failure.what.
  bool still_fails(FuzzCase const& test, Failure& failure);
  Result<std::vector<CapturedFrame>> put_into_tunnels(Random& random, std::vector<CapturedFrame> frames);

  std::filesystem::path folder_;
  std::string repeat_;
  std::vector<std::string> devices_;
  std::uint64_t runs_ = 0;
};

}  // namespace catena::fuzz
