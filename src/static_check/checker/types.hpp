// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "static_check/checker/source.hpp"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Type.h>

namespace catena::checker {

/// Why a type must not be in a kernel.
struct TypeFault {
  std::string rule;
  std::string message;
};

/// Which types a kernel may name, and which may be in memory that it shares. Types that depend on a template's
/// parameters pass: what they become is checked in each instantiation.
class Types {
 public:
  /// Of a function's variables together, and of an element of memory, which is read and written whole.
  static constexpr std::uint64_t kMaxLocalBytes = 4096;

  Types(clang::ASTContext const& context, Places const& places) : context_(&context), places_(&places) {}

  /// Of a variable, parameter, member, expression, template argument. A reference is looked through where
  /// `references` says so: those of parameters and of local variables.
  std::optional<TypeFault> fault(clang::QualType type, bool references) const;
  /// Of an element that an IsoPtr reaches, and of the structs of a packet and of the state: numbers, enumerations, and
  /// arrays and structs of such. Bytes of that memory are whatever the NF's host wrote, so no type may be in it of
  /// which the framework relies on what it holds.
  std::optional<TypeFault> fault_in_memory(clang::QualType type) const;
  /// Whether a value of the type reaches memory: an IsoPtr, what has one inside, a reference, a lambda that captured
  /// one.
  bool reaches_memory(clang::QualType type) const;
  /// Whether a part of a value refers to a variable: what a lambda captured by reference, and `this`.
  bool holds_reference(clang::QualType type) const;
  /// Bytes of a complete type.
  std::uint64_t size_of(clang::QualType type) const;
  /// catena::kernel::Context itself.
  bool is_context(clang::QualType type) const;
  /// The name of the framework's class that the type is, as "IsoPtr"; empty for others.
  std::string framework_class(clang::QualType type) const;

 private:
  std::optional<TypeFault> record_fault(clang::QualType type) const;
  std::optional<TypeFault> memory_fault(clang::QualType type, unsigned depth) const;
  /// What is known of a class without its members; nothing: they decide.
  using ClassJudge = std::function<std::optional<bool>(clang::QualType, clang::CXXRecordDecl const&)>;
  /// Whether the type is a pointer or a reference, or has one inside, or a class that `judge` says so of.
  bool leads_out(clang::QualType type, ClassJudge const& judge, unsigned depth) const;

  clang::ASTContext const* context_;
  Places const* places_;
};

}  // namespace catena::checker
