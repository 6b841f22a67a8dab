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

/// Which of the author's functions call which. Making an object runs the initialisers of its class: the class counts as
/// a function. So do the functions that the compiler writes, as those that copy: what they call is found here.
class Calls {
 public:
  struct Call {
    clang::Decl const* callee;
    clang::SourceLocation at;
  };

  void add(clang::Decl const* caller, clang::Decl const* callee, clang::SourceLocation at);
  void add_construction(clang::Decl const* caller, clang::CXXConstructorDecl const* constructor,
                        clang::SourceLocation at);
  /// What `caller` calls in a statement that is not in the source; it counts as being at `at`.
  void add_unwritten(clang::Decl const* caller, clang::Stmt const* statement, clang::SourceLocation at);
  void add_storage(clang::Decl const* caller, std::uint64_t bytes);

  /// The calls that close a cycle.
  std::vector<Call> recursive() const;
  /// Where no call closes a cycle: the innermost calls from which on all that wait for one another hold more than
  /// `most` bytes.
  std::vector<Call> too_deep(std::uint64_t most) const;

 private:
  /// A way through the calls that comes to each function once.
  struct Walk {
    std::vector<Call> closing;
    std::vector<clang::Decl const*> finished;  ///< after all that they call
  };
  Walk walk() const;
  std::vector<Call> const& of(clang::Decl const* caller) const;

  std::map<clang::Decl const*, std::vector<Call>> calls_;
  std::map<clang::Decl const*, std::uint64_t> storage_;
  std::vector<clang::Decl const*> callers_;  ///< in the order in which they came
  std::set<clang::Decl const*> followed_;    ///< of the compiler's own
};

}  // namespace catena::checker
