// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "apps/catena-static-check/visitor.hpp"

#include <clang/AST/Attr.h>
#include <clang/AST/StmtCXX.h>

namespace catena::checker {
namespace {

using Class = clang::Stmt::StmtClass;

/// What a kernel may be made of. Everything else is refused, also what a newer compiler may know.
constexpr auto kAllowedKinds = std::to_array<Class>({
    // statements
    clang::Stmt::AttributedStmtClass,
    clang::Stmt::BreakStmtClass,
    clang::Stmt::CaseStmtClass,
    clang::Stmt::CompoundStmtClass,
    clang::Stmt::ContinueStmtClass,
    clang::Stmt::DeclStmtClass,
    clang::Stmt::DefaultStmtClass,
    clang::Stmt::DoStmtClass,
    clang::Stmt::ForStmtClass,
    clang::Stmt::IfStmtClass,
    clang::Stmt::NullStmtClass,
    clang::Stmt::ReturnStmtClass,
    clang::Stmt::SwitchStmtClass,
    clang::Stmt::WhileStmtClass,
    // values and operators
    clang::Stmt::ArrayInitIndexExprClass,
    clang::Stmt::ArrayInitLoopExprClass,
    clang::Stmt::ArraySubscriptExprClass,
    clang::Stmt::BinaryOperatorClass,
    clang::Stmt::CharacterLiteralClass,
    clang::Stmt::CompoundAssignOperatorClass,
    clang::Stmt::ConditionalOperatorClass,
    clang::Stmt::ConstantExprClass,
    clang::Stmt::CXXBoolLiteralExprClass,
    clang::Stmt::CXXFoldExprClass,
    clang::Stmt::CXXThisExprClass,
    clang::Stmt::DeclRefExprClass,
    clang::Stmt::DesignatedInitExprClass,
    clang::Stmt::ExprWithCleanupsClass,
    clang::Stmt::FloatingLiteralClass,
    clang::Stmt::ImplicitValueInitExprClass,
    clang::Stmt::InitListExprClass,
    clang::Stmt::IntegerLiteralClass,
    clang::Stmt::LambdaExprClass,
    clang::Stmt::MaterializeTemporaryExprClass,
    clang::Stmt::MemberExprClass,
    clang::Stmt::OpaqueValueExprClass,
    clang::Stmt::PackExpansionExprClass,
    clang::Stmt::ParenExprClass,
    clang::Stmt::ParenListExprClass,
    clang::Stmt::SizeOfPackExprClass,
    clang::Stmt::SubstNonTypeTemplateParmExprClass,
    clang::Stmt::UnaryExprOrTypeTraitExprClass,
    clang::Stmt::UnaryOperatorClass,
    // calls and construction
    clang::Stmt::CallExprClass,
    clang::Stmt::CXXBindTemporaryExprClass,
    clang::Stmt::CXXConstructExprClass,
    clang::Stmt::CXXDefaultArgExprClass,
    clang::Stmt::CXXDefaultInitExprClass,
    clang::Stmt::CXXMemberCallExprClass,
    clang::Stmt::CXXOperatorCallExprClass,
    clang::Stmt::CXXScalarValueInitExprClass,
    clang::Stmt::CXXTemporaryObjectExprClass,
    // casts: check_cast() says which
    clang::Stmt::CStyleCastExprClass,
    clang::Stmt::CXXFunctionalCastExprClass,
    clang::Stmt::CXXStaticCastExprClass,
    clang::Stmt::ImplicitCastExprClass,
    // in templates; each instantiation is of the above
    clang::Stmt::CXXDependentScopeMemberExprClass,
    clang::Stmt::CXXUnresolvedConstructExprClass,
    clang::Stmt::DependentScopeDeclRefExprClass,
    clang::Stmt::UnresolvedLookupExprClass,
    clang::Stmt::UnresolvedMemberExprClass,
});

struct Named {
  Class kind;
  std::string_view rule;
  std::string_view advice;
};
constexpr auto kRefusedKinds = std::to_array<Named>({
    {clang::Stmt::GotoStmtClass, "goto", "jumps leave the syntax known to the check; write a loop, or return"},
    {clang::Stmt::LabelStmtClass, "goto", "a label is for jumps; write a loop, or return"},
    {clang::Stmt::IndirectGotoStmtClass, "goto", "a computed jump goes anywhere; write a switch"},
    {clang::Stmt::AddrLabelExprClass, "goto", "the address of a label; write a switch"},
    {clang::Stmt::GCCAsmStmtClass, "asm", "an instruction reaches any memory; write it in the kernel dialect"},
    {clang::Stmt::MSAsmStmtClass, "asm", "an instruction reaches any memory; write it in the kernel dialect"},
    {clang::Stmt::StmtExprClass, "statement-expression", "statements inside an expression; write a lambda"},
    {clang::Stmt::CXXForRangeStmtClass, "range-for", "it walks by pointers; count an index"},
    {clang::Stmt::StringLiteralClass, "string", "a string is read by a pointer; write a constexpr array of numbers"},
    {clang::Stmt::PredefinedExprClass, "string", "a string is read by a pointer; write a constexpr array of numbers"},
    {clang::Stmt::UserDefinedLiteralClass, "literal-operator",
     "a literal with a hidden call; write a constexpr function"},
    {clang::Stmt::CXXNullPtrLiteralExprClass, "pointer",
     "kernels have no pointers; use an IsoPtr from Context or PacketView"},
    {clang::Stmt::CXXReinterpretCastExprClass, "cast",
     "it changes the meaning of memory; convert numbers with static_cast"},
    {clang::Stmt::CXXConstCastExprClass, "cast", "it changes a constant; use a variable without const"},
    {clang::Stmt::CXXAddrspaceCastExprClass, "cast", "IsoPtr knows where memory is"},
    {clang::Stmt::CompoundLiteralExprClass, "compound-literal", "it is not C++; write T{...}"},
    {clang::Stmt::OffsetOfExprClass, "builtin", "layouts are checked with sizeof in a static_assert"},
    {clang::Stmt::CXXPseudoDestructorExprClass, "destructor-call", "objects end where their scope ends"},
});

/// Whether a `break` in `statement` ends what is around it.
bool breaks(clang::Stmt const* statement) {
  if (statement == nullptr ||
      llvm::isa<clang::LambdaExpr, clang::ForStmt, clang::WhileStmt, clang::DoStmt, clang::SwitchStmt>(statement)) {
    return false;
  }
  return llvm::isa<clang::BreakStmt>(statement) || std::ranges::any_of(statement->children(), breaks);
}

bool is_true(clang::Expr const* condition) {
  auto const* literal = condition == nullptr ? nullptr : llvm::dyn_cast<clang::CXXBoolLiteralExpr>(condition);
  return condition == nullptr || (literal != nullptr && literal->getValue());
}

bool has_default(clang::SwitchStmt const* choice) {
  for (clang::SwitchCase const* label = choice->getSwitchCaseList(); label != nullptr;
       label = label->getNextSwitchCase()) {
    if (llvm::isa<clang::DefaultStmt>(label)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool returns(clang::Stmt const* statement, clang::ASTContext const& context) {
  if (statement == nullptr) {
    return false;
  }
  if (auto const* block = llvm::dyn_cast<clang::CompoundStmt>(statement); block != nullptr) {
    return std::ranges::any_of(block->body(), [&](clang::Stmt const* part) { return returns(part, context); });
  }
  if (auto const* choice = llvm::dyn_cast<clang::IfStmt>(statement); choice != nullptr) {
    if (choice->isConstexpr() && !choice->getCond()->isValueDependent()) {
      return returns(choice->getNondiscardedCase(context).value_or(nullptr), context);
    }
    return returns(choice->getThen(), context) && returns(choice->getElse(), context);
  }
  if (auto const* choice = llvm::dyn_cast<clang::SwitchStmt>(statement); choice != nullptr) {
    auto const* block = llvm::dyn_cast<clang::CompoundStmt>(choice->getBody());
    return has_default(choice) && !breaks(choice->getBody()) && block != nullptr && !block->body_empty() &&
           returns(block->body_back(), context);
  }
  if (auto const* label = llvm::dyn_cast<clang::SwitchCase>(statement); label != nullptr) {
    return returns(label->getSubStmt(), context);
  }
  if (auto const* attributed = llvm::dyn_cast<clang::AttributedStmt>(statement); attributed != nullptr) {
    return returns(attributed->getSubStmt(), context);
  }
  if (auto const* loop = llvm::dyn_cast<clang::ForStmt>(statement); loop != nullptr) {
    return is_true(loop->getCond()) && !breaks(loop->getBody());
  }
  if (auto const* loop = llvm::dyn_cast<clang::WhileStmt>(statement); loop != nullptr) {
    return is_true(loop->getCond()) && !breaks(loop->getBody());
  }
  return llvm::isa<clang::ReturnStmt>(statement);
}

void Visitor::check_kind(clang::Stmt const* statement) {
  if (auto const* attributed = llvm::dyn_cast<clang::AttributedStmt>(statement); attributed != nullptr) {
    for (clang::Attr const* attribute : attributed->getAttrs()) {
      if (places_.typed_by_author(attribute->getLocation()) && !llvm::isa<clang::FallThroughAttr>(attribute)) {
        refuse(attribute->getLocation(), "attribute",
               std::string("'") + attribute->getSpelling() + "': a statement may have [[fallthrough]]");
      }
    }
  }
  const Class kind = statement->getStmtClass();
  if (std::ranges::find(kAllowedKinds, kind) != kAllowedKinds.end()) {
    return;
  }
  const auto* const named = std::ranges::find(kRefusedKinds, kind, &Named::kind);
  if (named != kRefusedKinds.end()) {
    refuse(statement->getBeginLoc(), named->rule, std::string(named->advice));
  } else if (auto const* broken = llvm::dyn_cast<clang::RecoveryExpr>(statement); broken == nullptr) {
    refuse(statement->getBeginLoc(), "construct",
           shown(statement->getStmtClassName()) + " is not in the kernel dialect; docs/writing-an-nf.md describes it");
  }
}

}  // namespace catena::checker
