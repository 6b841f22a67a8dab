// SPDX-License-Identifier: Apache-2.0
#include "fuzz/chains/fuzz_case.hpp"

#include "fuzz/chains/promise.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <utility>

namespace catena::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kVariants = 4;  // device runs of a case
// What a failed device might still write to is never freed: some megabytes a run.
constexpr std::uint64_t kMaxFaultyRuns = 500;
constexpr std::chrono::seconds kShrinkFor{60};

Status write_text(fs::path const& path, std::string const& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return file.flush() ? absl::OkStatus() : absl::UnavailableError(concat(path.string(), " cannot be written"));
}

}  // namespace

Result<CaseRunner> CaseRunner::create(fs::path folder, std::string repeat, std::vector<std::string> devices) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    return absl::UnavailableError(concat(folder.string(), ": ", error.message()));
  }
  CATENA_RETURN_IF_ERROR(write_chain_files(folder));
  CaseRunner runner;
  runner.folder_ = std::move(folder);
  runner.repeat_ = std::move(repeat);
  runner.devices_ = std::move(devices);
  return runner;
}

Result<std::vector<CapturedFrame>> CaseRunner::put_into_tunnels(Random& random, std::vector<CapturedFrame> frames) {
  const FuzzChain tunnels = make_tunnels(random, random.between(1, 3));
  CATENA_RETURN_IF_ERROR(write_frames((folder_ / "in.pcap").string(), frames));
  CATENA_ASSIGN_OR_RETURN(const RunOutput output, run_chain(folder_, tunnels, {}, "none"));
  CATENA_RETURN_IF_ERROR(write_text(folder_ / "in.pcap", output.capture));
  CATENA_ASSIGN_OR_RETURN(std::vector<CapturedFrame> inside, read_frames((folder_ / "in.pcap").string()));
  std::erase_if(inside, [](CapturedFrame const& frame) { return frame.bytes.size() > packet::kMaxFrameBytes; });
  for (std::size_t i = 0; i < inside.size(); ++i) {
    inside[i].stamp_ns = frames[i].stamp_ns;  // at most as many as there were
    if (random.chance(10)) {
      inside[i] = frames[i];
    }
  }
  if (random.chance(40)) {
    spoil(random, inside);
  }
  return inside;
}

Result<FuzzCase> CaseRunner::make(Random& random) {
  FuzzCase test;
  if (random.chance(40)) {
    test.chain = make_growing_chain(random);
    test.frames = make_traffic(random, Traffic::kFull);
    return test;
  }
  test.chain = random.chance(35) ? make_graph(random) : make_chain(random);
  test.frames = make_traffic(random, Traffic::kAny);
  const bool decrypts = std::any_of(test.chain.nfs.begin(), test.chain.nfs.end(),
                                    [](FuzzNf const& nf) { return nf.config.find("decrypt") != std::string::npos; });
  if (random.chance(decrypts ? 50 : 10)) {
    CATENA_ASSIGN_OR_RETURN(test.frames, put_into_tunnels(random, std::move(test.frames)));
  }
  return test;
}

Status CaseRunner::write(FuzzCase const& test, Variant const& variant, std::string const& device) const {
  CATENA_RETURN_IF_ERROR(write_frames((folder_ / "in.pcap").string(), test.frames));
  CATENA_RETURN_IF_ERROR(write_text(folder_ / "chain.yaml", chain_text(test.chain, variant, device)));
  chain::CostProfile profile = variant.sync.profile;
  profile.backend = "opencl";
  profile.device = "the chain fuzzer's";
  profile.driver = "none";
  profile.measured = "2026-01-01T00:00:00Z";
  CATENA_RETURN_IF_ERROR(write_text(folder_ / "costs.json", chain::to_json(profile)));
  return write_text(
      folder_ / "README.txt",
      concat(repeat_, "\n\nor by the program itself, in this folder:\n\n",
             "catena run chain.yaml --device none --tx pcap:cpu.pcap --record cpu.jsonl\n", "catena run chain.yaml ",
             variant.sync_options, " --profile costs.json --workers ", variant.workers, " --record device.jsonl\n",
             variant.fault ? concat("\nbut with a device that fails, and ", variant.tuning.pool_slots,
                                    " slots in the pool: ", to_string(*variant.fault), "\n")
                           : ""));
}

