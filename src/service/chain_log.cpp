// SPDX-License-Identifier: Apache-2.0
#include "service/chain_log.hpp"

#include "base/core/log_line.hpp"

#include <algorithm>

namespace catena::service {

std::vector<ChainLogLine> ChainLog::lines_of(std::string const& chain) {
  const std::lock_guard lock(mutex_);
  const auto found = chains_.find(chain);
  return found == chains_.end() ? std::vector<ChainLogLine>()
                                : std::vector<ChainLogLine>(found->second.begin(), found->second.end());
}

void ChainLog::forget(std::string const& chain) {
  const std::lock_guard lock(mutex_);
  chains_.erase(chain);
}

void ChainLog::sink_it_(spdlog::details::log_msg const& message) {
  std::string const& chain = LogContext::chain();
  if (chain.empty()) {
    return;
  }
  if (chains_.size() >= kMaxChains && !chains_.contains(chain)) {
    chains_.erase(std::ranges::min_element(chains_, {}, [](auto const& each) { return each.second.back().number; }));
  }
  std::deque<ChainLogLine>& lines = chains_[chain];
  if (lines.size() >= kMaxLines) {
    lines.pop_front();
  }
  const spdlog::string_view_t level = spdlog::level::to_string_view(message.level);
  std::string text = log_line({message.payload.data(), message.payload.size()});
  text.resize(std::min(text.size(), kMaxMessageBytes));
  lines.push_back({++lines_, message.time, std::string(level.data(), level.size()), std::string(LogContext::stage()),
                   std::move(text)});
}

std::shared_ptr<ChainLog> const& chain_log() {
  static const auto kLog = std::make_shared<ChainLog>();
  return kLog;
}

}  // namespace catena::service
