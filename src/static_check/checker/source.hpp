// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "static_check/checker/findings.hpp"

#include <clang/AST/Decl.h>
#include <clang/Basic/SourceLocation.h>
#include <clang/Basic/SourceManager.h>

namespace catena::checker {

/// The two compilers that a kernel goes through. What one of them does not see is hidden from its check alone, so a
/// source is checked as both would take it.
enum class Dialect { kOpenCl, kCuda };

struct File {
  std::string name;
  std::string text;
};

struct Job {
  std::vector<File> author;     ///< kernel file first
  std::vector<File> framework;  ///< what kernels may include
  std::vector<std::string> defines;
};

/// Where files are in the compiler's eyes: no file of the machine is.
inline constexpr std::string_view kAuthorFolder = "/author/";
inline constexpr std::string_view kFrameworkFolder = "/framework/";

/// Says of a place who wrote it. Never asks what `#line` says.
class Places {
 public:
  explicit Places(clang::SourceManager const& sources) : sources_(&sources) {}

  /// The token at `at` was typed in a file of the author, also as the argument of a macro.
  bool typed_by_author(clang::SourceLocation at) const;
  /// The place where the text of the author brought it about: macros of the framework are used there.
  bool stands_with_author(clang::SourceLocation at) const;
  /// `declaration` is the framework's.
  bool of_framework(clang::Decl const* declaration) const;
  /// Adds a finding at `at`, in the names that the author knows.
  void report(Findings& findings, Severity severity, clang::SourceLocation at, std::string_view rule,
              std::string message) const;

 private:
  std::string_view file_of(clang::SourceLocation at) const;

  clang::SourceManager const* sources_;
};

template <std::size_t Size>
bool is_one_of(std::array<std::string_view, Size> const& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The innermost namespace that a declaration is in, as "catena::kernel"; empty for the global one.
std::string namespace_of(clang::Decl const* declaration);

/// The qualified name of `name` as the author knows it: what the framework renames for OpenCL has its own name.
std::string qualified_name(clang::NamedDecl const* name);

}  // namespace catena::checker
