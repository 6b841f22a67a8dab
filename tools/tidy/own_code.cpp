// SPDX-License-Identifier: Apache-2.0
// A plug-in of clang-tidy 15 that keeps its checks from walking through the headers of libraries. Nobody is shown what
// is wrong in those, but to look for it took most of the time of a run. tools/tidy-runner builds and loads it.
#include <clang-tidy/ClangTidyCheck.h>
#include <clang-tidy/ClangTidyModule.h>
#include <clang-tidy/ClangTidyModuleRegistry.h>
#include <clang/AST/ASTContext.h>
#include <clang/ASTMatchers/ASTMatchFinder.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace {

using clang::ast_matchers::MatchFinder;

/// Finds nothing. The root of the syntax tree is shown to all checks before what is under it, and a walk asks for its
/// scope below the root alone.
class OwnCodeCheck final : public clang::tidy::ClangTidyCheck {
 public:
  using ClangTidyCheck::ClangTidyCheck;

  void registerMatchers(MatchFinder* finder) override {
    finder->addMatcher(clang::ast_matchers::translationUnitDecl().bind("unit"), this);
  }

  void check(MatchFinder::MatchResult const& result) override {
    std::vector<clang::Decl*> own;
    auto const& all = result.Nodes.getNodeAs<clang::TranslationUnitDecl>("unit")->decls();
    std::copy_if(all.begin(), all.end(), std::back_inserter(own), [&result](clang::Decl const* declaration) {
      return !result.SourceManager->isInSystemHeader(declaration->getLocation());
    });
    result.Context->setTraversalScope(own);
  }
};

class OwnCodeModule final : public clang::tidy::ClangTidyModule {
 public:
  void addCheckFactories(clang::tidy::ClangTidyCheckFactories& factories) override {
    factories.registerCheck<OwnCodeCheck>("catena-own-code");
  }
};

const clang::tidy::ClangTidyModuleRegistry::Add<OwnCodeModule> kModule("catena", "Judges no header of a library.");

}  // namespace
