// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "apps/catena-static-check/source.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Type.h>

namespace catena::checker {

/// Why a kernel must not contain a type.
struct TypeFault {
  std::string rule;
  std::string message;
};

/// The types that a kernel may name, and the types allowed in memory that it shares. Types that depend on template
/// parameters pass: each instantiation is checked.
class Types {
 public:
  /// Limit for the variables of a function together, and for an element of memory, which is read and written whole.
  static constexpr std::uint64_t kMaxLocalBytes = 4096;

  Types(clang::ASTContext const& context, Places const& places) : context_(&context), places_(&places) {}

  /// Checks the type of a variable, parameter, member, expression or template argument. With `references`, for
  /// parameters and local variables, a reference is checked as its target.
  std::optional<TypeFault> fault(clang::QualType type, bool references) const;
  /// Checks the type of an IsoPtr's element, and of the structs of a packet and of the state: numbers, enumerations,
  /// and arrays and structs of these. The NF's host may write any bytes to that memory, so no type is allowed whose
  /// content the framework relies on.
  std::optional<TypeFault> fault_in_memory(clang::QualType type) const;
  /// Whether a value of the type reaches memory: an IsoPtr, a class that contains one, a reference, a lambda that
  /// captured one.
  bool reaches_memory(clang::QualType type) const;
  /// Whether a part of a value refers to a variable: a lambda's capture by reference, and `this`.
  bool holds_reference(clang::QualType type) const;
  /// Size of a complete type in bytes.
  std::uint64_t size_of(clang::QualType type) const;
  /// Whether the type is catena::kernel::Context itself.
  bool is_context(clang::QualType type) const;
  /// Name of the type if it is a class of the framework, as "IsoPtr"; empty for others.
  std::string framework_class(clang::QualType type) const;

 private:
  std::optional<TypeFault> record_fault(clang::QualType type) const;
  std::optional<TypeFault> memory_fault(clang::QualType type, unsigned depth) const;
  /// The result for a class regardless of its members; nullopt: the members decide.
  using ClassJudge = std::function<std::optional<bool>(clang::QualType, clang::CXXRecordDecl const&)>;
  /// Whether the type is a pointer or a reference, contains one, or is a class for which `judge` returns true.
  bool leads_out(clang::QualType type, ClassJudge const& judge, unsigned depth) const;

  clang::ASTContext const* context_;
  Places const* places_;
};

}  // namespace catena::checker
