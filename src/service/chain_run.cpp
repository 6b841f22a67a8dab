// SPDX-License-Identifier: Apache-2.0
#include "service/chain_run.hpp"

#include "base/core/keep.hpp"
#include "base/core/log_context.hpp"
#include "pipeline/session.hpp"
#include "service/user_limits.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace catena::service {

using runtime::Session;

std::string_view to_string(ChainState state) {
  switch (state) {
    case ChainState::kStarting:
      return "starting";
    case ChainState::kRunning:
      return "running";
    case ChainState::kStopped:
      return "stopped";
    case ChainState::kFinished:
      return "finished";
    case ChainState::kFailed:
      return "failed";
  }
  return {};
}

struct ChainRun::Shared {
  std::string name;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::unique_ptr<Session> session;  ///< null after the end
  ChainState state = ChainState::kStarting;
  Status status;  ///< of the run
  runtime::Report last_report;
  metrics::Snapshot last_counts;
  std::vector<std::string> changes;        ///< of the session
  std::vector<std::string> restarted_nfs;  ///< likewise
  std::stop_source give_up;                ///< of what the making of the session waits for
  bool is_made = false;                    ///< or could not be
  bool may_run = false;
  bool is_stopped = false;
  std::uint32_t guests = 0;  ///< threads of others that are in the session
  bool abandoned_device = false;

  void log_start() const {
    for (std::string const& line : session->start_report()) {
      if (line.starts_with("WARNING")) {
        spdlog::warn("{}: {}", name, line);
      }
    }
    spdlog::info("{}: runs", name);
  }

  void log_end() const {
    if (state == ChainState::kFailed) {
      spdlog::error("{}: failed: {}", name, std::string(status.message()));
    } else {
      spdlog::info("{}: {}, received {}, sent {}, dropped {}", name, to_string(state), last_report.rx.received,
                   last_report.tx.sent, last_report.dropped());
    }
  }

  Status stopped() const {
    return absl::CancelledError(concat("chain '", name, "' was stopped while it was being started"));
  }

  /// In the chain's thread.
  void made(Result<std::unique_ptr<Session>> created) {
    const std::lock_guard lock(mutex);
    is_made = true;
    if (created.ok()) {
      session = *std::move(created);
      changes = session->changes();
      restarted_nfs = session->restarted_nfs();
    } else {
      status = is_stopped ? absl::OkStatus() : created.status();
      state = is_stopped ? ChainState::kStopped : ChainState::kFailed;
    }
    changed.notify_all();
  }

  /// In the chain's thread, when the session is there.
  void run() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return may_run || is_stopped; });
    if (may_run) {
      log_start();
      if (is_stopped) {
        session->stop();
      }
      lock.unlock();
      Status ended = run_session();
      lock.lock();
      status = std::move(ended);
    }
    end(lock);
  }

  Status run_session() {
    try {
      return session->run();
    } catch (std::exception const& error) {  // out of memory, or of threads
      return absl::ResourceExhaustedError(error.what());
    }
  }

  void end(std::unique_lock<std::mutex>& lock) {
    changed.wait(lock, [this] { return guests == 0; });
    last_report = session->report();
    last_report.error = std::string(status.message());
    last_counts = session->counts();
    abandoned_device = session->abandoned_device();
    const bool is_followed = session->is_followed();
    std::unique_ptr<Session> ended = std::move(session);
    lock.unlock();
    if (abandoned_device) {
      // to take down a device whose kernel never ends would wait for ever; ports stay open with it
      keep_until_exit(std::move(ended));
    }
    ended.reset();  // closes ports and outputs, before anyone is told
    lock.lock();
    const bool has_finished = !is_stopped && !is_followed;
    state = !status.ok() ? ChainState::kFailed : has_finished ? ChainState::kFinished : ChainState::kStopped;
    log_end();
    changed.notify_all();
  }

  bool has_ended() const { return state != ChainState::kStarting && state != ChainState::kRunning; }
};

/// Keeps the session of a chain that runs from ending, as long as it lives.
class ChainRun::Guest {
 public:
  explicit Guest(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->state == ChainState::kRunning && shared_->session != nullptr && !shared_->is_stopped) {
      session_ = shared_->session.get();
      ++shared_->guests;
    }
  }
  ~Guest() {
    const std::lock_guard lock(shared_->mutex);
    if (session_ != nullptr) {
      --shared_->guests;
      shared_->changed.notify_all();
    }
  }
  Guest(Guest const&) = delete;
  Guest& operator=(Guest const&) = delete;

  /// Null: the chain does not run.
  Session* session() const { return session_; }

 private:
  std::shared_ptr<Shared> shared_;
  Session* session_ = nullptr;
};

namespace {

Result<std::unique_ptr<Session>> create_session(chain::ChainConfig config, runtime::RunOptions const& options,
                                                Caller const& caller, nf::Registry const& registry,
                                                std::stop_token const& give_up,
                                                std::optional<runtime::PreviousPipeline> before) {
  try {
    CATENA_RETURN_IF_ERROR(take_rights_of(caller));
    const nf::YamlScope scope(yaml_limits(caller));
    if (before && before->session == nullptr) {
      return absl::FailedPreconditionError(concat("chain '", config.name, "' is not running"));
    }
    return Session::create(std::move(config), options, registry, give_up, std::move(before));
  } catch (std::exception const& error) {
    return absl::ResourceExhaustedError(error.what());
  }
}

}  // namespace

