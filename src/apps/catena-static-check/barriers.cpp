// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-static-check/barriers.hpp"

#include <algorithm>
#include <string_view>

#include <clang/AST/DeclCXX.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/StmtCXX.h>

#include "apps/catena-static-check/ranges.hpp"

namespace catena::checker {
namespace {

constexpr std::string_view kBarrier = "catena::kernel::barrier_all";

bool is_barrier(clang::FunctionDecl const* function) {
  return function->getDeclName().isIdentifier() && function->getQualifiedNameAsString() == kBarrier;
}

/// Plain functions and methods are called where their name stands, and nowhere else.
bool is_named_where_called(clang::FunctionDecl const* function) {
  auto const* method = llvm::dyn_cast<clang::CXXMethodDecl>(function);
  return function->getDeclName().isIdentifier() && (method == nullptr || !method->getParent()->isLambda());
}

bool leaves(clang::Stmt const* statement) {
  return statement != nullptr && !llvm::isa<clang::LambdaExpr>(statement) &&
         (llvm::isa<clang::BreakStmt, clang::ContinueStmt, clang::ReturnStmt>(statement) ||
          std::ranges::any_of(statement->children(), leaves));
}

bool is_constant(clang::Expr const* value, clang::ASTContext const& context) {
  return value != nullptr && !value->isValueDependent() && value->isIntegerConstantExpr(context);
}

}  // namespace

/// Through the body of one function, in the order in which it runs.
class Barriers::Walk {
 public:
  Walk(clang::FunctionDecl const* function, std::vector<Call>& calls)
      : context_(function->getASTContext()), calls_(calls) {}

  void go(clang::Stmt const* statement, bool is_everybodys) {
    if (statement == nullptr || llvm::isa<clang::LambdaExpr>(statement)) {
      return;  // the body of a lambda is a function of its own
    }
    note(statement, is_everybodys && !has_returned_);
    if (auto const* choice = llvm::dyn_cast<clang::IfStmt>(statement); choice != nullptr) {
      go(choice->getInit(), is_everybodys);
      go(choice->getCond(), is_everybodys);
      go(choice->getThen(), is_everybodys && choice->isConstexpr());
      go(choice->getElse(), is_everybodys && choice->isConstexpr());
    } else if (auto const* loop = llvm::dyn_cast<clang::ForStmt>(statement); loop != nullptr) {
      go(loop->getInit(), is_everybodys);
      const bool is_same = is_everybodys && has_the_same_turns(loop);
      for (clang::Stmt const* part : {static_cast<clang::Stmt const*>(loop->getCond()),
                                      static_cast<clang::Stmt const*>(loop->getInc()), loop->getBody()}) {
        go(part, is_same);
      }
    } else {
      const bool decides =
          llvm::isa<clang::SwitchStmt, clang::WhileStmt, clang::DoStmt, clang::ConditionalOperator>(statement) ||
          is_short(statement);
      for (clang::Stmt const* child : statement->children()) {
        go(child, is_everybodys && !decides);
      }
      has_returned_ = has_returned_ || llvm::isa<clang::ReturnStmt>(statement);
    }
  }

 private:
  static bool is_short(clang::Stmt const* statement) {
    auto const* operation = llvm::dyn_cast<clang::BinaryOperator>(statement);
    return operation != nullptr && operation->isLogicalOp();
  }

  bool has_the_same_turns(clang::ForStmt const* loop) const {
    clang::VarDecl const* counter = counter_of(loop);
    auto const* condition = llvm::dyn_cast_or_null<clang::BinaryOperator>(loop->getCond());
    auto const* step = llvm::dyn_cast_or_null<clang::CompoundAssignOperator>(loop->getInc());
    auto const* up = llvm::dyn_cast_or_null<clang::UnaryOperator>(loop->getInc());
    return counter != nullptr && condition != nullptr && condition->isRelationalOp() &&
           is_read_of(condition->getLHS(), counter) && is_constant(counter->getInit(), context_) &&
           is_constant(condition->getRHS(), context_) &&
           ((up != nullptr && up->isIncrementDecrementOp() && is_read_of(up->getSubExpr(), counter)) ||
            (step != nullptr && is_read_of(step->getLHS(), counter) && is_constant(step->getRHS(), context_))) &&
           !changes(loop->getBody(), counter) && !leaves(loop->getBody());
  }

  void note(clang::Stmt const* statement, bool is_everybodys) {
    if (auto const* call = llvm::dyn_cast<clang::CallExpr>(statement); call != nullptr) {
      if (clang::FunctionDecl const* callee = call->getDirectCallee(); callee != nullptr) {
        calls_.push_back({callee->getCanonicalDecl(), call->getExprLoc(), is_everybodys});
      }
    } else if (auto const* made = llvm::dyn_cast<clang::CXXConstructExpr>(statement); made != nullptr) {
      calls_.push_back({made->getConstructor()->getCanonicalDecl(), made->getExprLoc(), is_everybodys});
      for (clang::CXXCtorInitializer const* set : made->getConstructor()->inits()) {
        go(set->getInit(), false);
      }
    } else if (auto const* standard = llvm::dyn_cast<clang::CXXDefaultArgExpr>(statement); standard != nullptr) {
      go(standard->getExpr(), false);
    } else if (auto const* member = llvm::dyn_cast<clang::CXXDefaultInitExpr>(statement); member != nullptr) {
      go(member->getExpr(), false);
    }
  }

  clang::ASTContext const& context_;
  std::vector<Call>& calls_;
  bool has_returned_ = false;
};

void Barriers::add(clang::FunctionDecl const* function) {
  std::vector<Call>& calls = calls_[function->getCanonicalDecl()];
  Walk(function, calls).go(function->getBody(), is_named_where_called(function));
}

std::vector<clang::SourceLocation> Barriers::divergent() const {
  std::set<clang::FunctionDecl const*> waiting;
  const auto waits = [&waiting](Call const& call) { return is_barrier(call.callee) || waiting.contains(call.callee); };
  for (bool is_more = true; is_more;) {
    is_more = false;
    for (auto const& [function, calls] : calls_) {
      is_more = (std::ranges::any_of(calls, waits) && waiting.insert(function).second) || is_more;
    }
  }
  std::vector<clang::SourceLocation> found;
  for (auto const& [function, calls] : calls_) {
    for (Call const& call : calls) {
      if (!call.is_everybodys && waits(call)) {
        found.push_back(call.at);
      }
    }
  }
  return found;
}

}  // namespace catena::checker
