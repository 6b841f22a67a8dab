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

/// All values that an integer expression can have lie in [low, high].
struct Range {
  __int128 low;
  __int128 high;
};

/// Ranges of integer expressions: of constants, of counters of loops with constant bounds, of constant variables that
/// are only read, and of what is computed of these. Knows nothing of conditions: `i % 4` is in [0, 3], `if (i < 4)`
/// says nothing.
class Ranges {
 public:
  explicit Ranges(clang::ASTContext const& context) : context_(&context) {}

  /// Nothing where the type is no integer.
  std::optional<Range> of(clang::Expr const* expression) const { return of(expression, 0); }

  /// A constant variable that `expression` is made of and of which nothing is believed, because a cast, a reference or
  /// a lambda has it, too; null if there is none.
  clang::VarDecl const* bound_in(clang::Stmt const* expression) const;

  /// Whether `loop` counts a variable of its own between bounds that are known here; while it is inside, of() knows the
  /// range of that variable. Calls nest.
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
  /// Of each function that was asked about, the variables that its body names other than to read them.
  mutable std::map<clang::FunctionDecl const*, std::set<clang::VarDecl const*>> bound_;
  mutable std::map<clang::VarDecl const*, clang::VarDecl const*> bound_behind_;  ///< answers of bound_in()
};

/// The variable that a loop declares and counts; null if it has none.
clang::VarDecl const* counter_of(clang::ForStmt const* loop);

/// Whether `statement` names `variable` anywhere, to read it or not.
bool names(clang::Stmt const* statement, clang::VarDecl const* variable);

/// Whether `expression` is `variable`, read or as what an operator changes.
bool is_read_of(clang::Expr const* expression, clang::VarDecl const* variable);

/// Whether `statement` may change `variable`: names it other than to read it.
bool changes(clang::Stmt const* statement, clang::VarDecl const* variable);

}  // namespace catena::checker
