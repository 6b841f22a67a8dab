// SPDX-License-Identifier: Apache-2.0
#include "service/chain_run.hpp"

#include "base/core/log_context.hpp"
#include "pipeline/session.hpp"
#include "service/session_host.hpp"
#include "service/user_limits.hpp"

#include <catena/core/text.hpp>

#include <exception>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace catena::service {

using runtime::Session;

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
    : caller_(caller),
      number_(options.processes.chain),
      registry_(registry),
      host_(std::make_shared<SessionHost>(config.name)) {
  std::optional<runtime::PreviousPipeline> previous_pipeline;
  if (before != nullptr) {
    auto guest = std::make_shared<SessionHost::Guest>(before->host_);
    previous_pipeline = {guest->session(), guest};
  }
  try {
    thread_ = std::thread([host = host_, config = std::move(config), options = std::move(options),
                           caller = std::move(caller), &registry, before = std::move(previous_pipeline)]() mutable {
      const LogContext context(host->name());
      host->made(create_session(std::move(config), options, caller, registry, host->give_up(),
                                std::exchange(before, std::nullopt)));
      host->run();
    });
  } catch (std::system_error const& error) {
    host_->made(absl::ResourceExhaustedError(concat("no thread for the chain: ", error.what())));
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
  return host_->wait_until_made();
}

Status ChainRun::start() { return host_->start(); }

/// With the rights of the one who applied the chain, while the session stays.
template <typename Out>
Result<Out> ChainRun::with_session(std::function<Result<Out>(Session&)> const& work) {
  const SessionHost::Guest guest(host_);
  if (guest.session() == nullptr) {
    return absl::FailedPreconditionError(concat("chain '", host_->name(), "' is not running"));
  }
  Result<Out> result = absl::UnknownError("");
  try {
    std::thread([&] {
      const LogContext context(host_->name());
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
  const std::stop_callback on_stop(host_->give_up(), stop);
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

std::vector<std::string> ChainRun::changes() const { return host_->replacement().changes; }

std::vector<std::string> ChainRun::restarted_nfs() const { return host_->replacement().restarted; }

void ChainRun::stop() { host_->stop(); }

bool ChainRun::wait(std::chrono::milliseconds limit) { return host_->wait(limit); }

ChainState ChainRun::state() const { return host_->state(); }

std::string ChainRun::error() const { return host_->error(); }

runtime::Report ChainRun::report() const { return host_->report(); }

metrics::Snapshot ChainRun::counts() const { return host_->counts(); }

bool ChainRun::abandoned_device() const { return host_->abandoned_device(); }

}  // namespace catena::service
