// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <clang/AST/DeclCXX.h>
#include <clang/AST/Stmt.h>
#include <clang/Basic/SourceLocation.h>

namespace catena::checker {

/// Call graph of the author's functions. Making an object runs the initializers of its class, so the class counts as a
/// function. Compiler-generated functions count too, such as copy constructors: their calls are found here.
class Calls {
 public:
  struct Call {
    clang::Decl const* callee;
    clang::SourceLocation at;
  };

  void add(clang::Decl const* caller, clang::Decl const* callee, clang::SourceLocation at);
  void add_construction(clang::Decl const* caller, clang::CXXConstructorDecl const* constructor,
                        clang::SourceLocation at);
  /// Adds the calls of `caller` in a statement missing in the source, with position `at`.
  void add_unwritten(clang::Decl const* caller, clang::Stmt const* statement, clang::SourceLocation at);
  void add_storage(clang::Decl const* caller, std::uint64_t bytes);

  /// The calls that close a cycle.
  std::vector<Call> recursive() const;
  /// If no call closes a cycle: the innermost calls whose caller and nested callees together hold more than `most`
  /// bytes.
  std::vector<Call> too_deep(std::uint64_t most) const;

 private:
  /// A traversal of the calls that reaches each function once.
  struct Walk {
    std::vector<Call> closing;
    std::vector<clang::Decl const*> finished;  ///< after all their callees
  };
  Walk walk() const;
  std::vector<Call> const& of(clang::Decl const* caller) const;

  std::map<clang::Decl const*, std::vector<Call>> calls_;
  std::map<clang::Decl const*, std::uint64_t> storage_;
  std::vector<clang::Decl const*> callers_;  ///< in order of addition
  std::set<clang::Decl const*> followed_;    ///< compiler-generated functions
};

}  // namespace catena::checker
