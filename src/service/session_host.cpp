// SPDX-License-Identifier: Apache-2.0
#include "service/session_host.hpp"

#include "base/core/keep.hpp"

#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

namespace catena::service {

SessionHost::SessionHost(std::string name) : lifecycle_(std::move(name)) {}

void SessionHost::made(Result<std::unique_ptr<runtime::Session>> created) {
  const std::lock_guard lock(mutex_);
  lifecycle_.made(created.status());
  if (created.ok()) {
    session_ = *std::move(created);
    replacement_ = {session_->changes(), session_->restarted_nfs()};
  }
  changed_.notify_all();
}

void SessionHost::run() {
  std::unique_lock lock(mutex_);
  if (session_ == nullptr) {
    return;
  }
  changed_.wait(lock, [this] { return lifecycle_.is_started() || lifecycle_.is_stopped(); });
  if (lifecycle_.is_started()) {
    log_start();
    if (lifecycle_.is_stopped()) {
      session_->stop();
    }
    lock.unlock();
    Status ended = run_session();
    lock.lock();
    lifecycle_.returned(std::move(ended));
  }
  end(lock);
}

Status SessionHost::run_session() {
  try {
    return session_->run();
  } catch (std::exception const& error) {  // out of memory, or of threads
    return absl::ResourceExhaustedError(error.what());
  }
}

void SessionHost::end(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return guests_ == 0; });
  results_ = {session_->report(), session_->counts(), session_->abandoned_device()};
  results_.report.error = std::string(lifecycle_.status().message());
  const bool is_followed = session_->is_followed();
  std::unique_ptr<runtime::Session> ended = std::move(session_);
  lock.unlock();
  if (results_.abandoned_device) {
    // to take down a device whose kernel never ends would wait for ever; ports stay open with it
    keep_until_exit(std::move(ended));
  }
  ended.reset();  // closes ports and outputs, before anyone is told
  lock.lock();
  lifecycle_.ended(is_followed);
  log_end();
  changed_.notify_all();
}

void SessionHost::log_start() const {
  for (std::string const& line : session_->start_report()) {
    if (line.starts_with("WARNING")) {
      spdlog::warn("{}: {}", name(), line);
    }
  }
  spdlog::info("{}: runs", name());
}

void SessionHost::log_end() const {
  if (lifecycle_.state() == ChainState::kFailed) {
    spdlog::error("{}: failed: {}", name(), std::string(lifecycle_.status().message()));
  } else {
    spdlog::info("{}: {}, received {}, sent {}, dropped {}", name(), to_string(lifecycle_.state()),
                 results_.report.rx.received, results_.report.tx.sent, results_.report.dropped());
  }
}

Status SessionHost::wait_until_made() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return lifecycle_.is_made(); });
  CATENA_RETURN_IF_ERROR(lifecycle_.can_start());
  return lifecycle_.status();
}

Status SessionHost::start() {
  const std::lock_guard lock(mutex_);
  CATENA_RETURN_IF_ERROR(lifecycle_.can_start());
  // what arrives from here on is the chain's, though its thread takes a moment to run
  CATENA_RETURN_IF_ERROR(session_->start());
  lifecycle_.started();
  changed_.notify_all();
  return absl::OkStatus();
}

void SessionHost::stop() {
  const std::lock_guard lock(mutex_);
  lifecycle_.stop();
  give_up_.request_stop();
  if (session_ != nullptr) {
    session_->stop();
  }
  changed_.notify_all();
}

bool SessionHost::wait(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return lifecycle_.has_ended(); });
}

ChainState SessionHost::state() const {
  const std::lock_guard lock(mutex_);
  return lifecycle_.state();
}

std::string SessionHost::error() const {
  const std::lock_guard lock(mutex_);
  return std::string(lifecycle_.status().message());
}

runtime::Report SessionHost::report() const {
  const std::lock_guard lock(mutex_);
  return session_ != nullptr ? session_->report() : results_.report;
}

metrics::Snapshot SessionHost::counts() const {
  const std::lock_guard lock(mutex_);
  return session_ != nullptr ? session_->counts() : results_.counts;
}

bool SessionHost::abandoned_device() const {
  const std::lock_guard lock(mutex_);
  return results_.abandoned_device;
}

runtime::ReplacementPreview SessionHost::replacement() const {
  const std::lock_guard lock(mutex_);
  return replacement_;
}

runtime::Session* SessionHost::enter() {
  const std::lock_guard lock(mutex_);
  if (!lifecycle_.is_running() || session_ == nullptr) {
    return nullptr;
  }
  ++guests_;
  return session_.get();
}

void SessionHost::leave() {
  const std::lock_guard lock(mutex_);
  --guests_;
  changed_.notify_all();
}

SessionHost::Guest::Guest(std::shared_ptr<SessionHost> host) : host_(std::move(host)), session_(host_->enter()) {}

SessionHost::Guest::~Guest() {
  if (session_ != nullptr) {
    host_->leave();
  }
}

}  // namespace catena::service
