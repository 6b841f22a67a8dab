// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/isolation/connection.hpp"
#include "pipeline/isolation/protocol.hpp"

#include <catena/core/status.hpp>

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace catena::nf_process {

/// Reports about an NF process: its incarnation, and the last reports of its NFs. Written by its supervisor, read by
/// any thread.
class ProcessReports {
 public:
  /// Of an NF added to the process.
  void add_nf();
  /// A new incarnation has started: its connection can be taken.
  void set_started(std::vector<Started> started, pid_t pid, std::shared_ptr<Connection> connection);
  /// Each name is a series of metrics: the first report with statistics fixes the names, of those that are
  /// is_statistic_name(). Later others are ignored.
  void set_statistics(NfStatistics statistics);
  /// The incarnation has ended; another one may follow.
  void set_dead();
  /// Whether the next incarnation is delayed.
  void set_delayed(bool is_delayed);
  void count_restart();
  /// The result of its NFs, after the last packet.
  void set_ended(Status ended);

  /// The connection of the new incarnation, if it was not taken yet; else null.
  std::shared_ptr<Connection> take_connection();
  /// Whether the next incarnation is delayed, or has not started within a second.
  bool is_down() const;
  std::uint64_t restarts() const;
  pid_t pid() const;
  Status ended() const;
  /// Of each NF.
  std::vector<Started> started() const;
  Started started(std::size_t nf) const;
  NfStatistics statistics(std::size_t nf) const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Connection> new_connection_;
  bool is_delayed_ = false;
  std::optional<std::chrono::steady_clock::time_point> died_at_;  ///< nullopt: it is running
  std::uint64_t restarts_ = 0;
  pid_t pid_ = 0;
  std::vector<Started> started_;                        ///< of each NF
  std::vector<NfStatistics> statistics_;                ///< of each NF
  std::vector<std::set<std::string>> statistic_names_;  ///< of each NF
  Status ended_ = absl::UnavailableError("its process ended before it had finished");
};

}  // namespace catena::nf_process
