// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-static-check/calls.hpp"

#include <algorithm>

#include <clang/AST/ExprCXX.h>

namespace catena::checker {

void Calls::add(clang::Decl const* caller, clang::Decl const* callee, clang::SourceLocation at) {
  std::vector<Call>& calls = calls_[caller->getCanonicalDecl()];
  if (calls.empty()) {
    callers_.push_back(caller->getCanonicalDecl());
  }
  calls.push_back({callee->getCanonicalDecl(), at});

  auto const* method = llvm::dyn_cast<clang::CXXMethodDecl>(callee);
  if (method == nullptr || (method->isUserProvided() && !method->isDefaulted()) ||
      !followed_.insert(callee->getCanonicalDecl()).second) {
    return;
  }
  clang::FunctionDecl const* written = nullptr;
  add_unwritten(callee, method->getBody(written), at);
  auto const* constructor = llvm::dyn_cast_or_null<clang::CXXConstructorDecl>(written);
  if (constructor != nullptr) {
    for (clang::CXXCtorInitializer const* set : constructor->inits()) {
      add_unwritten(callee, set->getInit(), at);
    }
  }
}

void Calls::add_construction(clang::Decl const* caller, clang::CXXConstructorDecl const* constructor,
                             clang::SourceLocation at) {
  if (!constructor->isCopyOrMoveConstructor()) {
    add(caller, constructor->getParent(), at);
  }
  add(caller, constructor, at);
}

void Calls::add_unwritten(clang::Decl const* caller, clang::Stmt const* statement, clang::SourceLocation at) {
  if (statement == nullptr) {
    return;
  }
  if (auto const* made = llvm::dyn_cast<clang::CXXConstructExpr>(statement); made != nullptr) {
    add_construction(caller, made->getConstructor(), at);
  } else if (auto const* call = llvm::dyn_cast<clang::CallExpr>(statement);
             call != nullptr && call->getDirectCallee() != nullptr) {
    add(caller, call->getDirectCallee(), at);
  }
  for (clang::Stmt const* child : statement->children()) {
    add_unwritten(caller, child, at);
  }
}

void Calls::add_storage(clang::Decl const* caller, std::uint64_t bytes) {
  std::uint64_t& storage = storage_[caller->getCanonicalDecl()];
  storage = std::max(storage, bytes);
}

std::vector<Calls::Call> const& Calls::of(clang::Decl const* caller) const {
  static const std::vector<Call> kNone;
  const auto found = calls_.find(caller);
  return found == calls_.end() ? kNone : found->second;
}

Calls::Walk Calls::walk() const {
  enum class State { kOpen, kDone };
  struct Step {
    clang::Decl const* function;
    std::size_t next;
  };
  Walk result;
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
        result.finished.push_back(path.back().function);
        path.pop_back();
        continue;
      }
      Call const& call = calls[path.back().next++];
      const auto state = states.find(call.callee);
      if (state == states.end()) {
        states[call.callee] = State::kOpen;
        path.push_back({call.callee, 0});
      } else if (state->second == State::kOpen) {
        result.closing.push_back(call);
      }
    }
  }
  return result;
}

std::vector<Calls::Call> Calls::recursive() const { return walk().closing; }

std::vector<Calls::Call> Calls::too_deep(std::uint64_t most) const {
  std::vector<Call> found;
  std::map<clang::Decl const*, std::uint64_t> deepest;
  for (clang::Decl const* function : walk().finished) {
    const auto own = storage_.find(function);
    const std::uint64_t bytes = own == storage_.end() ? 0 : own->second;
    std::uint64_t below = 0;
    for (Call const& call : of(function)) {
      const std::uint64_t inner = deepest[call.callee];
      below = std::max(below, inner);
      if (inner <= most && bytes + inner > most) {
        found.push_back(call);
      }
    }
    deepest[function] = bytes + below;
  }
  return found;
}

}  // namespace catena::checker
