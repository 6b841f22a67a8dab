// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace catena {

/// The chain and the stage of the calling thread's work: fields of its log lines. spdlog formats a message in the
/// thread of its caller, so messages need no name of their chain. Thread rule: each thread has its own.
class LogContext {
 public:
  /// For the lifetime of this object, in place of the present one.
  explicit LogContext(std::string chain, std::string stage = {})
      : outer_chain_(std::exchange(own_chain(), std::move(chain))), own_stage_(std::move(stage)) {
    outer_stage_ = std::exchange(present_stage(), own_stage_);
  }
  ~LogContext() {
    own_chain() = std::move(outer_chain_);
    present_stage() = outer_stage_;
  }
  LogContext(LogContext const&) = delete;
  LogContext& operator=(LogContext const&) = delete;

  static std::string const& chain() { return own_chain(); }
  static std::string_view stage() { return present_stage(); }
  /// For hot paths. `name` must outlive the present context.
  static void set_stage(std::string_view name) { present_stage() = name; }

 private:
  static std::string& own_chain() {
    static thread_local std::string chain;
    return chain;
  }
  static std::string_view& present_stage() {
    static thread_local std::string_view stage;
    return stage;
  }

  std::string outer_chain_;
  std::string own_stage_;
  std::string_view outer_stage_;
};

/// `work` for a new thread, with the chain of the calling one.
template <typename Work>
auto in_log_context(Work work) {
  return [work = std::move(work), chain = LogContext::chain()]() mutable {
    const LogContext context(std::move(chain));
    work();
  };
}

}  // namespace catena
