// SPDX-License-Identifier: Apache-2.0
#include "static_check/checker/calls.hpp"

namespace catena::checker {

void Calls::add(clang::Decl const* caller, clang::Decl const* callee, clang::SourceLocation at) {
  std::vector<Call>& calls = calls_[caller->getCanonicalDecl()];
  if (calls.empty()) {
    callers_.push_back(caller->getCanonicalDecl());
  }
  calls.push_back({callee->getCanonicalDecl(), at});
}

std::vector<Calls::Call> Calls::recursive() const {
  enum class State { kOpen, kDone };
  struct Step {
    clang::Decl const* function;
    std::size_t next;
  };
  static const std::vector<Call> kNone;
  const auto of = [this](clang::Decl const* function) -> std::vector<Call> const& {
    const auto found = calls_.find(function);
    return found == calls_.end() ? kNone : found->second;
  };
  std::vector<Call> closing;
  std::map<clang::Decl const*, State> states;
  for (clang::Decl const* root : callers_) {
    if (states.contains(root)) {
      continue;
    }
    std::vector<Step> path{{root, 0}};
    states[root] = State::kOpen;
    while (!path.empty()) {
      std::vector<Call> const& calls = of(path.back().function);
      if (path.back().next == calls.size()) {
        states[path.back().function] = State::kDone;
        path.pop_back();
        continue;
      }
      Call const& call = calls[path.back().next++];
      const auto state = states.find(call.callee);
      if (state == states.end()) {
        states[call.callee] = State::kOpen;
        path.push_back({call.callee, 0});
      } else if (state->second == State::kOpen) {
        closing.push_back(call);
      }
    }
  }
  return closing;
}

}  // namespace catena::checker
