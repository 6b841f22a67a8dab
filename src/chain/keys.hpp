// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/nf/config.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

/// The keys of a chain file as tables, for checking, reading and describing them (`catena show schema`).
namespace catena::chain {

enum class KeyKind {
  kText,       ///< any
  kName,       ///< at most kMaxNameLength letters, digits, '-', '_' and '.'
  kFile,       ///< name of a file
  kTexts,      ///< one text, or a list of `minimum` to `maximum`; each one of `words`, if any
  kWord,       ///< one of `words`
  kDevices,    ///< for device::parse_preferences(): one text, or a list of up to `maximum`
  kInteger,    ///< `minimum` to `maximum`, or one of `words`, if any
  kNumber,     ///< `minimum` to `maximum`, with or without a fraction
  kIntegers,   ///< one integer, or a list of 1 to `most`
  kSection,    ///< a mapping with the keys `keys`, or one of `words`, if any
  kSections,   ///< a list of at most `maximum` such mappings
  kOfNf,       ///< a mapping with the keys of the NF's type
  kVariables,  ///< a mapping of names of variables to texts
};

class FileSection;
struct Key;

/// A struct that a section is read into, of any type.
class Target {
 public:
  template <typename T>
  explicit Target(T& value) : value_(&value), type_(&typeid(T)) {}
  /// Null if it is of another type.
  template <typename T>
  T* as() const {
    return *type_ == typeid(T) ? static_cast<T*>(value_) : nullptr;
  }

 private:
  void* value_;
  std::type_info const* type_;
};

/// Reads `key` of a section accepted by check_keys() into a field of `target`; does nothing if the target is of another
/// type. Most are made by key_fields.hpp.
using KeyReader = Status (*)(FileSection& section, Key const& key, Target const& target);

/// What to do about an unknown key of a section.
struct Advice {
  std::string_view key;  ///< empty: any
  std::string_view text;
};

struct Key {
  std::string_view name;
  KeyKind kind = KeyKind::kText;
  std::string_view help;
  std::string_view fallback = {};  ///< in the syntax of a chain file; empty: no default
  bool is_required = false;
  std::string_view stands_in = {};  ///< if required: the key that makes this one optional
  bool is_nullable = false;         ///< `null` is valid, too
  bool takes_text = false;          ///< of a section: any text is valid, too; its reader checks it
  std::int64_t minimum = 0;
  std::int64_t maximum = 0;
  std::int64_t most = 0;
  std::span<const std::string_view> words = {};
  std::span<const Key> keys = {};
  /// Of `keys`: a section has exactly one of these, as displayed: "pcap: FILE".
  std::span<const std::string_view> alternatives = {};
  KeyReader into = nullptr;             ///< where the value goes; null: the reader of the section takes it by its name
  std::span<const Advice> advice = {};  ///< on keys that are not in `keys`; the first that fits is given
};

inline constexpr std::size_t kMaxNameLength = 64;

/// The top level.
std::span<const Key> chain_keys();

/// All errors in the keys of a section and its subsections, each key by itself: unknown, missing, invalid value. One
/// per line. `advice`: on unknown keys, as in Key.
Status check_keys(nf::Config section, std::span<const Key> keys, std::span<const Advice> advice = {});

/// A section accepted by check_keys(), read by its table. Each getter takes the name of a key of the table.
class FileSection {
 public:
  /// Treatment of a field whose key is missing.
  enum class Missing {
    kFallback,  ///< it gets the table's fallback, if any
    kLeft       ///< it stays as it is: the section is put over another one
  };
  FileSection(nf::Config config, std::span<const Key> keys, Missing missing = Missing::kFallback)
      : config_(std::move(config)), keys_(keys), missing_(missing) {}

  nf::Config& config() { return config_; }
  bool has(std::string_view name) { return config_.has(name); }
  /// Whether a field is read from the key, or its fallback.
  bool gives(Key const& key) {
    return config_.has(key.name) || (missing_ == Missing::kFallback && !key.fallback.empty());
  }
  /// The value, or the table's fallback.
  Result<std::string> text(std::string_view name);
  Result<std::int64_t> integer(std::string_view name);
  /// 0 for a word.
  Result<std::int64_t> integer_or_word(std::string_view name);
  Result<double> number(std::string_view name);
  Result<std::vector<std::int64_t>> integers(std::string_view name);
  Result<std::vector<std::string>> texts(std::string_view name);
  /// Whether the value is a word in place of a section.
  bool is_word(std::string_view name) { return config_.has(name) && config_.string(name).ok(); }
  /// Reads all keys whose Key::into is of a field of `value`.
  template <typename T>
  Status read_into(T& value) {
    return read_fields(Target(value));
  }
  /// Empty if the key is missing and not required.
  Result<FileSection> section(std::string_view name);
  Result<std::vector<FileSection>> sections(std::string_view name);

 private:
  Key const& key(std::string_view name) const;
  Status read_fields(Target const& target);

  nf::Config config_;
  std::span<const Key> keys_;
  Missing missing_;
};

}  // namespace catena::chain