Result<RunOutput> CaseRunner::run_on_cpu(FuzzCase const& test) {
  CATENA_RETURN_IF_ERROR(write(test, {}, "none"));
  CATENA_ASSIGN_OR_RETURN(RunOutput output, run_chain(folder_, test.chain, {}, "none"));
  if (const std::string wrong = fault_of(output, test.chain, 0); !wrong.empty()) {
    return absl::InternalError(concat("on the CPU: ", wrong));
  }
  return output;
}

std::string CaseRunner::run_on(std::string const& device, FuzzCase const& test, Variant const& variant,
                               RunOutput const& expected) {
  ++runs_;
  if (const Status status = write(test, variant, device); !status.ok()) {
    return status.ToString();
  }
  const Result<RunOutput> output = run_chain(folder_, test.chain, variant, device);
  if (!output.ok()) {
    return concat("the run failed: ", output.status().ToString());
  }
  if (variant.fault) {
    return broken_promise(*output, expected, test.chain, test.frames, variant);
  }
  const std::string wrong = fault_of(*output, test.chain, variant.gpu_mask);
  return wrong.empty() ? difference(*output, expected, test.chain.rows.empty()) : wrong;
}

Result<std::optional<Failure>> CaseRunner::run(Random& random, FuzzCase const& test, std::uint64_t& faulty_runs) {
  CATENA_ASSIGN_OR_RETURN(const RunOutput expected, run_on_cpu(test));
  std::optional<Variant> variant;
  for (std::uint32_t i = 0; i < kVariants; ++i) {
    // programs take long to compile: most ways to run are tried in more than one portion
    variant = make_variant(random, test.chain, variant && random.chance(50) ? &*variant : nullptr);
    if (std::optional<Failure> failure = run_on_all(test, *variant, expected)) {
      return failure;
    }
  }
  // what is promised of a device that fails is told by the order of packets, which a graph has not
  if (test.chain.rows.empty() && random.chance(60) && faulty_runs < kMaxFaultyRuns) {
    ++faulty_runs;
    return run_on_all(test, make_faulty(random, *variant), expected);
  }
  return std::nullopt;
}

std::optional<Failure> CaseRunner::run_on_all(FuzzCase const& test, Variant const& variant, RunOutput const& expected) {
  for (std::string const& device : devices_) {
    if (std::string wrong = run_on(device, test, variant, expected); !wrong.empty()) {
      return Failure{std::move(wrong), device, variant};
    }
  }
  return std::nullopt;
}

bool CaseRunner::still_fails(FuzzCase const& test, Failure& failure) {
  const Result<RunOutput> expected = run_on_cpu(test);
  if (!expected.ok()) {
    return false;
  }
  std::string wrong = run_on(failure.device, test, failure.variant, *expected);
  if (wrong.empty()) {
    return false;
  }
  failure.what = std::move(wrong);
  return true;
}

FuzzCase CaseRunner::shrink(FuzzCase test, Failure& failure) {
  const auto deadline = std::chrono::steady_clock::now() + kShrinkFor;
  const auto in_time = [deadline] { return std::chrono::steady_clock::now() < deadline; };
  for (std::size_t i = test.chain.nfs.size(); i-- > 0 && in_time();) {
    FuzzCase less = test;
    Failure fails = failure;
    less.chain = without_nf(std::move(less.chain), i);
    const std::uint32_t below = (1U << i) - 1;
    fails.variant.gpu_mask = (failure.variant.gpu_mask & below) | (failure.variant.gpu_mask >> 1 & ~below);
    if (still_fails(less, fails)) {
      test = std::move(less);
      failure = std::move(fails);
    }
  }
  for (std::size_t i = test.chain.rows.size(); i-- > 1 && in_time();) {
    FuzzCase less = test;
    Failure fails = failure;
    less.chain.rows.erase(less.chain.rows.begin() + static_cast<std::ptrdiff_t>(i));
    if (still_fails(less, fails)) {
      test = std::move(less);
      failure = std::move(fails);
    }
  }
  for (std::size_t part = test.frames.size() / 2; part > 0 && in_time(); part /= 2) {
    for (std::size_t at = 0; at < test.frames.size() && in_time();) {
      FuzzCase less = test;
      const auto begin = less.frames.begin() + static_cast<std::ptrdiff_t>(at);
      less.frames.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(part, less.frames.size() - at)));
      Failure fails = failure;
      if (!less.frames.empty() && still_fails(less, fails)) {
        test = std::move(less);
        failure = std::move(fails);
      } else {
        at += part;
      }
    }
  }
  (void)write(test, failure.variant, failure.device);  // what was left away last may be there
  return test;
}

}  // namespace catena::fuzz
