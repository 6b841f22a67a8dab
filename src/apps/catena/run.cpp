// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/known_nfs.hpp"
#include "apps/catena/style.hpp"
#include "base/core/name_watch.hpp"
#include "base/core/scale.hpp"
#include "chain/named_files.hpp"
#include "gpu/device/remote/server_pool.hpp"
#include "pipeline/device_servers.hpp"
#include "pipeline/isolation.hpp"
#include "pipeline/losses.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <stop_token>
#include <thread>

namespace catena::cli {
namespace {

using runtime::Session;

std::atomic<Session*> running{nullptr};
static_assert(std::atomic<Session*>::is_always_lock_free, "used in a signal handler");
std::atomic<bool> is_to_end{false};
static_assert(std::atomic<bool>::is_always_lock_free, "used in a signal handler");

void on_signal(int signal) {
  is_to_end = true;
  if (Session* session = running.load(); session != nullptr) {
    session->stop();
  }
  // `timeout -s INT` and terminals may signal twice at once: only the third ends the process without a report
  if (static std::atomic<int> signals{0}; ++signals == 2) {
    std::signal(signal, SIG_DFL);
  }
}

/// Between the checks of the threads below.
constexpr std::chrono::milliseconds kTick{20};

/// Rests for a tick, or until `end` is requested: the next pipeline receives nothing before these threads have ended.
void rest(std::stop_token const& end) {
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  ended.wait_for(lock, end, kTick, [] { return false; });
}

std::atomic<bool> has_hung_up{false};

void on_hangup(int /*signal*/) {
  has_hung_up = true;
  check_names_of_outputs();
}

void on_rotation(int /*signal*/) { check_names_of_outputs(); }

/// From now on SIGHUP is noted, also during the start, which it does not end. A terminal ends the program by it, and
/// nohup has it ignored, as ever. SIGUSR1 has outputs opened again after a rotation of logs, as SIGHUP does.
void note_signals() {
  std::signal(SIGUSR1, on_rotation);
  if (isatty(STDIN_FILENO) == 0 && std::signal(SIGHUP, on_hangup) == SIG_IGN) {
    std::signal(SIGHUP, SIG_IGN);
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
  LiveLine(Session const& session, bool quiet) {
    if (!quiet) {
      thread_ = std::jthread([&session](std::stop_token const& end) { work(session, end); });
    }
  }

 private:
  static void work(Session const& session, std::stop_token const& end) {
    runtime::RunProgress last = session.progress();
    auto next = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (int seconds = 1; !end.stop_requested(); rest(end)) {
      if (std::chrono::steady_clock::now() < next) {
        continue;
      }
      const runtime::RunProgress now = session.progress();
      std::cerr << fmt::format("{:>5} s  received {:>12}  sent {:>12}  dropped {:>10}  {:>9}{}\n", seconds,
                               now.received, now.sent, now.dropped,
                               rate_text(static_cast<double>(now.received - last.received), "pps"),
                               outlook(now.part_done, seconds));
      last = now;
      next += std::chrono::seconds(1);
      ++seconds;
    }
  }

  std::jthread thread_;
};

/// Has a chain follow its file, where SIGHUP says that this has changed, and the packets that come, where NFs are `on:
/// auto`. From a terminal that signal says that nobody is there any more, and ends the program as ever.
class Follower {
 public:
  Follower(std::shared_ptr<Session> session, RunArguments const& arguments, runtime::RunOptions options,
           nf::Registry const& registry)
      : session_(std::move(session)),
        file_(arguments.chain_file),
        over_file_(arguments.options),
        accepts_loss_(arguments.accepts_loss),
        options_(std::move(options)),
        registry_(registry) {
    thread_ = std::jthread([this](std::stop_token const& end) { work(end); });
  }
  ~Follower() = default;
  Follower(Follower const&) = delete;
  Follower& operator=(Follower const&) = delete;

  /// After the session's run: the one that takes over from it; null: none does.
  std::unique_ptr<Session> next() {
    thread_.request_stop();
    thread_.join();
    return std::move(next_);
  }

 private:
  void work(std::stop_token const& end) {
    using Clock = std::chrono::steady_clock;
    auto next_check = Clock::now() + runtime::TrafficWatch::kPeriod;
    while (next_ == nullptr) {
      rest(end);
      if (end.stop_requested()) {
        return;
      }
      if (has_hung_up.exchange(false)) {
        follow();
      } else if (Clock::now() >= next_check) {
        next_check += runtime::TrafficWatch::kPeriod;
        sample_traffic();
      }
    }
  }

  void follow() {
    Result<chain::ChainConfig> next = chain::load_chain(file_, over_file_, chain::environment_variables());
    const Result<bool> is_same = next.ok() ? session_->is_same(*next) : next.status();
    if (!is_same.ok()) {
      return stay(is_same.status());
    }
    if (*is_same) {
      spdlog::info("{}: nothing has changed", file_);
      return;
    }
    take_over(*std::move(next));
  }

  void stay(Status const& why) const {
    spdlog::error("{}: the chain keeps running unchanged: {}", file_, std::string(why.message()));
  }

  /// The losses of a session that replaces this one; empty after another error.
  static runtime::Losses losses_of(Result<std::unique_ptr<Session>> const& next) {
    return {absl::IsFailedPrecondition(next.status()) ? std::string(next.status().message()) : std::string(),
            next.ok() ? (*next)->restarted_nfs() : std::vector<std::string>()};
  }

  /// Another one goes on for this one.
  void take_over(chain::ChainConfig config) {
    runtime::RunOptions options = options_;
    Result<chain::RunOptions> of_file = chain::run_options_of(config);
    if (!of_file.ok()) {
      return stay(of_file.status());
    }
    static_cast<chain::RunOptions&>(options) = *std::move(of_file);
    if (const Status status = runtime::allow_processes(config, options); !status.ok()) {
      return stay(status);
    }
    if (runtime::needs_servers(config) && options.open_device == nullptr) {
      return stay(
          absl::FailedPreconditionError("its NFs in processes need a device server, which a run has from its start"));
    }
    Result<std::unique_ptr<Session>> next = create(std::move(config), options);
    if (const runtime::Losses losses = losses_of(next);
        !losses.packets.empty() || (!losses.empty() && !accepts_loss_)) {
      return stay(absl::FailedPreconditionError(
          fmt::format("its replacement would lose {}. To accept this, {}", fmt::join(runtime::describe(losses), ", "),
                      losses.packets.empty() ? "start the run with --accept-loss" : "end the run and start it again")));
    }
    follow_with(std::move(next));
  }

  /// An NF that moves keeps its state, or stays.
  void sample_traffic() {
    if (keeps_placement_) {
      return;
    }
    Result<std::optional<runtime::Replacement>> found = session_->sample_traffic(registry_);
    if (!found.ok()) {
      spdlog::warn("{}: NFs stay where they are: {}", file_, std::string(found.status().message()));
    } else if (*found) {
      Result<std::unique_ptr<Session>> next = create(std::move((*found)->config), (*found)->options);
      const runtime::Losses losses = losses_of(next);
      keeps_placement_ = !losses.nf_states.empty();
      if (keeps_placement_) {
        spdlog::warn("{}: NFs stay where they are, now and later, because a move ({}) would lose {}", file_,
                     (*found)->why, fmt::join(runtime::describe(losses), ", "));
        return;
      }
      spdlog::info("{}: placement changes: {}", file_, (*found)->why);
      follow_with(std::move(next));
    }
  }

  Result<std::unique_ptr<Session>> create(chain::ChainConfig config, runtime::RunOptions const& options) {
    return Session::create(std::move(config), options, registry_, {},
                           runtime::PreviousPipeline{session_.get(), session_});
  }

  void follow_with(Result<std::unique_ptr<Session>> next) {
    const std::vector<std::string> changes = next.ok() ? (*next)->changes() : std::vector<std::string>();
    if (const Status status = next.ok() ? (*next)->start() : next.status(); !status.ok()) {
      return stay(status);
    }
    spdlog::info("{}: chain replaced{}{}", file_, changes.empty() ? "" : ", changed: ", fmt::join(changes, "; "));
    next_ = *std::move(next);
  }

  std::shared_ptr<Session> session_;
  std::string file_;
  chain::GivenOptions over_file_;
  bool accepts_loss_;
  runtime::RunOptions options_;  ///< of the start: the next one has its objects, and the settings of its file
  nf::Registry const& registry_;
  bool keeps_placement_ = false;   ///< another placement would lose NF state. Of the thread
  std::unique_ptr<Session> next_;  ///< of the thread
  std::jthread thread_;
};

/// Runs the session, and those that go on for it, of which the last one is in `session` then.
Status run_and_follow(std::shared_ptr<Session>& session, RunArguments const& arguments,
                      runtime::RunOptions const& options, nf::Registry const& registry) {
  while (true) {
    Status status;
    std::unique_ptr<Session> next;
    {
      const LiveLine live(*session, arguments.quiet);
      Follower follower(session, arguments, options, registry);
      status = session->run();
      next = follower.next();
    }
    if (next == nullptr) {
      return status;
    }
    if (!status.ok()) {
      spdlog::error("{}: the replaced chain: {}", arguments.chain_file, std::string(status.message()));
    }
    running = next.get();
    session = std::move(next);  // which has the one before until it has taken over
    if (is_to_end) {
      session->stop();
    }
  }
}

}  // namespace

int run(RunArguments const& arguments) {
  note_signals();
  Result<chain::ChainConfig> config =
      chain::load_chain(arguments.chain_file, arguments.options, chain::environment_variables());
  if (!config.ok()) {
    return fail(config.status(), arguments.json);
  }
  std::unique_ptr<device::remote::ServerPool> servers;  // ends after what has its groups
  Result<chain::RunOptions> of_file = chain::run_options_of(*config);
  if (!of_file.ok()) {
    return fail(of_file.status(), arguments.json);
  }
  runtime::RunOptions options{*std::move(of_file)};
  options.new_keys = arguments.new_keys;
  if (Status status = runtime::allow_processes(*config, options); !status.ok()) {
    return fail(status, arguments.json);
  }
  const bool has_servers = config->run.device_servers != "none";
  const Result<runtime::ServersFor> servers_for =
      runtime::parse_servers_for(has_servers ? config->run.device_servers : "device");
  if (!servers_for.ok()) {
    return fail(servers_for.status(), arguments.json);
  }
  if (Status status = runtime::check_servers(*servers_for, options.sharing); !status.ok()) {
    return fail(status, arguments.json);
  }
  if (has_servers || runtime::needs_servers(*config)) {
    const Result<std::string> program = device::remote::find_server_program();
    if (!program.ok()) {
      return fail(program.status(), arguments.json);
    }
    servers = std::make_unique<device::remote::ServerPool>(
        device::remote::ServerPool::Options{*program, runtime::server_limits(options.sharing)});
    runtime::use_servers(*servers, {config->name, config->tenant, *servers_for}, options);
  }
  const Result<nf::Registry> registry = known_nfs(arguments.nf_path);
  if (!registry.ok()) {
    return fail(registry.status(), arguments.json);
  }
  // where packets or lines go to standard output, nothing else must
  const bool to_stderr = chain::writes_to_standard_output(*config, options);
  Result<std::unique_ptr<Session>> created = Session::create(*std::move(config), options, *registry);
  options.new_keys.clear();  // said of this start, and of none that follows it
  if (!created.ok()) {
    return fail(created.status(), arguments.json, to_stderr ? std::cerr : std::cout);
  }
  std::shared_ptr<Session> session = *std::move(created);
  // before anybody can read that the run begins
  running = session.get();
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  for (std::string const& line : session->start_report()) {
    if (!arguments.quiet || line.starts_with("WARNING")) {
      print(std::cerr, line, has_colours(STDERR_FILENO));
    }
  }
  Status status = run_and_follow(session, arguments, options, *registry);
  running = nullptr;
  runtime::Report report = session->report();
  report.error = std::string(status.message());
  print(to_stderr ? std::cerr : std::cout,
        arguments.json ? runtime::to_json(report)
                       : concat(runtime::to_text(report), arguments.verbose ? runtime::stages_text(report) : ""),
        !arguments.json && has_colours(to_stderr ? STDERR_FILENO : STDOUT_FILENO));
  if (!status.ok()) {
    static_cast<void>(fail(status));
  }
  const int exit_status = status.ok() ? kExitOk : kExitFailed;
  if (session->abandoned_device()) {
    // a kernel that never ended would keep the driver's own clean-up waiting for ever
    std::_Exit(exit_status);
  }
  return exit_status;
}

}  // namespace catena::cli
