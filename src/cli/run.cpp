// SPDX-License-Identifier: Apache-2.0
#include "chain/chain.hpp"
#include "chain/workers.hpp"
#include "cli/commands.hpp"
#include "cli/fail.hpp"
#include "cli/known_nfs.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
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

/// Prints a line a second while a chain runs.
class LiveLine {
 public:
  explicit LiveLine(Chain const& chain) : thread_([this, &chain] { work(chain); }) {}
  ~LiveLine() {
    done_ = true;
    thread_.join();
  }
  LiveLine(LiveLine const&) = delete;
  LiveLine& operator=(LiveLine const&) = delete;

 private:
  void work(Chain const& chain) {
    constexpr std::chrono::milliseconds kTick{20};
    chain::Progress last;
    auto next = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (int seconds = 1; !done_; std::this_thread::sleep_for(kTick)) {
      if (std::chrono::steady_clock::now() < next) {
        continue;
      }
      const chain::Progress now = chain.progress();
      std::cerr << fmt::format("{:>5} s  received {:>12}  sent {:>12}  dropped {:>10}  {:>9.3f} Mpps\n", seconds,
                               now.received, now.sent, now.dropped,
                               static_cast<double>(now.received - last.received) / 1e6);
      last = now;
      next += std::chrono::seconds(1);
      ++seconds;
    }
  }

  std::atomic<bool> done_{false};
  std::thread thread_;
};

Result<chain::RunOptions> options_of(RunArguments const& arguments, chain::PortConfig const& rx, std::size_t stages) {
  chain::RunOptions options;
  if (!arguments.rx.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.rx, chain::parse_rx_option(arguments.rx));
  }
  if (!arguments.tx.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.tx, chain::parse_tx_option(arguments.tx));
  }
  if (!arguments.device.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.device, device::parse_choice(arguments.device));
  }
  if (!arguments.sync.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.sync.mode, chain::parse_sync_option(arguments.sync));
  }
  options.sync.pushdown = arguments.pushdown != "off";
  if (arguments.profile.empty()) {
    options.profiles = chain::ProfileStore::from_environment();
  } else {
    CATENA_ASSIGN_OR_RETURN(options.sync.profile, chain::load_profile(arguments.profile));
  }
  options.record_path = arguments.record;
  options.eve_path = arguments.eve;
  options.trace_path = arguments.trace;
  options.new_keys = arguments.new_keys;
  if (!arguments.cores.empty()) {
    CATENA_ASSIGN_OR_RETURN(options.cores, chain::parse_cores(arguments.cores));
  }
  if (arguments.workers != 0) {
    options.workers = std::min(arguments.workers, static_cast<std::uint32_t>(stages));
  } else if (!options.cores.empty()) {
    options.workers = static_cast<std::uint32_t>(std::min(options.cores.size(), stages));
  } else {
    const auto usable = static_cast<std::uint32_t>(chain::usable_cores().size());
    options.workers = chain::default_workers(options.rx.value_or(rx), stages, usable);
  }
  return options;
}

}  // namespace

int run(RunArguments const& arguments) {
  Result<chain::ChainConfig> config = chain::load_chain(arguments.chain_file);
  if (!config.ok()) {
    return fail(config.status());
  }
  Result<chain::RunOptions> options = options_of(arguments, config->rx, config->nfs.size() + 2);
  if (!options.ok()) {
    return fail(options.status());
  }
  const Result<nf::Registry> registry = known_nfs(arguments.nf_path);
  if (!registry.ok()) {
    return fail(registry.status());
  }
  Result<std::unique_ptr<Chain>> chain = Chain::create(*std::move(config), *options, *registry);
  if (!chain.ok()) {
    return fail(chain.status());
  }
  for (std::string const& line : (*chain)->start_report()) {
    std::cerr << line << '\n';
  }
  running = chain->get();
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  Status status;
  {
    const LiveLine live(**chain);
    status = (*chain)->run();
  }
  running = nullptr;
  const chain::Report report = (*chain)->report();
  std::cout << (arguments.json ? chain::to_json(report) : chain::to_text(report)) << std::endl;
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
