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

/// Whether all work-items of a group come to each barrier. Where some do not, a device that is a processor takes them
/// all the way of the first, and with that into what the others' checks had kept them from.
///
/// A call is everybody's where it stands in the body of its function outside of conditions, of lambdas, and of loops
/// that do not count from one constant to another, and where no `return` comes before it.
class Barriers {
 public:
  /// `function` has a body and is no template. Once for each.
  void add(clang::FunctionDecl const* function);

  /// Calls of barrier_all(), or of what comes to one, that are not everybody's.
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
