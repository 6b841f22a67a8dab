// SPDX-License-Identifier: Apache-2.0
// A session at work: from its start to its end.
#include "base/core/log_context.hpp"
#include "chain/change.hpp"
#include "pipeline/device_monitor.hpp"
#include "pipeline/session.hpp"

#include <catena/core/text.hpp>
#include <catena/nf/portable.hpp>

#include <chrono>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace catena::runtime {
namespace {

/// Maximum wait of a change for a session that is about to take over.
constexpr std::chrono::seconds kSettlingTime{2};

/// Destroys `session` in another thread: a device takes milliseconds to free its memory, and packets would wait.
std::jthread end_beside(std::shared_ptr<void> session) {
  try {
    return std::jthread(in_log_context([session = std::move(session)]() mutable { session.reset(); }));
  } catch (std::system_error const&) {  // no more threads: it ends here
    return {};
  }
}

}  // namespace

CountedParts Session::counted_parts() const {
  CountedParts parts = pipeline_.counted_parts();
  parts.flow = flow_.get();
  parts.recovery = devices_.recovery();
  for (auto const& pool : ends_.pools()) {
    parts.pools.push_back(pool.get());
  }
  return parts;
}

Status Session::start() {
  if (is_started_.exchange(true)) {
    return absl::OkStatus();
  }
  if (takeover_) {
    return takeover_->start();
  }
  ends_.start();
  return absl::OkStatus();
}

Status Session::run() {
  telemetry_.begin();
  CATENA_RETURN_IF_ERROR(start());
  Status outcome;
  bool is_empty = false;
  try {
    outcome = run_to_end(is_empty);
  } catch (std::exception const& error) {  // out of memory, or of threads; the next session must not wait for ever
    outcome = absl::ResourceExhaustedError(error.what());
    ends_.stop();
  }
  flow_->end(is_followed());
  telemetry_.end();
  end_.finish(outcome, is_empty);
  return outcome;
}

Status Session::take_over() {
  takeover_->wait(flow_->pauses());
  const std::unique_lock lock(nfs_mutex_);  // a later session finds all state here
  pipeline_.for_each_entry([](std::size_t /*shard*/, NfEntry const& entry) {
    if (entry.is_kept) {
      entry.instance->board().publish(entry.instance->nf());  // its thread before has ended
    }
  });
  telemetry_.settle();
  return takeover_->finish();
}

/// The lock of the NFs, once this session has all state of the previous one. Unavailable: not yet.
Result<std::unique_lock<std::mutex>> Session::lock_settled() {
  std::unique_lock lock(nfs_mutex_);
  for (const auto end = std::chrono::steady_clock::now() + kSettlingTime; takeover_ && takeover_->is_pending();) {
    lock.unlock();
    if (std::chrono::steady_clock::now() >= end) {
      return absl::UnavailableError("the chain before this one has not ended yet: try again");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  return lock;
}

/// With the lock of the NFs of `before`. Other reasons against it show while this session is made.
Status Session::can_replace(Session const& before) const {
  CATENA_RETURN_IF_ERROR(chain::has_same_ends(before.config_, config_));
  if (before.telemetry_.is_traced() || telemetry_.is_traced()) {
    return absl::FailedPreconditionError("its launches are traced, and a trace is of one chain");
  }
  return absl::OkStatus();
}

Result<bool> Session::is_same(chain::ChainConfig const& next) {
  CATENA_ASSIGN_OR_RETURN(const std::unique_lock<std::mutex> lock, lock_settled());
  return is_same_chain(config_, pipeline_, next);
}

void Session::release_nfs() {
  std::vector<nf::Instance const*> released;
  pipeline_.for_each_entry([&released](std::size_t /*shard*/, NfEntry const& entry) {
    if (dynamic_cast<nf::Portable const*>(&entry.instance->nf()) != nullptr) {
      released.push_back(entry.instance.get());
    }
  });
  end_.pass_on(std::move(released));
}

/// `is_empty`: set if no packet is in flight, even if something else fails later.
Status Session::run_to_end(bool& is_empty) {
  Status status = takeover_ ? take_over() : absl::OkStatus();
  const std::jthread ending = takeover_ ? end_beside(takeover_->release()) : std::jthread();
  if (status.ok()) {
    const DeviceMonitor device_monitor(
        devices_.recovery(), devices_.sharing(), [this] { return traffic(); },
        [this] { return std::unique_lock(nfs_mutex_, std::try_to_lock); });
    status = pipeline_.run(placement_.layout().workers, options_.cores, end_.stop_flag());
  }
  const bool is_passed_on = end_.decide();
  is_empty = status.ok();
  if (is_empty) {
    finish_nfs(status);
  }
  pipeline_.for_each_entry(
      [](std::size_t /*shard*/, NfEntry const& entry) { entry.instance->board().end(entry.instance->nf()); });
  for (RxStage const* rx : pipeline_.rx()) {
    status.Update(rx->error());
  }
  ends_.stop();  // where another stage's error ended the run
  status.Update(ends_.finish(telemetry_.traces(), is_passed_on));
  return status;
}

/// All are asked: one that cannot write its state is no reason to lose those of others.
void Session::finish_nfs(Status& status) {
  pipeline_.for_each_entry([&](std::size_t /*shard*/, NfEntry const& entry) {
    if (end_.is_migrated(*entry.instance)) {
      return;
    }
    if (const Status end = entry.instance->nf().finish(); !end.ok()) {
      const std::string who = concat("NF '", entry.config.name, "': ");
      const std::string what(end.message());
      // the session in an NF's own process has said whose it is
      status.Update(Status(end.code(), what.starts_with(who) ? what : who + what));
    }
  });
}

Result<std::optional<Replacement>> Session::sample_traffic(nf::Registry const& registry) {
  const GpuSharing::Traffic so_far = traffic();
  const std::optional<std::uint32_t> bytes = placement_.sample(so_far.rx_packets, so_far.rx_bytes);
  if (!bytes) {
    return std::nullopt;
  }
  CATENA_ASSIGN_OR_RETURN(const std::unique_lock<std::mutex> lock, lock_settled());
  return placement_.find_better(config_, options_, pipeline_, *bytes, registry);
}

}  // namespace catena::runtime
