// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/process_reports.hpp"

#include <utility>

namespace catena::nf_process {

namespace {

using Clock = std::chrono::steady_clock;

/// For which packets wait for a process that is started again.
constexpr std::chrono::seconds kPatience{1};

}  // namespace

void ProcessReports::add_nf() {
  const std::scoped_lock lock(mutex_);
  started_.emplace_back();
  statistics_.emplace_back();
  statistic_names_.emplace_back();
}

void ProcessReports::set_started(std::vector<Started> started, pid_t pid, std::shared_ptr<Connection> connection) {
  const std::scoped_lock lock(mutex_);
  started_ = std::move(started);
  pid_ = pid;
  new_connection_ = std::move(connection);
  is_delayed_ = false;
  died_at_.reset();
}

void ProcessReports::set_statistics(NfStatistics statistics) {
  const std::scoped_lock lock(mutex_);
  const std::size_t nf = statistics.nf;
  std::set<std::string>& names = statistic_names_[nf];
  if (names.empty()) {
    for (nf::Statistic const& statistic : statistics.statistics) {
      if (is_statistic_name(statistic.name)) {
        names.insert(statistic.name);
      }
    }
  }
  std::erase_if(statistics.statistics,
                [&names](nf::Statistic const& statistic) { return !names.contains(statistic.name); });
  statistics_[nf] = std::move(statistics);
}

void ProcessReports::set_dead() {
  const std::scoped_lock lock(mutex_);
  died_at_ = Clock::now();
}

void ProcessReports::set_delayed(bool is_delayed) {
  const std::scoped_lock lock(mutex_);
  is_delayed_ = is_delayed;
}

void ProcessReports::count_restart() {
  const std::scoped_lock lock(mutex_);
  ++restarts_;
}

void ProcessReports::set_ended(Status ended) {
  const std::scoped_lock lock(mutex_);
  ended_ = std::move(ended);
}

std::shared_ptr<Connection> ProcessReports::take_connection() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(new_connection_, nullptr);
}

bool ProcessReports::is_down() const {
  const std::scoped_lock lock(mutex_);
  return is_delayed_ || (died_at_ && Clock::now() - *died_at_ > kPatience);
}

std::uint64_t ProcessReports::restarts() const {
  const std::scoped_lock lock(mutex_);
  return restarts_;
}

pid_t ProcessReports::pid() const {
  const std::scoped_lock lock(mutex_);
  return pid_;
}

Status ProcessReports::ended() const {
  const std::scoped_lock lock(mutex_);
  return ended_;
}

std::vector<Started> ProcessReports::started() const {
  const std::scoped_lock lock(mutex_);
  return started_;
}

Started ProcessReports::started(std::size_t nf) const {
  const std::scoped_lock lock(mutex_);
  return started_[nf];
}

NfStatistics ProcessReports::statistics(std::size_t nf) const {
  const std::scoped_lock lock(mutex_);
  return statistics_[nf];
}

}  // namespace catena::nf_process
