// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace catena::service {

/// A line of the log of a chain.
struct ChainLogLine {
  std::uint64_t number = 0;  ///< larger than of all earlier lines of the service
  std::chrono::system_clock::time_point time;
  std::string level;
  std::string stage;    ///< of the chain; empty: of all of it
  std::string message;  ///< as log_line(), of at most kMaxMessageBytes
};

/// The last lines of each chain in the log, by LogContext. Any thread.
class ChainLog final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  static constexpr std::size_t kMaxLines = 128;
  static constexpr std::size_t kMaxMessageBytes = 512;
  /// The chain with the oldest last line is left out first.
  static constexpr std::size_t kMaxChains = 512;

  /// Of a chain, the oldest first; empty without any.
  std::vector<ChainLogLine> lines_of(std::string const& chain);
  /// So that the next chain of this name does not show them.
  void forget(std::string const& chain);

 protected:
  void sink_it_(spdlog::details::log_msg const& message) override;
  void flush_() override {}

 private:
  std::map<std::string, std::deque<ChainLogLine>> chains_;
  /// The last number. It begins with the time in microseconds, so that a service started again continues.
  std::uint64_t lines_ = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
};

/// The one of this process. A service makes it a sink of its log.
std::shared_ptr<ChainLog> const& chain_log();

}  // namespace catena::service
