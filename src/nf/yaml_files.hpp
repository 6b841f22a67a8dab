// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace YAML {
class Node;
struct Mark;
}  // namespace YAML

namespace catena::nf {

/// "'TEXT'", "a list", "a mapping" or "nothing", for messages.
std::string kind_of(YAML::Node const& node);

/// The files of a YAML document. The lines of each file are numbered after all earlier files, so the mark of a
/// node determines its file. Thread rule: one thread at a time.
class YamlFiles {
 public:
  YamlFiles() = default;
  /// A document without a text: at() is `name` for nodes made by the program.
  explicit YamlFiles(std::string name) : parts_{{std::move(name), 0}} {}

  /// Parses one more file, and returns its root, a mapping. The limits of YamlScope are per text, and for keys and
  /// values in total. Does not take the turn of YamlScope.
  /// InvalidArgument with file, line and column if the text is no YAML mapping, or exceeds a limit.
  Result<YAML::Node> parse(std::string_view text, std::string const& file);
  /// "file:line:column"; the first file alone for a node made by the program.
  std::string at(YAML::Mark const& mark) const;

 private:
  struct Part {
    std::string file;
    std::size_t first_line;
  };
  std::vector<Part> parts_;
  std::size_t lines_ = 0;
  std::size_t nodes_ = 0;
};

}  // namespace catena::nf
