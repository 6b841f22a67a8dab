// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/keys.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Values of Key::into: the field of a struct that a key is read into. FileSection::read_into() uses them.
namespace catena::chain {

template <typename Pointer>
struct FieldOf;
template <typename OwnerType, typename ValueType>
struct FieldOf<ValueType OwnerType::*> {
  using Owner = OwnerType;
  using Value = ValueType;
};

/// A missing key leaves the field as it is, unless the table has a fallback. Precondition: check_keys() has accepted
/// the section.
template <std::unsigned_integral T>
requires(!std::same_as<T, bool>) Status read_value(FileSection& section, Key const& key, T& value) {
  if (section.gives(key)) {
    CATENA_ASSIGN_OR_RETURN(const std::int64_t number, section.integer_or_word(key.name));
    value = static_cast<T>(number);
  }
  return absl::OkStatus();
}
inline Status read_value(FileSection& section, Key const& key, double& value) {
  if (section.gives(key)) {
    CATENA_ASSIGN_OR_RETURN(value, section.number(key.name));
  }
  return absl::OkStatus();
}
inline Status read_value(FileSection& section, Key const& key, bool& value) {
  CATENA_ASSIGN_OR_RETURN(value, section.config().boolean_or(key.name, value));
  return absl::OkStatus();
}
inline Status read_value(FileSection& section, Key const& key, std::string& value) {
  if (section.gives(key)) {
    CATENA_ASSIGN_OR_RETURN(value, section.text(key.name));
  }
  return absl::OkStatus();
}
inline Status read_value(FileSection& section, Key const& key, std::vector<std::string>& value) {
  if (section.gives(key)) {
    CATENA_ASSIGN_OR_RETURN(value, section.texts(key.name));
  }
  return absl::OkStatus();
}
inline Status read_value(FileSection& section, Key const& key, std::vector<std::uint32_t>& value) {
  if (section.gives(key)) {
    CATENA_ASSIGN_OR_RETURN(const std::vector<std::int64_t> numbers, section.integers(key.name));
    value.assign(numbers.begin(), numbers.end());
  }
  return absl::OkStatus();
}
inline Status read_value(FileSection& section, Key const& key, nf::Config& value) {
  CATENA_ASSIGN_OR_RETURN(value, section.config().section_or_empty(key.name));
  return absl::OkStatus();
}
template <typename T>
Status read_value(FileSection& section, Key const& key, std::optional<T>& value) {
  return section.has(key.name) ? read_value(section, key, value.emplace()) : absl::OkStatus();
}

/// Reads a key into this field. A word of an integer key is 0.
template <auto Field>
Status into(FileSection& section, Key const& key, Target const& target) {
  auto* const owner = target.as<typename FieldOf<decltype(Field)>::Owner>();
  return owner == nullptr ? absl::OkStatus() : read_value(section, key, owner->*Field);
}

/// Reads a key by a function of its own. A missing key without a fallback leaves the struct as it is.
template <auto Read>
struct ReaderOf;
template <typename OwnerType, Status (*Read)(FileSection&, Key const&, OwnerType&)>
struct ReaderOf<Read> {
  static Status into(FileSection& section, Key const& key, Target const& target) {
    auto* const owner = target.as<OwnerType>();
    return owner == nullptr || !section.gives(key) ? absl::OkStatus() : Read(section, key, *owner);
  }
};
template <auto Read>
constexpr KeyReader kReadBy = &ReaderOf<Read>::into;

/// Reads the keys of a section into a field that is a struct; a missing section leaves it as it is.
template <auto Field>
Status into_section(FileSection& section, Key const& key, Target const& target) {
  auto* const owner = target.as<typename FieldOf<decltype(Field)>::Owner>();
  if (owner == nullptr || !section.has(key.name)) {
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(FileSection inner, section.section(key.name));
  return inner.read_into(owner->*Field);
}

/// Reads a key with words into this field: `Values`, in the order of Key::words.
template <auto Field, auto... Values>
Status into_word(FileSection& section, Key const& key, Target const& target) {
  using Owner = typename FieldOf<decltype(Field)>::Owner;
  auto* const owner = target.as<Owner>();
  if (owner == nullptr || !section.gives(key)) {
    return absl::OkStatus();
  }
  constexpr std::array kAll{Values...};
  CATENA_ASSIGN_OR_RETURN(const std::string word, section.text(key.name));
  for (std::size_t i = 0; i < kAll.size() && i < key.words.size(); ++i) {
    if (key.words[i] == word) {
      owner->*Field = kAll[i];
    }
  }
  return absl::OkStatus();
}

}  // namespace catena::chain
