// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-static-check/visitor.hpp"

#include <optional>
#include <utility>

namespace catena::checker {
namespace {

/// Compilers put all functions of a kernel into one frame, for each work-item, and nothing guards what is behind it.
constexpr std::uint64_t kMaxStack = 16384;

}  // namespace

void Visitor::run() {
  TraverseDecl(context_.getTranslationUnitDecl());
  for (Calls::Call const& call : calls_.recursive()) {
    refuse(call.at, "recursion", "this call is recursive, and devices have no stack for recursion; write a loop");
  }
  for (const clang::SourceLocation at : barriers_.divergent()) {
    refuse(
        at, "barrier",
        "some work-items may not reach this barrier, and a CPU then runs code excluded by their own conditions. Wait "
        "in the body of a function: not under a condition, in a lambda, after a `return`, or in a loop without "
        "constant bounds");
  }
  for (Calls::Call const& call : calls_.too_deep(kMaxStack)) {
    refuse(call.at, "local-storage",
           "the functions that wait for one another from here on hold more than " + std::to_string(kMaxStack) +
               " bytes of variables together; pass arrays by reference, or use Context::local()");
  }
}

void Visitor::refuse(clang::SourceLocation at, std::string_view rule, std::string message) {
  places_.report(diagnostics_, Severity::kRefused, at.isValid() ? at : list_, rule, std::move(message));
}

void Visitor::check_type(clang::SourceLocation at, clang::QualType type, bool references) {
  if (std::optional<TypeFault> fault = types_.fault(type, references); fault.has_value()) {
    refuse(at, fault->rule, std::move(fault->message));
  }
}

void Visitor::note_call(clang::Decl const* callee, clang::SourceLocation at) {
  if (!scopes_.empty()) {
    calls_.add(scopes_.back().caller, callee, at);
  }
}

bool Visitor::TraverseDecl(clang::Decl* declaration) {
  if (declaration == nullptr || diagnostics_.full()) {
    return true;
  }
  if (llvm::isa<clang::TranslationUnitDecl>(declaration)) {
    return Base::TraverseDecl(declaration);
  }
  if (!places_.stands_with_author(declaration->getLocation())) {
    auto const* around = llvm::dyn_cast<clang::Decl>(declaration->getLexicalDeclContext());
    if (places_.of_framework(declaration) && places_.typed_by_author(around->getLocation())) {
      refuse(around->getLocation(), "include",
             "the framework's headers are included at the top of a file, in no namespace");
    }
    return true;
  }
  auto const* function = llvm::dyn_cast<clang::FunctionDecl>(declaration);
  if (function == nullptr) {
    return Base::TraverseDecl(declaration);
  }
  if (is_entry(function)) {
    return true;
  }
  enter_function(function);
  const bool continues = Base::TraverseDecl(declaration);
  leave_function(function);
  return continues;
}

bool Visitor::TraverseFieldDecl(clang::FieldDecl* field) {
  scopes_.push_back({field->getParent(), 0, false});
  check_order(field, field->getInClassInitializer());
  const bool continues = Base::TraverseFieldDecl(field);
  calls_.add_storage(field->getParent(), scopes_.back().storage);
  scopes_.pop_back();
  return continues;
}

bool Visitor::TraverseConstructorInitializer(clang::CXXCtorInitializer* set) {
  if (set->isMemberInitializer() || set->isDelegatingInitializer()) {
    check_order(set->getMember(), set->getInit());
  }
  return Base::TraverseConstructorInitializer(set);
}

/// A list is visited as it is written, then what the compiler makes of it: braces that are left out, conversions.
bool Visitor::TraverseInitListExpr(clang::InitListExpr* list) {
  ++lists_;
  const clang::SourceLocation outer = std::exchange(list_, list->getBeginLoc());
  const bool continues = Base::TraverseInitListExpr(list);
  if (!list->isSemanticForm() || !list->isSyntacticForm()) {
    visit_unwritten(list->isSemanticForm() ? list : list->getSemanticForm());
  }
  --lists_;
  list_ = outer;
  if (lists_ == 0) {
    visited_.clear();
  }
  return continues;
}

void Visitor::visit_unwritten(clang::Stmt* statement) {
  if (statement == nullptr || visited_.contains(statement)) {
    return;
  }
  VisitStmt(statement);
  for (clang::Stmt* child : statement->children()) {
    visit_unwritten(child);
  }
}

/// The text of a static_assert is the one string that a kernel may have.
bool Visitor::TraverseStaticAssertDecl(clang::StaticAssertDecl* assertion) {
  return TraverseStmt(assertion->getAssertExpr());
}

bool Visitor::TraverseLambdaExpr(clang::LambdaExpr* lambda) {
  for (clang::Expr const* capture : lambda->capture_inits()) {
    harmless_.insert(capture);  // what it captures must not leave the function: see leave_function()
  }
  clang::CXXMethodDecl const* body = lambda->getCallOperator();
  check_attributes(body);
  check_type_attributes(body->getTypeSourceInfo()->getTypeLoc());
  check_function(body);
  for (clang::LambdaCapture const& capture : lambda->captures()) {
    if (capture.isImplicit() && !scopes_.empty()) {
      calls_.add_unwritten(scopes_.back().caller, lambda->capture_init_begin()[&capture - lambda->capture_begin()],
                           capture.getLocation());
    }
  }
  enter_function(body);
  bool continues = Base::TraverseLambdaExpr(lambda);
  leave_function(body);
  if (clang::FunctionTemplateDecl* generic = lambda->getLambdaClass()->getDependentLambdaCallOperator();
      generic != nullptr) {
    for (clang::FunctionDecl* made : generic->specializations()) {
      continues = continues && TraverseDecl(made);
    }
  }
  return continues;
}

void Visitor::enter_function(clang::FunctionDecl const* function) {
  scopes_.push_back({function, 0, false});
  if (auto const* constructor = llvm::dyn_cast<clang::CXXConstructorDecl>(function); constructor != nullptr) {
    for (clang::CXXCtorInitializer const* set : constructor->inits()) {
      if (!set->isWritten()) {
        calls_.add_unwritten(constructor, set->getInit(), constructor->getLocation());
      }
    }
  }
}

/// What only the end of a function shows: whether something of a Context of its own leaves with its result.
void Visitor::leave_function(clang::FunctionDecl const* function) {
  const Scope scope = scopes_.back();
  scopes_.pop_back();
  calls_.add_storage(function, scope.storage);
  if (!function->isDependentContext() && function->doesThisDeclarationHaveABody()) {
    barriers_.add(function);
  }
  const clang::QualType result = function->getReturnType();
  const clang::SourceLocation at = function->getLocation();
  if (function->isDependentContext() || !places_.stands_with_author(at)) {
    return;
  }
  if (!result->isVoidType() && function->doesThisDeclarationHaveABody() && !function->isDefaulted()) {
    if (!returns(function->getBody(), context_)) {
      refuse(at, "no-result",
             "a way leads to the end of this function without a result; end it with `return`, and a switch with "
             "`default:`");
    }
  }
  if (types_.holds_reference(result) && !result->isReferenceType() && !result->isAnyPointerType()) {
    refuse(at, "reference", "the result holds references, which may outlive their targets; return a value");
  } else if (types_.is_context(result) || (scope.has_context && types_.reaches_memory(result))) {
    refuse(at, "context-lifetime",
           "the result would outlive its Context; make the Context in the kernel, and pass it down");
  }
}

bool Visitor::VisitDecl(clang::Decl* declaration) {
  if (!declaration->isImplicit() && places_.typed_by_author(declaration->getLocation())) {
    check_declaration(declaration);
  }
  return true;
}

bool Visitor::VisitTypeLoc(clang::TypeLoc type) {
  check_type_attributes(type);
  if (places_.stands_with_author(type.getBeginLoc()) &&
      (type.getAs<clang::PointerTypeLoc>() || type.getAs<clang::MemberPointerTypeLoc>())) {
    const bool is_member = !type.getAs<clang::MemberPointerTypeLoc>().isNull();
    if (type.getType()->isDependentType()) {
      refuse(type.getBeginLoc(), is_member ? "member-pointer" : "pointer",
             "a pointer to a template argument; use an IsoPtr from Context or PacketView, or an index");
    } else {
      check_type(type.getBeginLoc(), type.getType(), true);
    }
  }
  return true;
}

bool Visitor::VisitStmt(clang::Stmt* statement) {
  if (lists_ != 0) {
    visited_.insert(statement);
  }
  if (statement->getBeginLoc().isValid() && !places_.stands_with_author(statement->getBeginLoc())) {
    return true;
  }
  check_kind(statement);
  if (auto const* loop = llvm::dyn_cast<clang::WhileStmt>(statement); loop != nullptr) {
    check_loop(loop, loop->getCond(), loop->getBody(), nullptr, false);
  } else if (auto const* until = llvm::dyn_cast<clang::DoStmt>(statement); until != nullptr) {
    check_loop(until, until->getCond(), until->getBody(), nullptr, false);
  } else if (auto const* expression = llvm::dyn_cast<clang::Expr>(statement); expression != nullptr) {
    check_expression(expression);
  }
  return true;
}

}  // namespace catena::checker
