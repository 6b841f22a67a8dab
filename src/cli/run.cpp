// SPDX-License-Identifier: Apache-2.0
#include "chain/chain.hpp"
#include "chain/named_files.hpp"
#include "chain/scale.hpp"
#include "cli/commands.hpp"
#include "cli/fail.hpp"
#include "cli/known_nfs.hpp"
#include "cli/run_options.hpp"
#include "cli/style.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <thread>

namespace catena::cli {
namespace {

using chain::Chain;

std::atomic<Chain*> running{nullptr};
static_assert(std::atomic<Chain*>::is_always_lock_free, "used in a signal handler");

void on_signal(int signal) {
  if (Chain* chain = running.load(); chain != nullptr) {
    chain->stop();
  }
  // `timeout -s INT` and terminals may signal twice at once: only the third ends the process without a report
  if (static std::atomic<int> signals{0}; ++signals == 2) {
    std::signal(signal, SIG_DFL);
  }
}

/// ", 40 %, 12 s left" of a source whose end is known.
std::string outlook(double part_done, int seconds) {
  constexpr double kPercent = 100;
  if (part_done <= 0) {
    return {};
  }
  std::string text = fmt::format(", {:.0f} %", part_done * kPercent);
  if (part_done < 1) {
    const auto left = static_cast<std::int64_t>(std::ceil(seconds * (1 - part_done) / part_done));
    constexpr std::int64_t kMinute = 60;
    constexpr std::int64_t kShownInSeconds = 120;
    text += left <= kShownInSeconds ? fmt::format(", {} s left", left) : fmt::format(", {} min left", left / kMinute);
  }
  return text;
}

/// Prints a line a second while a chain runs, unless it is to be quiet.
class LiveLine {
 public:
  LiveLine(Chain const& chain, bool quiet) {
    if (!quiet) {
      thread_ = std::thread([this, &chain] { work(chain); });
    }
  }
  ~LiveLine() {
    done_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
  }
  LiveLine(LiveLine const&) = delete;
  LiveLine& operator=(LiveLine const&) = delete;

 private:
  void work(Chain const& chain) {
    constexpr std::chrono::milliseconds kTick{20};
    chain::RunProgress last;
    auto next = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (int seconds = 1; !done_; std::this_thread::sleep_for(kTick)) {
      if (std::chrono::steady_clock::now() < next) {
        continue;
      }
      const chain::RunProgress now = chain.progress();
      std::cerr << fmt::format("{:>5} s  received {:>12}  sent {:>12}  dropped {:>10}  {:>9}{}\n", seconds,
                               now.received, now.sent, now.dropped,
                               chain::scaled(static_cast<double>(now.received - last.received), "pps"),
                               outlook(now.part_done, seconds));
      last = now;
      next += std::chrono::seconds(1);
      ++seconds;
    }
  }

  std::atomic<bool> done_{false};
  std::thread thread_;
};

}  // namespace

int run(RunArguments const& arguments) {
  Result<chain::ChainConfig> config = chain::load_chain(arguments.chain_file);
  if (!config.ok()) {
    return fail(config.status(), arguments.json);
  }
  Result<chain::RunOptions> options = run_options_of(arguments, *config);
  if (!options.ok()) {
    return fail(options.status(), arguments.json);
  }
  const Result<nf::Registry> registry = known_nfs(arguments.nf_path);
  if (!registry.ok()) {
    return fail(registry.status(), arguments.json);
  }
  // where packets or lines go to standard output, nothing else must
  const bool to_stderr = chain::writes_to_standard_output(*config, *options);
  Result<std::unique_ptr<Chain>> chain = Chain::create(*std::move(config), *options, *registry);
  if (!chain.ok()) {
    return fail(chain.status(), arguments.json, to_stderr ? std::cerr : std::cout);
  }
  for (std::string const& line : (*chain)->start_report()) {
    if (!arguments.quiet || line.starts_with("WARNING")) {
      print(std::cerr, line, has_colours(STDERR_FILENO));
    }
  }
  running = chain->get();
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  Status status;
  {
    const LiveLine live(**chain, arguments.quiet);
    status = (*chain)->run();
  }
  running = nullptr;
  chain::Report report = (*chain)->report();
  report.error = std::string(status.message());
  print(to_stderr ? std::cerr : std::cout,
        arguments.json ? chain::to_json(report)
                       : concat(chain::to_text(report), arguments.verbose ? chain::stages_text(report) : ""),
        !arguments.json && has_colours(to_stderr ? STDERR_FILENO : STDOUT_FILENO));
  if (!status.ok()) {
    static_cast<void>(fail(status));
  }
  const int exit_status = status.ok() ? kExitOk : kExitFailed;
  if ((*chain)->abandoned_device()) {
    // a kernel that never ended would keep the driver's own clean-up waiting for ever
    std::_Exit(exit_status);
  }
  return exit_status;
}

}  // namespace catena::cli
