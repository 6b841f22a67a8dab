// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <vector>

#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>
#include <clang/Basic/SourceLocation.h>

namespace catena::checker {

/// Whether all work-items of a group reach each barrier. If some do not, a CPU device runs all of them along the path
/// of the first, and so past the checks of the others.
///
/// A call is everybody's if it is in the body of its function outside conditions, lambdas, and loops that do not count
/// from one constant to another, and if no `return` precedes it.
class Barriers {
 public:
  /// `function` must have a body and be no template. Call once for each function.
  void add(clang::FunctionDecl const* function);

  /// Calls of barrier_all(), or of functions that reach it, that are not everybody's.
  std::vector<clang::SourceLocation> divergent() const;

 private:
  struct Call {
    clang::FunctionDecl const* callee;
    clang::SourceLocation at;
    bool is_everybodys;
  };
  class Walk;

  std::map<clang::FunctionDecl const*, std::vector<Call>> calls_;
};

}  // namespace catena::checker
