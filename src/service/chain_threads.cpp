// SPDX-License-Identifier: Apache-2.0
#include "service/chain_threads.hpp"

#include "base/core/log_context.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <system_error>
#include <utility>

namespace catena::service {

ChainThreads::~ChainThreads() {
  for (auto& [chain, work] : works_) {  // threads change only the content of what is here
    work.thread.join();
  }
}

Status ChainThreads::run(std::string const& chain, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  for (auto each = works_.begin(); each != works_.end();) {
    if (each->second.has_ended) {
      each->second.thread.join();  // its last step was to set this
    }
    each = each->second.has_ended ? works_.erase(each) : std::next(each);
  }
  const auto [found, is_free] = works_.try_emplace(chain);
  if (!is_free) {
    return absl::AbortedError(concat("chain '", chain, "' is at work"));
  }
  try {
    found->second.thread = std::thread([this, chain, &state = found->second, work = std::move(work)]() mutable {
      const LogContext context(chain);
      try {
        std::exchange(work, nullptr)();        // with what it holds
      } catch (std::exception const& error) {  // out of memory, or of threads: other chains run on
        spdlog::error("{}: {}", chain, error.what());
      }
      const std::lock_guard end(mutex_);
      state.has_ended = true;
      ended_.notify_all();
    });
  } catch (std::system_error const& error) {
    works_.erase(found);
    return absl::ResourceExhaustedError(concat("no thread for its start: ", error.what()));
  }
  return absl::OkStatus();
}

bool ChainThreads::is_at_work(std::string const& chain) const {
  const std::lock_guard lock(mutex_);
  const auto found = works_.find(chain);
  return found != works_.end() && !found->second.has_ended;
}

bool ChainThreads::wait(std::chrono::steady_clock::time_point until) const {
  std::unique_lock lock(mutex_);
  return ended_.wait_until(lock, until, [this] {
    return std::ranges::all_of(works_, [](auto const& each) { return each.second.has_ended; });
  });
}

}  // namespace catena::service
