// SPDX-License-Identifier: Apache-2.0
// What an author's code may use of the framework, and how.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "apps/catena-static-check/visitor.hpp"

namespace catena::checker {
namespace {

/// Free functions of the kernel dialect. atomic_add() takes a pointer.
constexpr auto kDialect = std::to_array<std::string_view>(
    {"local_id", "group_size", "barrier_all", "byte_swap", "rotate_left", "shift_right", "count_ones", "lowest_bit"});
/// Members of the framework's classes whose template argument is a type that is read from memory or written to it.
constexpr auto kOfMemory =
    std::to_array<std::string_view>({"state", "array", "local", "aux", "set_result", "result_array", "spill"});
/// Members that are templates only so that they compile where they are used.
constexpr auto kWithoutArguments = std::to_array<std::string_view>({"payload", "frame", "layers"});

std::string name_of(clang::NamedDecl const* declaration) {
  return declaration->getDeclName().isIdentifier() ? declaration->getNameAsString() : std::string();
}

/// Braces without a value inside, however many.
bool is_empty(clang::Expr const* value) {
  auto const* list = llvm::dyn_cast<clang::InitListExpr>(value);
  return list == nullptr ? llvm::isa<clang::ImplicitValueInitExpr>(value)
                         : std::ranges::all_of(list->inits(), is_empty);
}

}  // namespace

void Visitor::check_name(clang::SourceLocation at, clang::ValueDecl const* target, bool is_called) {
  if (auto const* function = llvm::dyn_cast<clang::FunctionDecl>(target); function != nullptr) {
    if (!is_called) {
      refuse(at, "function-pointer", "a function is called or not named; give a lambda to a template");
    }
    return;  // check_call() looks at what is called
  }
  auto const* variable = llvm::dyn_cast<clang::VarDecl>(target);
  if (variable == nullptr || places_.stands_with_author(variable->getLocation())) {
    return;
  }
  const std::string space = namespace_of(variable);
  if (!places_.of_framework(variable) || !variable->isConstexpr() ||
      (space != "catena::packet" && space != "catena::kernel")) {
    refuse(at, "framework-internal",
           "'" + shown(qualified_name(variable)) +
               "' is not for kernels; docs/writing-an-nf.md lists the names for kernels");
  }
}

void Visitor::check_member(clang::MemberExpr const* member) {
  clang::Expr const* base = member->getBase();
  if (llvm::isa<clang::CXXThisExpr>(base->IgnoreParenImpCasts())) {
    harmless_.insert(base);
    harmless_.insert(base->IgnoreParenImpCasts());
  } else if (member->isArrow() && !base->isTypeDependent()) {
    refuse(member->getOperatorLoc(), "dereference", "nothing checks this pointer; use an IsoPtr, which checks p[i]");
  }
  clang::ValueDecl const* target = member->getMemberDecl();
  if (llvm::isa<clang::CXXDestructorDecl>(target)) {
    refuse(member->getMemberLoc(), "destructor-call", "objects end where their scope ends");
  }
  auto const* field = llvm::dyn_cast<clang::FieldDecl>(target);
  if (field == nullptr || !places_.of_framework(field)) {
    return;
  }
  const std::string record = name_of(field->getParent());
  if (namespace_of(field) != "catena::packet" && record != "StateArray" && record != "Address6") {
    refuse(member->getMemberLoc(), "framework-internal",
           "'" + shown(qualified_name(field)) + "' is the framework's own; use the functions of the class");
  }
}

void Visitor::check_call(clang::CallExpr const* call) {
  clang::Expr const* called = call->getCallee()->IgnoreParens();
  harmless_.insert(called);
  harmless_.insert(called->IgnoreParenImpCasts());
  clang::FunctionDecl const* callee = call->getDirectCallee();
  if (callee == nullptr) {
    if (!call->isTypeDependent() && !called->isTypeDependent() && !call->isValueDependent()) {
      refuse(call->getExprLoc(), "indirect-call",
             "the called function is unknown; call a function by its name, or a lambda");
    }
    return;
  }
  if (auto const* method = llvm::dyn_cast<clang::CXXMethodDecl>(callee);
      method != nullptr && (method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator()) &&
      types_.reaches_memory(context_.getRecordType(method->getParent()))) {
    refuse(call->getExprLoc(), "handle-assignment",
           "'" + shown(context_.getRecordType(method->getParent()).getAsString()) +
               "' reaches memory, and is given once; make another variable");
  }
  // clang declares OpenCL's functions where they are used first
  const bool is_builtin =
      callee->getBuiltinID() != 0 || (callee->isImplicit() && !llvm::isa<clang::CXXMethodDecl>(callee));
  if (!is_builtin && places_.of_framework(callee)) {
    check_framework_call(call, callee);
  } else if (!is_builtin && places_.stands_with_author(callee->getLocation())) {
    note_call(callee, call->getExprLoc());
    for (clang::Expr const* argument : call->arguments()) {
      if (argument->isPRValue() && argument->getType()->isRecordType()) {
        count_storage(argument->getExprLoc(), argument->getType());  // what is passed by value is copied at each call
      }
    }
  } else {
    refuse(call->getExprLoc(), "builtin",
           "'" + shown(callee->getNameAsString()) +
               "' is the compiler's own; use the functions of catena/kernel/dialect.hpp");
  }
}

void Visitor::check_framework_call(clang::CallExpr const* call, clang::FunctionDecl const* callee) {
  const std::string name = name_of(callee);
  const std::string space = namespace_of(callee);
  auto const* method = llvm::dyn_cast<clang::CXXMethodDecl>(callee);
  if (method == nullptr) {
    if (space != "catena::packet" && (space != "catena::kernel" || !is_one_of(kDialect, name))) {
      refuse(call->getExprLoc(), "framework-internal",
             "'" + shown(qualified_name(callee)) +
                 "' is not for kernels; docs/writing-an-nf.md lists the names for kernels");
    }
    return;
  }
  check_type(call->getExprLoc(), context_.getRecordType(method->getParent()), false);
  check_template_arguments(call->getExprLoc(), callee);
  auto const* member = llvm::dyn_cast<clang::MemberExpr>(call->getCallee()->IgnoreParenImpCasts());
  if (member != nullptr && member->hasExplicitTemplateArgs() && is_one_of(kWithoutArguments, name)) {
    refuse(member->getMemberLoc(), "explicit-argument",
           "the plan sets the argument of this template; write " + name + "()");
  }
  if (name == "for_group_packet" && !harmless_.contains(call)) {
    refuse(call->getExprLoc(), "context-lifetime",
           "a value from a Context must not outlive it; keep the value in a variable");
  }
  if (name == "word") {
    auto const* record = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(method->getParent());
    const std::uint64_t words = record == nullptr ? 0 : record->getTemplateArgs()[0].getAsIntegral().getZExtValue();
    check_index(call->getArg(0), words, "use fetched[k], which checks");
  }
}

void Visitor::check_template_arguments(clang::SourceLocation at, clang::FunctionDecl const* callee) {
  clang::TemplateArgumentList const* arguments = callee->getTemplateSpecializationArgs();
  if (arguments == nullptr || !is_one_of(kOfMemory, name_of(callee))) {
    return;
  }
  for (clang::TemplateArgument const& argument : arguments->asArray()) {
    if (argument.getKind() == clang::TemplateArgument::Type) {
      if (std::optional<TypeFault> fault = types_.fault_in_memory(argument.getAsType()); fault.has_value()) {
        refuse(at, fault->rule, std::move(fault->message));
      }
    }
  }
}

void Visitor::check_construction(clang::CXXConstructExpr const* construction) {
  clang::CXXConstructorDecl const* constructor = construction->getConstructor();
  clang::CXXRecordDecl const* record = constructor->getParent();
  const clang::SourceLocation at = construction->getExprLoc();
  if (places_.of_framework(record)) {
    if (!constructor->isCopyOrMoveConstructor() && types_.reaches_memory(context_.getRecordType(record))) {
      refuse(at, "handle-construction",
             "'" + shown(context_.getRecordType(record).getAsString()) +
                 "' is made by the framework alone; get it from Context or PacketView");
    }
    return;
  }
  if (!scopes_.empty()) {
    calls_.add_construction(scopes_.back().caller, constructor, at);
  }
}

void Visitor::check_list(clang::InitListExpr const* list) {
  clang::CXXRecordDecl const* record = list->getType().isNull() ? nullptr : list->getType()->getAsCXXRecordDecl();
  if (record == nullptr) {
    return;
  }
  if (!places_.of_framework(record)) {
    note_call(record, list->getBeginLoc());
  } else if (name_of(record) == "Fetched" && !is_empty(list)) {
    refuse(list->getBeginLoc(), "handle-construction", "words are fetched by IsoPtr and Bytes; write Fetched<N>{}");
  }
}

}  // namespace catena::checker
