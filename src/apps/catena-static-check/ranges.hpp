// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/Stmt.h>

namespace catena::checker {

/// All possible values of an integer expression are in [low, high].
struct Range {
  __int128 low;
  __int128 high;
};

/// Ranges of integer expressions: of constants, of counters of loops with constant bounds, of constant variables that
/// are only read, and of computations on these. Ignores conditions: `i % 4` is in [0, 3], `if (i < 4)` has no effect.
class Ranges {
 public:
  explicit Ranges(clang::ASTContext const& context) : context_(&context) {}

  /// nullopt if the type is not an integer.
  std::optional<Range> of(clang::Expr const* expression) const { return of(expression, 0); }

  /// A constant variable in `expression` whose value is not trusted, because a cast, a reference or a lambda also has
  /// it; null if no such variable exists.
  clang::VarDecl const* bound_in(clang::Stmt const* expression) const;

  /// Whether `loop` counts a variable of its own between known bounds. Until leave(), of() knows the range of that
  /// variable. Calls nest.
  bool enter(clang::ForStmt const* loop);
  void leave(clang::ForStmt const* loop);

 private:
  std::optional<Range> of(clang::Expr const* expression, unsigned depth) const;
  std::optional<Range> of_operation(clang::BinaryOperator const* operation, unsigned depth) const;
  std::optional<Range> of_variable(clang::VarDecl const* variable, unsigned depth) const;
  std::optional<Range> of_type(clang::QualType type) const;
  std::optional<Range> counter_range(clang::VarDecl const* counter, clang::ForStmt const* loop) const;
  std::optional<Range> constant(clang::Expr const* expression) const;
  bool is_bound(clang::VarDecl const* variable) const;

  clang::ASTContext const* context_;
  std::map<clang::VarDecl const*, Range> counters_;
  /// For each queried function, the variables that its body names other than to read them.
  mutable std::map<clang::FunctionDecl const*, std::set<clang::VarDecl const*>> bound_;
  mutable std::map<clang::VarDecl const*, clang::VarDecl const*> bound_behind_;  ///< results of bound_in()
};

/// The variable declared and counted by a loop; null if it has no such variable.
clang::VarDecl const* counter_of(clang::ForStmt const* loop);

/// Whether `statement` names `variable` anywhere, to read it or not.
bool names(clang::Stmt const* statement, clang::VarDecl const* variable);

/// Whether `expression` is `variable`, read or changed by an operator.
bool is_read_of(clang::Expr const* expression, clang::VarDecl const* variable);

/// Whether `statement` may change `variable`: names it other than to read it.
bool changes(clang::Stmt const* statement, clang::VarDecl const* variable);

}  // namespace catena::checker
