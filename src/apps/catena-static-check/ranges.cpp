// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-static-check/ranges.hpp"

#include <clang/AST/ExprCXX.h>

#include <algorithm>
#include <functional>

#include <llvm/ADT/APSInt.h>

namespace catena::checker {
namespace {

/// Deeper expressions are of any value of their type.
constexpr unsigned kDeepestExpression = 64;

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

/// In unbounded integers, for a result of `bits` bits; nothing where the operator says nothing of its result.
std::optional<Range> combined(clang::BinaryOperatorKind operation, Range a, Range b, unsigned bits) {
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
      // by more bits than there are: OpenCL takes the remainder, other compilers what they like
      return natural && b.high < bits ? std::optional(Range{a.low >> b.high, a.high >> b.low}) : std::nullopt;
    case clang::BO_Shl:
      return natural && b.high < std::min(bits, 32U) && a.high <= UINT32_MAX
                 ? std::optional(Range{a.low << b.low, a.high << b.high})
                 : std::nullopt;
    default:
      return std::nullopt;
  }
}

/// Made of literals and constexpr variables by operators of integers. Devices may reckon with other floats than the
/// compiler that folds a constant, also inside of what is called; a constexpr variable is what that compiler made it.
bool is_of_integers(clang::Stmt const* part) {
  if (auto const* named = llvm::dyn_cast<clang::DeclRefExpr>(part); named != nullptr) {
    auto const* variable = llvm::dyn_cast<clang::VarDecl>(named->getDecl());
    return variable == nullptr || variable->isConstexpr();
  }
  if (llvm::isa<clang::UnaryExprOrTypeTraitExpr>(part)) {
    return true;
  }
  auto const* expression = llvm::dyn_cast<clang::Expr>(part);
  return expression != nullptr && !expression->getType()->isFloatingType() &&
         !llvm::isa<clang::CallExpr, clang::CXXConstructExpr, clang::LambdaExpr>(part) &&
         std::ranges::all_of(part->children(),
                             [](clang::Stmt const* child) { return child != nullptr && is_of_integers(child); });
}

/// Tells of each variable that `statement` names other than to read it. `is_read`: what `statement` names is read.
void for_bindings(clang::Stmt const* statement, bool is_read, std::function<void(clang::VarDecl const*)> const& tell) {
  if (statement == nullptr) {
    return;
  }
  if (auto const* named = llvm::dyn_cast<clang::DeclRefExpr>(statement); named != nullptr) {
    if (auto const* variable = llvm::dyn_cast<clang::VarDecl>(named->getDecl()); variable != nullptr && !is_read) {
      tell(variable);
    }
    return;
  }
  if (auto const* chosen = llvm::dyn_cast<clang::ConditionalOperator>(statement); chosen != nullptr) {
    for_bindings(chosen->getCond(), false, tell);
    for_bindings(chosen->getTrueExpr(), is_read, tell);
    for_bindings(chosen->getFalseExpr(), is_read, tell);
    return;
  }
  auto const* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(statement);
  const bool reads = cast != nullptr && cast->getCastKind() == clang::CK_LValueToRValue;
  const bool is_same =
      llvm::isa<clang::ParenExpr>(statement) || (cast != nullptr && cast->getCastKind() == clang::CK_NoOp);
  for (clang::Stmt const* child : statement->children()) {
    for_bindings(child, reads || (is_same && is_read), tell);
  }
}

}  // namespace

bool is_read_of(clang::Expr const* expression, clang::VarDecl const* variable) {
  auto const* named = llvm::dyn_cast<clang::DeclRefExpr>(expression->IgnoreParenImpCasts());
  return named != nullptr && named->getDecl() == variable;
}

bool names(clang::Stmt const* statement, clang::VarDecl const* variable) {
  auto const* named = llvm::dyn_cast<clang::DeclRefExpr>(statement);
  return (named != nullptr && named->getDecl() == variable) ||
         std::ranges::any_of(statement->children(), [variable](clang::Stmt const* child) {
           return child != nullptr && names(child, variable);
         });
}

