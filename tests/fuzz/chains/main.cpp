// SPDX-License-Identifier: Apache-2.0
// The chain fuzzer: random chains over random traffic, run on the CPU and then on devices, in every placement, way to
// synchronize and portion that comes up. Packets, records, exported flows and counters must be the same; where the
// device is made to fail, what docs/failures.md promises must hold. It prints its seed; a case that fails leaves a
// folder with the chain file, the capture and the commands that repeat it.
#include "fuzz/chains/fuzz_case.hpp"
#include "system/chain_runner.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <random>

namespace catena::fuzz {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr unsigned kCaseLimit = 300;  // seconds; a case that takes longer hangs

struct Options {
  std::uint64_t seed = 0;
  std::uint32_t seconds = 60;
  std::uint64_t cases = UINT64_MAX;
  std::int64_t only = -1;
  std::string folder = "out/chain-fuzz";
  std::vector<std::string> devices;
};

// what a signal handler says of the case that runs
std::array<char, 1024> running{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): for say_and_die()

extern "C" void say_and_die(int signal_number) {
  static_cast<void>(!write(STDERR_FILENO, running.data(), std::strlen(running.data())));
  static_cast<void>(std::signal(signal_number, SIG_DFL));
  static_cast<void>(std::raise(signal_number));
}

void watch_signals() {
#if defined(__SANITIZE_ADDRESS__)
  for (const int number : {SIGALRM, SIGABRT}) {  // the sanitizer reports the others
#else
  for (const int number : {SIGALRM, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
#endif
    static_cast<void>(std::signal(number, say_and_die));
  }
}

/// SplitMix64 of both: neighbouring cases have nothing in common.
std::uint64_t mix(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t value = seed + (number + 1) * 0x9E3779B97F4A7C15;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

class Fuzzer {
 public:
  explicit Fuzzer(Options options) : options_(std::move(options)) {}

  /// True if nothing failed.
  bool run() {
    const Clock::time_point begin = Clock::now();
    const Clock::time_point end = begin + std::chrono::seconds(options_.seconds);
    std::uint64_t number = options_.only < 0 ? 0 : static_cast<std::uint64_t>(options_.only);
    std::uint64_t done = 0;
    bool good = true;
    while (good && done < options_.cases && (done == 0 || (options_.only < 0 && Clock::now() < end))) {
      good = run_case(number++);
      ++done;
    }
    const auto took = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin);
    std::cout << "chain_fuzz: " << done << " cases, " << runs_ << " device runs, " << faulty_runs_ << " faults, "
              << packets_ << " packets in " << took.count() << " s: " << (good ? "no difference" : "FAILED")
              << std::endl;
    return good;
  }

 private:
  bool run_case(std::uint64_t number) {
    const fs::path folder = fs::path(options_.folder) / concat("seed-", options_.seed, "-case-", number);
    const std::string repeat = concat("chain_fuzz --seed ", options_.seed, " --case ", number);
    std::snprintf(running.data(), running.size(), "\nchain_fuzz: died or hung in `%s`; the case is in %s\n",
                  repeat.c_str(), folder.c_str());
    alarm(kCaseLimit);
    spdlog::set_level(spdlog::level::err);
    Random random(mix(options_.seed, number));
    Result<CaseRunner> runner = CaseRunner::create(folder, repeat, options_.devices);
    Result<FuzzCase> test = runner.ok() ? runner->make(random) : Result<FuzzCase>(runner.status());
    Result<std::optional<Failure>> failure =
        test.ok() ? runner->run(random, *test, faulty_runs_) : Result<std::optional<Failure>>(test.status());
    alarm(0);
    if (!failure.ok()) {
      std::cout << "FAILED: " << repeat << ": " << failure.status() << "\n  the case is in " << folder.string()
                << std::endl;
      return false;
    }
    runs_ += runner->runs();
    packets_ += test->frames.size();
    if (!failure->has_value()) {
      std::error_code error;
      fs::remove_all(folder, error);
      return true;
    }
    std::cout << "FAILED: " << repeat << ": on " << (*failure)->device << ": " << (*failure)->what
              << "\n  looking for a smaller case ..." << std::endl;
    spdlog::set_level(spdlog::level::off);
    const FuzzCase small = runner->shrink(*std::move(test), **failure);
    std::cout << "  " << small.chain.nfs.size() << " NFs and " << small.frames.size()
              << " packets still do: " << (*failure)->what << "\n  chain.yaml, in.pcap and README.txt are in "
              << folder.string() << "\n"
              << chain_text(small.chain, (*failure)->variant, (*failure)->device) << std::endl;
    return false;
  }

  Options options_;
  std::uint64_t runs_ = 0;
  std::uint64_t faulty_runs_ = 0;
  std::uint64_t packets_ = 0;
};

int fuzz(int argc, char** argv) {
  Options options;
  options.seed = std::random_device{}();
  CLI::App app{"Runs random chains over random traffic on the CPU and on devices, and compares what comes out."};
  app.add_option("--seed", options.seed, "of all that is random; the same seed makes the same cases");
  app.add_option("--seconds", options.seconds, "begins no further case after this time")
      ->envname("CATENA_SOAK_SECONDS")
      ->capture_default_str();
  app.add_option("--cases", options.cases, "ends after so many cases, if that is earlier");
  app.add_option("--case", options.only, "runs this case of the seed alone");
  app.add_option("--folder", options.folder, "where cases that fail are kept")->capture_default_str();
  app.add_option("--device", options.devices, "names of backends; default: all that are here");
  CLI11_PARSE(app, argc, argv);
  if (options.devices.empty()) {
    options.devices = testing::device_names();
  }
  if (options.devices.empty()) {
    std::cout << "chain_fuzz: there is no device to compare with; PoCL makes one of any CPU" << std::endl;
    return 1;
  }
  std::cout << "chain_fuzz: seed " << options.seed << ", " << options.seconds << " s" << std::endl;
  watch_signals();
  return Fuzzer(std::move(options)).run() ? 0 : 1;
}

}  // namespace
}  // namespace catena::fuzz

int main(int argc, char** argv) { return catena::fuzz::fuzz(argc, argv); }
