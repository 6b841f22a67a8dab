// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "apps/catena-static-check/visitor.hpp"

namespace catena::checker {
namespace {

constexpr auto kCasts = std::to_array<clang::CastKind>({
    clang::CK_NoOp,
    clang::CK_LValueToRValue,
    clang::CK_Dependent,
    clang::CK_ToVoid,
    clang::CK_ConstructorConversion,
    clang::CK_UserDefinedConversion,
    clang::CK_IntegralCast,
    clang::CK_IntegralToBoolean,
    clang::CK_BooleanToSignedIntegral,
    clang::CK_IntegralToFloating,
    clang::CK_FloatingToBoolean,
    clang::CK_FloatingCast,
    clang::CK_FunctionToPointerDecay,  // check_expression() looks at what has a pointer's type
    clang::CK_ArrayToPointerDecay,
});

}  // namespace

void Visitor::check_expression(clang::Expr const* expression) {
  if (auto const* cast = llvm::dyn_cast<clang::CastExpr>(expression); cast != nullptr) {
    check_cast(cast);
  } else if (auto const* unary = llvm::dyn_cast<clang::UnaryOperator>(expression); unary != nullptr) {
    check_unary(unary);
  } else if (auto const* binary = llvm::dyn_cast<clang::BinaryOperator>(expression); binary != nullptr) {
    check_binary(binary);
  } else if (auto const* subscript = llvm::dyn_cast<clang::ArraySubscriptExpr>(expression); subscript != nullptr) {
    check_subscript(subscript);
  } else if (auto const* call = llvm::dyn_cast<clang::CallExpr>(expression); call != nullptr) {
    check_call(call);
  } else if (auto const* construction = llvm::dyn_cast<clang::CXXConstructExpr>(expression); construction != nullptr) {
    check_construction(construction);
  } else if (auto const* list = llvm::dyn_cast<clang::InitListExpr>(expression); list != nullptr) {
    check_list(list);
  } else if (auto const* name = llvm::dyn_cast<clang::DeclRefExpr>(expression); name != nullptr) {
    check_name(name->getLocation(), name->getDecl(), harmless_.contains(name));
  } else if (auto const* member = llvm::dyn_cast<clang::MemberExpr>(expression); member != nullptr) {
    check_member(member);
  } else if (llvm::isa<clang::CXXThisExpr>(expression) && !harmless_.contains(expression)) {
    refuse(expression->getBeginLoc(), "this", "`this` is a pointer; name the member alone");
  }
  check_temporary(expression);
  const clang::QualType type = expression->getType();
  if (!type.isNull() && !harmless_.contains(expression) && !type->isPlaceholderType() &&
      !llvm::isa<clang::CXXThisExpr>(expression)) {
    check_type(expression->getExprLoc(), type, true);
  }
}

void Visitor::check_cast(clang::CastExpr const* cast) {
  const clang::CastKind kind = cast->getCastKind();
  const bool is_implicit = llvm::isa<clang::ImplicitCastExpr>(cast);
  const bool names_again =
      !is_implicit && !cast->isTypeDependent() && (cast->isGLValue() || cast->getType()->isAnyPointerType());
  if (kind == clang::CK_ArrayToPointerDecay && !harmless_.contains(cast)) {
    if (!llvm::isa<clang::StringLiteral, clang::PredefinedExpr>(cast->getSubExpr()->IgnoreParens())) {
      refuse(cast->getExprLoc(), "array-decay",
             "an array becomes a pointer here; pass it by reference, as u32 (&words)[4]");
    }
    harmless_.insert(cast);  // said already
  } else if (kind == clang::CK_AddressSpaceConversion && is_implicit) {
    // C++ for OpenCL has a space for every object; the language puts these in
    if (cast->getType()->isPointerType() && llvm::isa<clang::CXXThisExpr>(cast->getSubExpr()->IgnoreParenImpCasts())) {
      harmless_.insert(cast);
      harmless_.insert(cast->getSubExpr());
    }
  } else if (kind == clang::CK_FloatingToIntegral) {
    refuse(cast->getBeginLoc(), "cast",
           "a floating-point number out of the integer's range has no value, and compilers treat the path to it as "
           "unreachable; compute in integers");
    harmless_.insert(cast);  // said already
  } else if (std::ranges::find(kCasts, kind) == kCasts.end() && kind != clang::CK_BuiltinFnToFnPtr) {
    refuse(cast->getBeginLoc(), "cast",
           "a cast from '" + shown(cast->getSubExpr()->getType().getAsString()) + "' to '" +
               shown(cast->getType().getAsString()) +
               "' changes the meaning of memory; convert numbers with static_cast");
    harmless_.insert(cast);  // said already
  } else if (names_again) {
    refuse(
        cast->getBeginLoc(), "cast",
        "a cast to a reference or pointer names a variable once more, without its `const` or as something else; name "
        "the variable itself, or cast to a value");
    harmless_.insert(cast);  // said already
  }
}

void Visitor::check_parts(clang::Stmt const* statement) {
  if (auto const* expression = llvm::dyn_cast<clang::Expr>(statement); expression != nullptr) {
    check_temporary(expression);
  }
  for (clang::Stmt const* child : statement->children()) {
    if (child != nullptr) {
      check_parts(child);
    }
  }
}

/// Objects without a name take as much of the stack as those with one.
void Visitor::check_temporary(clang::Expr const* expression) {
  const clang::QualType type = expression->getType();
  if (type.isNull() || type->isDependentType()) {
    return;
  }
  if (auto const* standard = llvm::dyn_cast<clang::CXXDefaultArgExpr>(expression); standard != nullptr) {
    check_parts(standard->getExpr());  // made anew at each call
  } else if (auto const* member = llvm::dyn_cast<clang::CXXDefaultInitExpr>(expression); member != nullptr) {
    check_parts(member->getExpr());
  }
  if (llvm::isa<clang::MaterializeTemporaryExpr>(expression) ||
      (llvm::isa<clang::CallExpr>(expression) && expression->isPRValue() && type->isRecordType())) {
    count_storage(expression->getExprLoc(), type);
  }
}

void Visitor::check_unary(clang::UnaryOperator const* operation) {
  switch (operation->getOpcode()) {
    case clang::UO_AddrOf:
      refuse(operation->getBeginLoc(), "address-of", "kernels have no pointers; pass a reference, or an index");
      harmless_.insert(operation);
      break;
    case clang::UO_Deref:
      refuse(operation->getBeginLoc(), "dereference", "nothing checks this pointer; use an IsoPtr, which checks p[i]");
      break;
    case clang::UO_PostInc:
    case clang::UO_PostDec:
    case clang::UO_PreInc:
    case clang::UO_PreDec:
    case clang::UO_Plus:
    case clang::UO_Minus:
    case clang::UO_Not:
    case clang::UO_LNot:
      break;
    default:
      refuse(operation->getBeginLoc(), "operator", "this operator is not in the kernel dialect");
  }
}

void Visitor::check_binary(clang::BinaryOperator const* operation) {
  if (operation->isPtrMemOp()) {
    refuse(operation->getOperatorLoc(), "member-pointer",
           "it reaches private members; name the member, or use a lambda");
  } else if (operation->getOpcode() == clang::BO_Comma) {
    refuse(operation->getOperatorLoc(), "comma", "it hides a statement in an expression; write two statements");
  }
  const clang::BinaryOperatorKind kind = operation->isCompoundAssignmentOp()
                                             ? clang::BinaryOperator::getOpForCompoundAssignment(operation->getOpcode())
                                             : operation->getOpcode();
  if (kind != clang::BO_Div && kind != clang::BO_Rem) {
    return;
  }
  const std::optional<Range> divisor = ranges_.of(operation->getRHS());
  if (divisor.has_value() && divisor->low <= 0 && divisor->high >= 0) {
    places_.report(diagnostics_, Severity::kCaution, operation->getOperatorLoc(), "division",
                   "the divisor may be 0, which ends the whole process if the device is a CPU; divide by a "
                   "constant, or by `n | 1U`");
  }
}

bool Visitor::has_known_index(clang::Expr const* index, std::uint64_t size) const {
  const std::optional<Range> range = ranges_.of(index);
  return range.has_value() && range->low >= 0 && range->high < static_cast<__int128>(size);
}

void Visitor::check_index(clang::Expr const* index, std::uint64_t size, std::string const& instead) {
  if (has_known_index(index, size)) {
    return;
  }
  std::string message = "nothing shows that this index is below " + std::to_string(size) + "; " + instead;
  if (clang::VarDecl const* bound = ranges_.bound_in(index); bound != nullptr) {
    message += ". The initial value of '" + bound->getNameAsString() +
               "' proves nothing, because a reference or a lambda has it, too: pass and capture it by value";
  }
  refuse(index->getBeginLoc(), "index", std::move(message));
}

void Visitor::check_subscript(clang::ArraySubscriptExpr const* subscript) {
  clang::Expr const* base = subscript->getBase();
  if (base->isTypeDependent() || subscript->getIdx()->isTypeDependent() || subscript->getIdx()->isValueDependent()) {
    harmless_.insert(base);
    return;  // each instantiation is checked
  }
  auto const* decay = llvm::dyn_cast<clang::ImplicitCastExpr>(base->IgnoreParens());
  clang::ConstantArrayType const* array = decay != nullptr && decay->getCastKind() == clang::CK_ArrayToPointerDecay
                                              ? context_.getAsConstantArrayType(decay->getSubExpr()->getType())
                                              : nullptr;
  if (array == nullptr) {
    refuse(subscript->getExprLoc(), "dereference", "nothing checks this pointer; use an IsoPtr, which checks p[i]");
    return;
  }
  harmless_.insert(decay);
  harmless_.insert(base);
  const std::uint64_t size = array->getSize().getZExtValue();
  check_index(subscript->getIdx(), size,
              "count it in a loop with a constant bound, or write i % " + std::to_string(size) +
                  ", or use an IsoPtr, which checks");
}

}  // namespace catena::checker