bool changes(clang::Stmt const* statement, clang::VarDecl const* variable) {
  bool is_named = false;
  for_bindings(statement, false, [&](clang::VarDecl const* named) { is_named = is_named || named == variable; });
  return is_named;
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
  if (auto const* enumeration = type->getAs<clang::EnumType>(); enumeration != nullptr) {
    type = enumeration->getDecl()->getIntegerType();
  }
  if (type.isNull()) {
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

bool Ranges::is_bound(clang::VarDecl const* variable) const {
  if (variable->hasGlobalStorage()) {
    return false;  // constexpr: see Visitor::check_variable()
  }
  auto const* function = llvm::dyn_cast_or_null<clang::FunctionDecl>(variable->getParentFunctionOrMethod());
  if (function == nullptr || function->getBody() == nullptr) {
    return true;
  }
  const auto [entry, is_new] = bound_.try_emplace(function);
  auto& bound = entry->second;
  if (is_new) {
    for_bindings(function->getBody(), false, [&bound](clang::VarDecl const* named) { bound.insert(named); });
  }
  return bound.contains(variable);
}

clang::VarDecl const* Ranges::bound_in(clang::Stmt const* expression) const {
  if (auto const* named = llvm::dyn_cast_or_null<clang::DeclRefExpr>(expression); named != nullptr) {
    auto const* variable = llvm::dyn_cast<clang::VarDecl>(named->getDecl());
    if (variable == nullptr || llvm::isa<clang::ParmVarDecl>(variable) || !variable->getType().isConstQualified()) {
      return nullptr;
    }
    const auto [entry, is_new] = bound_behind_.try_emplace(variable, nullptr);
    if (is_new) {
      entry->second = is_bound(variable) ? variable : bound_in(variable->getInit());
    }
    return entry->second;
  }
  if (expression != nullptr) {
    for (clang::Stmt const* child : expression->children()) {
      if (clang::VarDecl const* bound = bound_in(child); bound != nullptr) {
        return bound;
      }
    }
  }
  return nullptr;
}

/// As the language has it: what a compiler folds although its meaning is open is none.
std::optional<Range> Ranges::constant(clang::Expr const* expression) const {
  clang::APValue result;
  if (!is_of_integers(expression) || !expression->isCXX11ConstantExpr(*context_, &result) || !result.isInt()) {
    return std::nullopt;
  }
  const __int128 value = value_of(result.getInt());
  return Range{value, value};
}

std::optional<Range> Ranges::of_variable(clang::VarDecl const* variable, unsigned depth) const {
  if (const auto counter = counters_.find(variable); counter != counters_.end()) {
    return counter->second;
  }
  const clang::QualType type = variable->getType();
  // the default of a parameter is no bound: a caller gives another value
  if (!llvm::isa<clang::ParmVarDecl>(variable) && type.isConstQualified() && variable->hasInit() &&
      !variable->getInit()->isValueDependent() && !is_bound(variable)) {
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
  const unsigned bits = static_cast<unsigned>(context_->getIntWidth(operation->getType()));
  const std::optional<Range> result = combined(operation->getOpcode(), *left, *right, bits);
  return result.has_value() && is_inside(*result, *whole) ? result : whole;
}

std::optional<Range> Ranges::of(clang::Expr const* expression, unsigned depth) const {
  if (expression->isValueDependent() || expression->isTypeDependent()) {
    return std::nullopt;
  }
  const std::optional<Range> whole = of_type(expression->getType());
  if (!whole.has_value() || depth > kDeepestExpression) {
    return whole;
  }
  if (const std::optional<Range> value = constant(expression); value.has_value()) {
    return value;
  }
  expression = expression->IgnoreParens();
  if (auto const* cast = llvm::dyn_cast<clang::CastExpr>(expression); cast != nullptr) {
    if (cast->getCastKind() == clang::CK_IntegralToBoolean) {
      // of an enumeration of bool it is the same byte
      return cast->getSubExpr()->getType()->isEnumeralType() ? whole : Range{0, 1};
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
      (condition->getOpcode() != clang::BO_LT && condition->getOpcode() != clang::BO_LE) ||
      names(condition->getRHS(), counter)) {  // there it is one step further
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
