// SPDX-License-Identifier: Apache-2.0
#include "static_check/checker/ranges.hpp"

#include <algorithm>

#include <llvm/ADT/APSInt.h>

namespace catena::checker {
namespace {

/// Deeper expressions are of any value of their type.
constexpr unsigned kDeepest = 64;

__int128 value_of(llvm::APSInt const& number) {
  return number.isSigned() ? static_cast<__int128>(number.getExtValue()) : static_cast<__int128>(number.getZExtValue());
}

bool is_inside(Range inner, Range outer) { return inner.low >= outer.low && inner.high <= outer.high; }

/// The smallest 2^n - 1 that is not below `value`.
__int128 ones_above(__int128 value) {
  __int128 ones = 0;
  while (ones < value) {
    ones = 2 * ones + 1;
  }
  return ones;
}

/// In unbounded integers; nothing where the operator says nothing of its result.
std::optional<Range> combined(clang::BinaryOperatorKind operation, Range a, Range b) {
  const bool natural = a.low >= 0 && b.low >= 0;
  switch (operation) {
    case clang::BO_Add:
      return Range{a.low + b.low, a.high + b.high};
    case clang::BO_Sub:
      return Range{a.low - b.high, a.high - b.low};
    case clang::BO_Mul:
      return natural && a.high <= UINT32_MAX && b.high <= UINT32_MAX
                 ? std::optional(Range{a.low * b.low, a.high * b.high})
                 : std::nullopt;
    case clang::BO_Div:
      return natural && b.low > 0 ? std::optional(Range{a.low / b.high, a.high / b.low}) : std::nullopt;
    case clang::BO_Rem:
      return natural && b.low > 0 ? std::optional(Range{0, std::min(a.high, b.high - 1)}) : std::nullopt;
    case clang::BO_And:
      return a.low < 0 && b.low < 0 ? std::nullopt
             : a.low < 0            ? std::optional(Range{0, b.high})
             : b.low < 0            ? std::optional(Range{0, a.high})
                                    : std::optional(Range{0, std::min(a.high, b.high)});
    case clang::BO_Or:
      return natural ? std::optional(Range{std::max(a.low, b.low), ones_above(std::max(a.high, b.high))})
                     : std::nullopt;
    case clang::BO_Xor:
      return natural ? std::optional(Range{0, ones_above(std::max(a.high, b.high))}) : std::nullopt;
    case clang::BO_Shr:
      return natural && b.high < 64 ? std::optional(Range{a.low >> b.high, a.high >> b.low}) : std::nullopt;
    case clang::BO_Shl:
      return natural && b.high < 32 && a.high <= UINT32_MAX ? std::optional(Range{a.low << b.low, a.high << b.high})
                                                            : std::nullopt;
    default:
      return std::nullopt;
  }
}

/// `variable`, read.
bool is_read_of(clang::Expr const* expression, clang::VarDecl const* variable) {
  auto const* named = llvm::dyn_cast<clang::DeclRefExpr>(expression->IgnoreParenImpCasts());
  return named != nullptr && named->getDecl() == variable;
}

}  // namespace

bool changes(clang::Stmt const* statement, clang::VarDecl const* variable) {
  if (statement == nullptr) {
    return false;
  }
  if (auto const* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(statement);
      cast != nullptr && cast->getCastKind() == clang::CK_LValueToRValue &&
      llvm::isa<clang::DeclRefExpr>(cast->getSubExpr()->IgnoreParens())) {
    return false;
  }
  if (auto const* named = llvm::dyn_cast<clang::DeclRefExpr>(statement); named != nullptr) {
    return named->getDecl() == variable;
  }
  return std::ranges::any_of(statement->children(),
                             [variable](clang::Stmt const* child) { return changes(child, variable); });
}

clang::VarDecl const* counter_of(clang::ForStmt const* loop) {
  auto const* declared = llvm::dyn_cast_or_null<clang::DeclStmt>(loop->getInit());
  if (declared == nullptr || !declared->isSingleDecl()) {
    return nullptr;
  }
  auto const* variable = llvm::dyn_cast<clang::VarDecl>(declared->getSingleDecl());
  return variable != nullptr && variable->getType()->isIntegerType() && variable->hasInit() ? variable : nullptr;
}

std::optional<Range> Ranges::of_type(clang::QualType type) const {
  if (type->isDependentType() || !type->isIntegralOrEnumerationType()) {
    return std::nullopt;
  }
  // a bool that memory holds may be any byte
  const unsigned bits = static_cast<unsigned>(type->isBooleanType() ? 8 : context_->getIntWidth(type));
  if (bits > 64) {
    return std::nullopt;
  }
  const __int128 values = static_cast<__int128>(1) << bits;
  return type->isSignedIntegerOrEnumerationType() ? Range{-values / 2, values / 2 - 1} : Range{0, values - 1};
}

std::optional<Range> Ranges::of_variable(clang::VarDecl const* variable, unsigned depth) const {
  if (const auto counter = counters_.find(variable); counter != counters_.end()) {
    return counter->second;
  }
  const clang::QualType type = variable->getType();
  // the default of a parameter is no bound: a caller gives another value
  if (!llvm::isa<clang::ParmVarDecl>(variable) && type.isConstQualified() && variable->hasInit() &&
      !variable->getInit()->isValueDependent()) {
    return of(variable->getInit(), depth + 1);
  }
  return of_type(type.getNonReferenceType());
}

std::optional<Range> Ranges::of_operation(clang::BinaryOperator const* operation, unsigned depth) const {
  const std::optional<Range> whole = of_type(operation->getType());
  const std::optional<Range> left = of(operation->getLHS(), depth + 1);
  const std::optional<Range> right = of(operation->getRHS(), depth + 1);
  if (!whole.has_value() || !left.has_value() || !right.has_value()) {
    return whole;
  }
  const std::optional<Range> result = combined(operation->getOpcode(), *left, *right);
  return result.has_value() && is_inside(*result, *whole) ? result : whole;
}

std::optional<Range> Ranges::of(clang::Expr const* expression, unsigned depth) const {
  if (expression->isValueDependent() || expression->isTypeDependent()) {
    return std::nullopt;
  }
  const std::optional<Range> whole = of_type(expression->getType());
  if (!whole.has_value() || depth > kDeepest) {
    return whole;
  }
  if (clang::Expr::EvalResult result; expression->EvaluateAsInt(result, *context_)) {
    const __int128 value = value_of(result.Val.getInt());
    return Range{value, value};
  }
  expression = expression->IgnoreParens();
  if (auto const* cast = llvm::dyn_cast<clang::CastExpr>(expression); cast != nullptr) {
    if (cast->getCastKind() == clang::CK_IntegralToBoolean) {
      return Range{0, 1};
    }
    const std::optional<Range> inner = of(cast->getSubExpr(), depth + 1);
    return inner.has_value() && is_inside(*inner, *whole) ? inner : whole;
  }
  if (auto const* operation = llvm::dyn_cast<clang::BinaryOperator>(expression); operation != nullptr) {
    return of_operation(operation, depth);
  }
  if (auto const* chosen = llvm::dyn_cast<clang::ConditionalOperator>(expression); chosen != nullptr) {
    const std::optional<Range> yes = of(chosen->getTrueExpr(), depth + 1);
    const std::optional<Range> no = of(chosen->getFalseExpr(), depth + 1);
    return yes.has_value() && no.has_value() ? Range{std::min(yes->low, no->low), std::max(yes->high, no->high)}
                                             : *whole;
  }
  if (auto const* named = llvm::dyn_cast<clang::DeclRefExpr>(expression); named != nullptr) {
    auto const* variable = llvm::dyn_cast<clang::VarDecl>(named->getDecl());
    return variable != nullptr ? of_variable(variable, depth) : whole;
  }
  return whole;
}

std::optional<Range> Ranges::counter_range(clang::VarDecl const* counter, clang::ForStmt const* loop) const {
  auto const* condition = llvm::dyn_cast_or_null<clang::BinaryOperator>(loop->getCond());
  while (condition != nullptr && condition->getOpcode() == clang::BO_LAnd) {
    condition = llvm::dyn_cast<clang::BinaryOperator>(condition->getLHS()->IgnoreParenImpCasts());
  }
  if (condition == nullptr || !is_read_of(condition->getLHS(), counter) ||
      (condition->getOpcode() != clang::BO_LT && condition->getOpcode() != clang::BO_LE)) {
    return std::nullopt;
  }
  std::optional<Range> step = Range{1, 1};
  if (auto const* up = llvm::dyn_cast_or_null<clang::UnaryOperator>(loop->getInc());
      up != nullptr && up->isIncrementOp() && is_read_of(up->getSubExpr(), counter)) {
  } else if (auto const* add = llvm::dyn_cast_or_null<clang::CompoundAssignOperator>(loop->getInc());
             add != nullptr && add->getOpcode() == clang::BO_AddAssign && is_read_of(add->getLHS(), counter) &&
             !changes(add->getRHS(), counter)) {
    step = of(add->getRHS());
  } else {
    return std::nullopt;
  }
  const std::optional<Range> first = of(counter->getInit());
  const std::optional<Range> bound = of(condition->getRHS());
  const std::optional<Range> whole = of_type(counter->getType());
  if (!step.has_value() || !first.has_value() || !bound.has_value() || !whole.has_value() || step->low < 1 ||
      changes(loop->getCond(), counter) || changes(loop->getBody(), counter)) {
    return std::nullopt;
  }
  const __int128 last = condition->getOpcode() == clang::BO_LT ? bound->high - 1 : bound->high;
  // the counter must not wrap before the comparison ends the loop
  return last + step->high <= whole->high ? std::optional(Range{first->low, last}) : std::nullopt;
}

bool Ranges::enter(clang::ForStmt const* loop) {
  clang::VarDecl const* counter = counter_of(loop);
  const std::optional<Range> range = counter == nullptr ? std::nullopt : counter_range(counter, loop);
  if (range.has_value()) {
    counters_.insert_or_assign(counter, *range);
  }
  return range.has_value();
}

void Ranges::leave(clang::ForStmt const* loop) { counters_.erase(counter_of(loop)); }

}  // namespace catena::checker