ChainRun::ChainRun(chain::ChainConfig config, runtime::RunOptions options, Caller caller, nf::Registry const& registry,
                   std::shared_ptr<ChainRun> const& before)
    : caller_(caller), number_(options.processes.chain), registry_(registry), shared_(std::make_shared<Shared>()) {
  shared_->name = config.name;
  std::optional<runtime::PreviousPipeline> previous_pipeline;
  if (before != nullptr) {
    auto guest = std::make_shared<Guest>(before->shared_);
    previous_pipeline = {guest->session(), guest};
  }
  try {
    thread_ = std::thread([shared = shared_, config = std::move(config), options = std::move(options),
                           caller = std::move(caller), &registry, before = std::move(previous_pipeline)]() mutable {
      const LogContext context(shared->name);
      shared->made(create_session(std::move(config), options, caller, registry, shared->give_up.get_token(),
                                  std::exchange(before, std::nullopt)));
      if (shared->session != nullptr) {
        shared->run();
      }
    });
  } catch (std::system_error const& error) {
    shared_->made(absl::ResourceExhaustedError(concat("no thread for the chain: ", error.what())));
  }
}

ChainRun::~ChainRun() {
  stop();
  constexpr std::chrono::seconds kLimit{10};
  if (!thread_.joinable()) {
    return;
  }
  if (wait(kLimit)) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

Status ChainRun::wait_until_ready(std::stop_token const& gone) {
  const std::stop_callback on_gone(gone, [this] { stop(); });
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait(lock, [this] { return shared_->is_made; });
  return shared_->is_stopped ? shared_->stopped() : shared_->status;
}

Status ChainRun::start() {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->is_stopped) {
    return shared_->stopped();
  }
  // what arrives from here on is the chain's, though its thread takes a moment to run
  CATENA_RETURN_IF_ERROR(shared_->session->start());
  shared_->may_run = true;
  shared_->state = ChainState::kRunning;
  shared_->changed.notify_all();
  return absl::OkStatus();
}

/// With the rights of the one who applied the chain, while the session stays.
template <typename Out>
Result<Out> ChainRun::with_session(std::function<Result<Out>(Session&)> const& work) {
  const Guest guest(shared_);
  if (guest.session() == nullptr) {
    return absl::FailedPreconditionError(concat("chain '", shared_->name, "' is not running"));
  }
  Result<Out> result = absl::UnknownError("");
  try {
    std::thread([&] {
      const LogContext context(shared_->name);
      try {
        const Status rights = take_rights_of(caller_);
        const nf::YamlScope scope(yaml_limits(caller_));
        result = rights.ok() ? work(*guest.session()) : Result<Out>(rights);
      } catch (std::exception const& error) {
        result = absl::ResourceExhaustedError(error.what());
      }
    }).join();
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat("no thread for a change of the chain: ", error.what()));
  }
  return result;
}

/// `work` gives up what it waits for with `gone`, and with the chain.
template <typename Out>
Result<Out> ChainRun::with_session(std::stop_token const& gone,
                                   std::function<Result<Out>(Session&, std::stop_token const&)> const& work) {
  std::stop_source give_up;
  const auto stop = [&give_up] { give_up.request_stop(); };
  const std::stop_callback on_gone(gone, stop);
  const std::stop_callback on_stop(shared_->give_up.get_token(), stop);
  return with_session<Out>([&](Session& session) { return work(session, give_up.get_token()); });
}

Result<bool> ChainRun::is_same(chain::ChainConfig const& next) {
  return with_session<bool>([&](Session& session) { return session.is_same(next); });
}

Result<std::optional<runtime::Replacement>> ChainRun::sample_traffic() {
  if (state() != ChainState::kRunning) {
    return std::nullopt;
  }
  return with_session<std::optional<runtime::Replacement>>(
      [&](Session& session) { return session.sample_traffic(registry_); });
}

Result<runtime::ReplacementPreview> ChainRun::preview_replacement(chain::ChainConfig next,
                                                                  runtime::RunOptions const& options,
                                                                  std::stop_token const& gone) {
  return with_session<runtime::ReplacementPreview>(gone, [&](Session& session, std::stop_token const& give_up) {
    return Session::preview_replacement(std::move(next), options, registry_, give_up, {&session, nullptr});
  });
}

Result<std::vector<std::string>> ChainRun::restarted_nfs_of(chain::ChainConfig const& next) {
  return with_session<std::vector<std::string>>(
      [&](Session& session) { return Result<std::vector<std::string>>(session.restarted_nfs_of(next, registry_)); });
}

std::vector<std::string> ChainRun::changes() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->changes;
}

std::vector<std::string> ChainRun::restarted_nfs() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->restarted_nfs;
}

void ChainRun::stop() {
  const std::lock_guard lock(shared_->mutex);
  shared_->is_stopped = true;
  shared_->give_up.request_stop();
  if (shared_->session != nullptr) {
    shared_->session->stop();
  }
  shared_->changed.notify_all();
}

bool ChainRun::wait(std::chrono::milliseconds limit) {
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, limit, [this] { return shared_->has_ended(); });
}

ChainState ChainRun::state() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->state;
}

std::string ChainRun::error() const {
  const std::lock_guard lock(shared_->mutex);
  return std::string(shared_->status.message());
}

runtime::Report ChainRun::report() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->session != nullptr ? shared_->session->report() : shared_->last_report;
}

metrics::Snapshot ChainRun::counts() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->session != nullptr ? shared_->session->counts() : shared_->last_counts;
}

bool ChainRun::abandoned_device() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->abandoned_device;
}

}  // namespace catena::service
