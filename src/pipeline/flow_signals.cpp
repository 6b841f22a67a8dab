// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_signals.hpp"

#include "base/core/log_context.hpp"
#include "chain/flow_keys.hpp"

#include <catena/core/text.hpp>

#include <poll.h>

#include <chrono>
#include <string>
#include <system_error>
#include <utility>

namespace catena::runtime {
namespace {

Status at_signals(chain::FlowSignalsConfig const& config, Status const& status) {
  return {status.code(), concat(config.position, ": 'signals': ", std::string(status.message()))};
}

}  // namespace

Result<std::unique_ptr<FlowSignals>> FlowSignals::create(chain::FlowSignalsConfig const& config,
                                                         std::shared_ptr<SourcePauses> pauses) {
  CATENA_ASSIGN_OR_RETURN(std::vector<std::uint8_t> key, chain::read_signal_key(config));
  std::unique_ptr<FlowSignals> signals(new FlowSignals(config, std::move(key), std::move(pauses)));
  if (config.listen) {
    if (const Status status = signals->upstream_.listen(*config.listen); !status.ok()) {
      return at_signals(config, status);
    }
  }
  for (SocketAddress const& address : config.downstream) {
    if (const Status status = signals->downstream_.add(address); !status.ok()) {
      return at_signals(config, status);
    }
  }
  try {
    signals->thread_ = std::thread(in_log_context([own = signals.get()] { own->serve(); }));
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat("no thread for the signals of 'flow': ", error.what()));
  }
  return signals;
}

void FlowSignals::end() {
  is_ending_ = true;
  end_.ring();
  if (thread_.joinable()) {
    thread_.join();
  }
  upstream_.close();
  downstream_.close();
  transport_.erase_key();
}

bool FlowSignals::serves(chain::FlowSignalsConfig const& config) const {
  const Result<std::vector<std::uint8_t>> key = chain::read_signal_key(config);
  return config.listen == config_.listen && config.downstream == config_.downstream && key.ok() &&
         transport_.has_key(*key);
}

FlowSignals::Counts FlowSignals::counts() const {
  return {.sent = upstream_.sent(),
          .received = upstream_.received() + downstream_.received(),
          .stale = upstream_.stale() + downstream_.stale(),
          .forged = transport_.forged(),
          .timeouts = downstream_.timeouts(),
          .unsent = transport_.unsent(),
          .askers = upstream_.requesters(),
          .silent = downstream_.silent()};
}

void FlowSignals::serve() {
  using Clock = std::chrono::steady_clock;
  std::vector<pollfd> watched{{end_.descriptor(), POLLIN, 0}, {pauses_->changed().descriptor(), POLLIN, 0}};
  if (upstream_.is_listening()) {
    watched.push_back({upstream_.socket(), POLLIN, 0});
  }
  for (const int socket : downstream_.sockets()) {
    watched.push_back({socket, POLLIN, 0});
  }
  while (!is_ending_) {
    ::poll(watched.data(), watched.size(), static_cast<int>(upstream_.interval(Clock::now()).count()));
    pauses_->changed().quiet();
    const Clock::time_point now = Clock::now();
    if (upstream_.is_listening()) {
      upstream_.reply(downstream_.hops(), now);
      upstream_.signal(pauses_->any(), downstream_.hops(), now);
    }
    downstream_.exchange(now);
  }
}

}  // namespace catena::runtime
