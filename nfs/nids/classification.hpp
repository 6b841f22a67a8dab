// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace catena::nids {

/// Descriptions and priorities of rule classes (`classtype`): a classification.config. Thread rule: immutable after
/// parse(), any thread.
class Classification {
 public:
  struct Class {
    std::string description;
    std::uint32_t priority;  ///< 1 is the worst
  };

  /// Without classes: the default.
  Classification() = default;
  /// `text`: lines `config classification: NAME,DESCRIPTION,PRIORITY`, comments and blank lines. The first of several
  /// lines with the same name wins. InvalidArgument with file:line:column for any other line.
  static Result<Classification> parse(std::string_view text, std::string const& file);

  /// Null for an unknown class. Case does not count.
  Class const* find(std::string_view name) const;
  bool empty() const { return classes_.empty(); }

 private:
  struct LessIgnoringCase {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the name is that of std::map
    bool operator()(std::string_view a, std::string_view b) const;
  };

  std::map<std::string, Class, LessIgnoringCase> classes_;
};

}  // namespace catena::nids
