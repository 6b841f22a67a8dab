// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-static-check/types.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "apps/catena-static-check/diagnostics.hpp"

#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclTemplate.h>

namespace catena::checker {
namespace {

constexpr unsigned kDeepestType = 64;

/// Classes of catena::kernel that kernels may name. What all of them need to be sound is private to them.
constexpr auto kPublic = std::to_array<std::string_view>(
    {"IsoPtr", "Lookups", "Bytes", "Context", "PacketView", "Fetched", "StateArray", "Address6"});
/// Those of them that may be in memory: nothing relies on what they hold.
constexpr auto kPlain = std::to_array<std::string_view>({"StateArray", "Address6"});
/// Those that hold a pointer.
constexpr auto kHandles = std::to_array<std::string_view>({"IsoPtr", "Lookups", "Bytes", "Context", "PacketView"});

/// Also for what is nested in a class of the namespace.
bool in_namespace(clang::Decl const* declaration, std::string_view name) { return namespace_of(declaration) == name; }

TypeFault pointer_fault(clang::QualType type) {
  return {"pointer", "'" + shown(type.getAsString()) +
                         "' is an unchecked pointer; use an IsoPtr from Context or PacketView, or an index"};
}

/// bool, or an enumeration of bools.
bool is_bool(clang::QualType type) {
  auto const* enumeration = type->getAs<clang::EnumType>();
  const clang::QualType number = enumeration == nullptr ? type : enumeration->getDecl()->getIntegerType();
  return !number.isNull() && number->isBooleanType();
}

std::optional<TypeFault> qualifier_fault(clang::QualType type) {
  if (type.isVolatileQualified()) {
    return TypeFault{"volatile", "it orders nothing between work-items; use IsoPtr::add() and barrier_all()"};
  }
  const clang::LangAS space = type.getAddressSpace();
  if (space == clang::LangAS::opencl_local || clang::isTargetAddressSpace(space)) {
    return TypeFault{"address-space", "variables of a kernel are its own; use Context::local() for shared ones"};
  }
  return std::nullopt;
}

}  // namespace

std::string Types::framework_class(clang::QualType type) const {
  clang::CXXRecordDecl const* record = type.getCanonicalType()->getAsCXXRecordDecl();
  if (record == nullptr || !places_->of_framework(record)) {
    return {};
  }
  return record->getNameAsString();
}

bool Types::is_context(clang::QualType type) const { return framework_class(type) == "Context"; }

std::optional<TypeFault> Types::fault(clang::QualType type, bool references) const {
  if (type.isNull() || type->isDependentType()) {
    return std::nullopt;
  }
  const clang::QualType written = type;
  type = type.getCanonicalType();
  if (type->isReferenceType()) {
    if (!references) {
      return TypeFault{"reference", "'" + shown(written.getAsString()) +
                                        "' may outlive its target; only parameters and local variables may be "
                                        "references: return or keep a value"};
    }
    return fault(type.getNonReferenceType(), false);
  }
  if (std::optional<TypeFault> wrong = qualifier_fault(type); wrong.has_value()) {
    return wrong;
  }
  if (auto const* array = context_->getAsArrayType(type); array != nullptr) {
    if (!llvm::isa<clang::ConstantArrayType>(array)) {
      return TypeFault{"array", "an array whose size the compiler does not know; give it a constant size"};
    }
    return fault(array->getElementType(), false);
  }
  if (type->isRecordType()) {
    return record_fault(type);
  }
  if (type->isAnyPointerType() || type->isBlockPointerType() || type->isNullPtrType()) {
    return pointer_fault(written);
  }
  if (type->isMemberPointerType()) {
    return TypeFault{"member-pointer",
                     "a pointer to a member reaches private members; name the member, or use a lambda"};
  }
  if (type->isArithmeticType() || type->isEnumeralType() || type->isVoidType() || type->isFunctionType() ||
      type->isUndeducedType()) {
    return std::nullopt;
  }
  return TypeFault{"type",
                   "'" + shown(written.getAsString()) +
                       "' is not in the kernel dialect; use integers of fixed width, and structs and arrays of them"};
}

std::optional<TypeFault> Types::record_fault(clang::QualType type) const {
  clang::CXXRecordDecl const* record = type->getAsCXXRecordDecl();
  if (record == nullptr || record->isUnion()) {
    return TypeFault{"union", "a union makes any value of any other; convert with static_cast and shifts"};
  }
  if (record->isLambda() || !places_->of_framework(record)) {
    if (!record->isLambda() && record->getLocation().isValid() && !places_->stands_with_author(record->getLocation())) {
      return TypeFault{"type",
                       "'" + shown(type.getAsString()) + "' is a type of the compiler, not of the kernel dialect"};
    }
    return std::nullopt;  // checked where it is declared
  }
  if (!in_namespace(record, "catena::packet") &&
      !(in_namespace(record, "catena::kernel") && is_one_of(kPublic, record->getNameAsString()))) {
    return TypeFault{"framework-internal",
                     "'" + shown(type.getAsString()) +
                         "' is the framework's own; docs/writing-an-nf.md lists the names for kernels"};
  }
  if (record->getNameAsString() == "IsoPtr") {
    if (auto const* made = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(record); made != nullptr) {
      return fault_in_memory(made->getTemplateArgs()[0].getAsType());
    }
  }
  return std::nullopt;
}

std::uint64_t Types::size_of(clang::QualType type) const {
  return static_cast<std::uint64_t>(context_->getTypeSizeInChars(type).getQuantity());
}

std::optional<TypeFault> Types::fault_in_memory(clang::QualType type) const {
  std::optional<TypeFault> fault = memory_fault(type, 0);
  if (!fault.has_value() && !type.isNull() && !type->isDependentType() && !type->isIncompleteType() &&
      size_of(type) > kMaxLocalBytes) {
    fault = {"local-storage", "'" + shown(type.getAsString()) +
                                  "' has more than 4096 bytes, and an element is read and written whole; use an IsoPtr "
                                  "to smaller ones"};
  }
  return fault;
}

std::optional<TypeFault> Types::memory_fault(clang::QualType type, unsigned depth) const {
  if (type.isNull() || type->isDependentType()) {
    return std::nullopt;
  }
  type = type.getCanonicalType();
  const TypeFault forged{"forged-handle", "'" + shown(type.getAsString()) +
                                              "' would be read from memory with arbitrary content; memory "
                                              "holds numbers, and structs and arrays of them"};
  if (depth > kDeepestType) {
    return forged;
  }
  if (auto const* array = context_->getAsArrayType(type); array != nullptr) {
    return memory_fault(array->getElementType(), depth + 1);
  }
  clang::CXXRecordDecl const* record = type->getAsCXXRecordDecl();
  if (is_bool(type)) {
    return TypeFault{
        "type", "a bool in memory may be any byte, where compilers rely on 0 and 1; use u8, and compare it with 0"};
  }
  if (record == nullptr) {
    const bool is_number = type->isArithmeticType() || type->isEnumeralType();
    return is_number ? fault(type, false) : std::optional<TypeFault>(forged);
  }
  if (places_->of_framework(record) && !in_namespace(record, "catena::packet") &&
      !is_one_of(kPlain, record->getNameAsString())) {
    return forged;
  }
  if (!record->hasDefinition() || record->isUnion() || record->isLambda()) {
    return forged;
  }
  for (clang::FieldDecl const* field : record->fields()) {
    if (std::optional<TypeFault> wrong = memory_fault(field->getType(), depth + 1); wrong.has_value()) {
      return wrong;
    }
  }
  return std::nullopt;
}

bool Types::leads_out(clang::QualType type, ClassJudge const& judge, unsigned depth) const {
  if (type.isNull() || type->isDependentType()) {
    return false;
  }
  type = type.getCanonicalType();
  if (depth > kDeepestType || type->isReferenceType() || type->isAnyPointerType()) {
    return true;
  }
  if (auto const* array = context_->getAsArrayType(type); array != nullptr) {
    return leads_out(array->getElementType(), judge, depth + 1);
  }
  clang::CXXRecordDecl const* record = type->getAsCXXRecordDecl();
  if (record == nullptr || !record->hasDefinition()) {
    return false;
  }
  if (const std::optional<bool> judged = judge(type, *record); judged.has_value()) {
    return *judged;
  }
  return std::ranges::any_of(
      record->fields(), [&](clang::FieldDecl const* field) { return leads_out(field->getType(), judge, depth + 1); });
}

bool Types::reaches_memory(clang::QualType type) const {
  const auto judge = [this](clang::QualType of, clang::CXXRecordDecl const& /*record*/) {
    return is_one_of(kHandles, framework_class(of)) ? std::optional(true) : std::nullopt;
  };
  return leads_out(type, judge, 0);
}

bool Types::holds_reference(clang::QualType type) const {
  const auto judge = [this](clang::QualType /*of*/, clang::CXXRecordDecl const& record) {
    return places_->of_framework(&record) ? std::optional(false) : std::nullopt;
  };
  return leads_out(type, judge, 0);
}

}  // namespace catena::checker
