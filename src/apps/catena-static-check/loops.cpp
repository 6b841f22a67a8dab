// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <string_view>

#include "apps/catena-static-check/visitor.hpp"

#include <clang/AST/StmtCXX.h>

namespace catena::checker {
namespace {

/// Loops of at most as many turns end soon enough for every device: as many as a packet has bytes.
constexpr std::int64_t kMaxTurns = 65536;

bool any_part(clang::Stmt const* statement, std::function<bool(clang::Stmt const*)> const& is_it) {
  return statement != nullptr &&
         (is_it(statement) ||
          std::ranges::any_of(statement->children(), [&](clang::Stmt const* child) { return any_part(child, is_it); }));
}

/// Whether a statement leaves the loop that it is in the body of.
bool leaves(clang::Stmt const* statement, bool is_inner_loop) {
  if (statement == nullptr || llvm::isa<clang::LambdaExpr>(statement)) {
    return false;
  }
  if (llvm::isa<clang::ReturnStmt>(statement) || (!is_inner_loop && llvm::isa<clang::BreakStmt>(statement))) {
    return true;
  }
  const bool takes_break = llvm::isa<clang::ForStmt, clang::WhileStmt, clang::DoStmt, clang::SwitchStmt>(statement);
  return std::ranges::any_of(statement->children(),
                             [&](clang::Stmt const* child) { return leaves(child, is_inner_loop || takes_break); });
}

/// Sizes that the framework bounds by what a packet or a group has.
bool is_framework_size(clang::Expr const* bound) {
  auto const* call = llvm::dyn_cast<clang::CallExpr>(bound->IgnoreParenImpCasts());
  clang::FunctionDecl const* callee = call == nullptr ? nullptr : call->getDirectCallee();
  if (callee == nullptr || !callee->getDeclName().isIdentifier()) {
    return false;
  }
  const std::string name = qualified_name(callee);
  return name == "catena::kernel::Bytes::length" || name == "catena::kernel::group_size" ||
         name == "catena::kernel::Context::group_packets";
}

/// Whether the loop adds to its counter what is not zero, up to a bound that is known to be small.
bool counts_to_small_bound(clang::ForStmt const* loop, Ranges const& ranges) {
  clang::VarDecl const* counter = counter_of(loop);
  auto const* condition = llvm::dyn_cast_or_null<clang::BinaryOperator>(loop->getCond());
  if (counter == nullptr || condition == nullptr || !condition->isRelationalOp() || condition->isValueDependent() ||
      changes(loop->getBody(), counter)) {
    return false;
  }
  auto const* step = llvm::dyn_cast_or_null<clang::CompoundAssignOperator>(loop->getInc());
  auto const* up = llvm::dyn_cast_or_null<clang::UnaryOperator>(loop->getInc());
  const bool adds = (up != nullptr && up->isIncrementOp()) ||
                    (step != nullptr && step->getOpcode() == clang::BO_AddAssign &&
                     (is_framework_size(step->getRHS()) || ranges.of(step->getRHS()).value_or(Range{0, 0}).low > 0));
  const std::optional<Range> bound = ranges.of(condition->getRHS());
  return adds && (is_framework_size(condition->getRHS()) || (bound.has_value() && bound->high <= kMaxTurns)) &&
         !changes(condition->getRHS(), counter);
}

}  // namespace

bool Visitor::TraverseForStmt(clang::ForStmt* loop) {
  const bool is_known = ranges_.enter(loop);
  if (places_.typed_by_author(loop->getBeginLoc())) {
    check_loop(loop, loop->getCond(), loop->getBody(), loop->getInc(), counts_to_small_bound(loop, ranges_));
  }
  const bool continues = Base::TraverseForStmt(loop);
  if (is_known) {
    ranges_.leave(loop);
  }
  return continues;
}

void Visitor::check_loop(clang::Stmt const* loop, clang::Expr const* condition, clang::Stmt const* body,
                         clang::Stmt const* increment, bool is_bounded) {
  if (condition != nullptr && (condition->isValueDependent() || condition->isTypeDependent())) {
    return;  // each instantiation is checked
  }
  const auto is_changing = [&](clang::Stmt const* part) {
    auto const* named = llvm::dyn_cast<clang::DeclRefExpr>(part);
    auto const* variable = named == nullptr ? nullptr : llvm::dyn_cast<clang::VarDecl>(named->getDecl());
    return variable != nullptr && !variable->getType().isConstQualified() &&
           (changes(body, variable) || changes(increment, variable) || changes(condition, variable));
  };
  if (!any_part(condition, is_changing) && !leaves(body, false)) {
    refuse(
        loop->getBeginLoc(), "endless-loop",
        "nothing in the loop changes its condition and nothing leaves it; compilers drop such loops, and checks with "
        "them. Count to a bound");
  } else if (!is_bounded) {
    places_.report(diagnostics_, Severity::kCaution, loop->getBeginLoc(), "unbounded-loop",
                   "no bound of this loop is known before it runs: the launch needs a limit of time. A loop counting "
                   "to a constant or to a packet's length does not");
  }
}

}  // namespace catena::checker
