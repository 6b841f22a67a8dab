// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <clang/AST/Decl.h>
#include <clang/Basic/SourceLocation.h>

namespace catena::checker {

/// Which of the author's functions call which. Making an object runs the initialisers of its class: the class counts as
/// a function.
class Calls {
 public:
  struct Call {
    clang::Decl const* callee;
    clang::SourceLocation at;
  };

  void add(clang::Decl const* caller, clang::Decl const* callee, clang::SourceLocation at);
  /// The calls that close a cycle.
  std::vector<Call> recursive() const;

 private:
  std::map<clang::Decl const*, std::vector<Call>> calls_;
  std::vector<clang::Decl const*> callers_;  ///< in the order in which they came
};

}  // namespace catena::checker
