// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apps/catena-static-check/barriers.hpp"
#include "apps/catena-static-check/calls.hpp"
#include "apps/catena-static-check/diagnostics.hpp"
#include "apps/catena-static-check/ranges.hpp"
#include "apps/catena-static-check/source.hpp"
#include "apps/catena-static-check/types.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/RecursiveASTVisitor.h>

namespace catena::checker {

/// Walks the author's code: every declaration outside the framework's files, each instantiation of the author's
/// templates, bodies of lambdas. Refuses everything not known to be harmless. The framework's own code is trusted.
class Visitor : public clang::RecursiveASTVisitor<Visitor> {
 public:
  using Base = clang::RecursiveASTVisitor<Visitor>;

  Visitor(clang::ASTContext& context, Diagnostics& diagnostics)
      : context_(context),
        diagnostics_(diagnostics),
        places_(context.getSourceManager()),
        types_(context, places_),
        ranges_(context) {}

  void run();

  // --- called by clang ---
  bool shouldVisitTemplateInstantiations() const { return true; }
  bool shouldVisitImplicitCode() const { return false; }
  bool TraverseDecl(clang::Decl* declaration);
  bool TraverseFieldDecl(clang::FieldDecl* field);
  bool TraverseStaticAssertDecl(clang::StaticAssertDecl* assertion);
  bool TraverseConstructorInitializer(clang::CXXCtorInitializer* set);
  bool TraverseInitListExpr(clang::InitListExpr* list);
  bool TraverseLambdaExpr(clang::LambdaExpr* lambda);
  bool TraverseForStmt(clang::ForStmt* loop);
  bool VisitDecl(clang::Decl* declaration);
  bool VisitStmt(clang::Stmt* statement);
  bool VisitTypeLoc(clang::TypeLoc type);

 private:
  void refuse(clang::SourceLocation at, std::string_view rule, std::string message);
  void check_type(clang::SourceLocation at, clang::QualType type, bool references);

  // --- declarations (declarations.cpp) ---
  bool is_entry(clang::FunctionDecl const* function) const;
  void check_declaration(clang::Decl const* declaration);
  void check_place(clang::NamedDecl const* declaration);
  void check_attributes(clang::Decl const* declaration);
  void check_type_attributes(clang::TypeLoc type);
  void check_namespace(clang::NamespaceDecl const* space);
  void check_variable(clang::VarDecl const* variable);
  void check_initializer(clang::VarDecl const* variable);
  void check_reference(clang::VarDecl const* variable);
  void check_record(clang::CXXRecordDecl const* record);
  void check_function(clang::FunctionDecl const* function);
  void check_constructor(clang::CXXConstructorDecl const* constructor);
  void check_order(clang::FieldDecl const* field, clang::Stmt const* value);
  void check_operator(clang::FunctionDecl const* function);
  void count_storage(clang::SourceLocation at, clang::QualType type);

  // --- statements and expressions (statements.cpp, expressions.cpp, loops.cpp) ---
  void check_kind(clang::Stmt const* statement);
  void visit_unwritten(clang::Stmt* statement);
  void check_loop(clang::Stmt const* loop, clang::Expr const* condition, clang::Stmt const* body,
                  clang::Stmt const* increment, bool is_bounded);
  void check_expression(clang::Expr const* expression);
  void check_cast(clang::CastExpr const* cast);
  void check_temporary(clang::Expr const* expression);
  void check_parts(clang::Stmt const* statement);
  void check_unary(clang::UnaryOperator const* operation);
  void check_binary(clang::BinaryOperator const* operation);
  void check_subscript(clang::ArraySubscriptExpr const* subscript);
  void check_call(clang::CallExpr const* call);
  void check_framework_call(clang::CallExpr const* call, clang::FunctionDecl const* callee);
  void check_construction(clang::CXXConstructExpr const* construction);
  void check_list(clang::InitListExpr const* list);
  void check_name(clang::SourceLocation at, clang::ValueDecl const* target, bool is_called);
  void check_member(clang::MemberExpr const* member);
  void check_template_arguments(clang::SourceLocation at, clang::FunctionDecl const* callee);
  bool has_known_index(clang::Expr const* index, std::uint64_t size) const;
  void check_index(clang::Expr const* index, std::uint64_t size, std::string const& instead);

  /// A function that encloses the current node, or a class with the initializers of its members.
  struct Scope {
    clang::Decl const* caller;
    std::uint64_t storage;  ///< bytes of local variables
    bool has_context;       ///< a Context is one of its variables or parameters
  };
  void enter_function(clang::FunctionDecl const* function);
  void leave_function(clang::FunctionDecl const* function);
  void note_call(clang::Decl const* callee, clang::SourceLocation at);

  clang::ASTContext& context_;
  Diagnostics& diagnostics_;
  Places places_;
  Types types_;
  Ranges ranges_;
  Calls calls_;
  Barriers barriers_;
  std::vector<Scope> scopes_;  ///< enclosing the current node
  /// Parts of an expression with a pointer that is not the author's: the function of a call, the array of an index,
  /// `this` before a member, the Context from which a variable is made.
  std::set<clang::Expr const*> harmless_;
  /// Parts of lists in braces visited as written: see TraverseInitListExpr().
  std::set<clang::Stmt const*> visited_;
  unsigned lists_ = 0;          ///< enclosing the current node
  clang::SourceLocation list_;  ///< start of the innermost one: parts added by the compiler have no position of their
                                ///< own
};

/// Whether every path through `statement` ends in a `return`, for any values of the conditions. Compilers trust
/// constants, which devices may compute differently, and assume that an enumeration has its named values only.
bool returns(clang::Stmt const* statement, clang::ASTContext const& context);

}  // namespace catena::checker
