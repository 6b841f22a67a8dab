// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "apps/catena-static-check/diagnostics.hpp"

#include <clang/AST/Decl.h>
#include <clang/Basic/SourceLocation.h>
#include <clang/Basic/SourceManager.h>

namespace catena::checker {

/// The two compilers of a kernel. Code hidden from one of them is hidden from its check only, so a source is checked as
/// parsed by both.
enum class Dialect { kOpenCl, kCuda };

struct File {
  std::string name;
  std::string text;
};

struct Job {
  std::vector<File> author;     ///< kernel file first
  std::vector<File> framework;  ///< files that kernels may include
  std::vector<std::string> defines;
};

/// Virtual folders of the files in the compiler; no file of the machine is in them.
inline constexpr std::string_view kAuthorFolder = "/author/";
inline constexpr std::string_view kFrameworkFolder = "/framework/";

/// Determines the author of a source position. Ignores `#line`.
class Places {
 public:
  explicit Places(clang::SourceManager const& sources) : sources_(&sources) {}

  /// Whether the token at `at` was typed in a file of the author, also as a macro argument.
  bool typed_by_author(clang::SourceLocation at) const;
  /// Whether the author's text caused `at`, also by using a macro of the framework.
  bool stands_with_author(clang::SourceLocation at) const;
  /// Whether `declaration` is the framework's.
  bool of_framework(clang::Decl const* declaration) const;
  /// Adds a finding at `at`, with the names known to the author.
  void report(Diagnostics& diagnostics, Severity severity, clang::SourceLocation at, std::string_view rule,
              std::string message) const;

 private:
  std::string_view file_of(clang::SourceLocation at) const;

  clang::SourceManager const* sources_;
};

template <std::size_t Size>
bool is_one_of(std::array<std::string_view, Size> const& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The innermost namespace of a declaration, as "catena::kernel"; empty for the global one.
std::string namespace_of(clang::Decl const* declaration);

/// The qualified name of `name` as known to the author, without the framework's renaming for OpenCL.
std::string qualified_name(clang::NamedDecl const* name);

}  // namespace catena::checker
