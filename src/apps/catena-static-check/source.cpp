// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-static-check/source.hpp"

#include <utility>

#include <clang/Basic/FileEntry.h>

namespace catena::checker {

std::string_view Places::file_of(clang::SourceLocation at) const {
  if (at.isInvalid()) {
    return {};
  }
  clang::FileEntry const* entry = sources_->getFileEntryForID(sources_->getFileID(at));
  return entry == nullptr ? std::string_view() : std::string_view(entry->getName());
}

bool Places::typed_by_author(clang::SourceLocation at) const {
  return at.isValid() && file_of(sources_->getSpellingLoc(at)).starts_with(kAuthorFolder);
}

bool Places::stands_with_author(clang::SourceLocation at) const {
  return at.isValid() && file_of(sources_->getExpansionLoc(at)).starts_with(kAuthorFolder);
}

bool Places::of_framework(clang::Decl const* declaration) const {
  const clang::SourceLocation at = declaration->getLocation();
  return at.isValid() && file_of(sources_->getExpansionLoc(at)).starts_with(kFrameworkFolder);
}

void Places::report(Diagnostics& diagnostics, Severity severity, clang::SourceLocation at, std::string_view rule,
                    std::string message) const {
  const clang::SourceLocation place = at.isValid() ? sources_->getExpansionLoc(at) : at;
  std::string_view name = file_of(place);
  for (const std::string_view folder : {kAuthorFolder, kFrameworkFolder}) {
    if (name.starts_with(folder)) {
      name.remove_prefix(folder.size());
    }
  }
  const unsigned line = place.isValid() ? sources_->getExpansionLineNumber(place) : 0;
  const unsigned column = place.isValid() ? sources_->getExpansionColumnNumber(place) : 0;
  diagnostics.add({severity, std::string(name), line, column, std::string(rule), std::move(message)});
}

std::string qualified_name(clang::NamedDecl const* name) { return as_written(name->getQualifiedNameAsString()); }

std::string namespace_of(clang::Decl const* declaration) {
  for (clang::DeclContext const* context = declaration->getDeclContext(); context != nullptr;
       context = context->getParent()) {
    if (auto const* space = llvm::dyn_cast<clang::NamespaceDecl>(context); space != nullptr) {
      return qualified_name(space);
    }
  }
  return {};
}

}  // namespace catena::checker
