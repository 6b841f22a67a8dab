// SPDX-License-Identifier: Apache-2.0
#include "chain/includes.hpp"

#include "base/core/open_file.hpp"
#include "chain/keys.hpp"
#include "nf/yaml_limits.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/config.hpp>

#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace catena::chain {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInclude = "include";

/// A name in `include`.
struct IncludedName {
  std::string file;  ///< from the folder of the file with the name
  std::string position;
};

Status wrong(std::string_view position, std::string_view what) {
  return absl::InvalidArgumentError(escaped(concat(position, ": '", kInclude, "'", what)));
}

Result<std::vector<IncludedName>> included_by(YAML::Node const& document, std::string const& file,
                                              nf::YamlFiles const& files) {
  std::vector<IncludedName> named;
  bool is_given = false;
  for (auto const& entry : document) {
    if (entry.first.Scalar() != kInclude) {
      continue;
    }
    if (std::exchange(is_given, true)) {
      return absl::InvalidArgumentError(concat(files.at(entry.first.Mark()), ": key 'include' is given twice"));
    }
    const YAML::Node list = entry.second.IsScalar() ? YAML::Node(YAML::NodeType::Sequence) : entry.second;
    std::vector<YAML::Node> names(list.begin(), list.end());
    if (entry.second.IsScalar()) {
      names.push_back(entry.second);
    } else if (!entry.second.IsSequence()) {
      return wrong(files.at(entry.second.Mark()), " must be the name of a file, or a list of such");
    }
    for (YAML::Node const& name : names) {
      const std::string position = files.at(name.Mark());
      if (!name.IsScalar() || name.Scalar().empty() || name.Scalar().find('\0') != std::string::npos) {
        return wrong(position, " must be the name of a file, or a list of such");
      }
      if (name.Scalar().find("${") != std::string::npos) {
        return wrong(position, " takes no variables; write the name of the file");
      }
      const fs::path path = fs::path(file).parent_path() / name.Scalar();
      named.push_back({path.lexically_normal().string(), position});
    }
  }
  return named;
}

/// Reads included files in the order of merge_included().
class Reader {
 public:
  /// `bytes`: of the chain file.
  explicit Reader(std::size_t bytes) : bytes_(bytes) {}

  /// `way`: the files from the chain file to this one.
  Status read(std::vector<std::string> const& way, std::string const& text) {
    if (text.find(kInclude) == std::string::npos) {
      return absl::OkStatus();  // saves the time to parse it twice
    }
    std::vector<IncludedName> named;
    CATENA_RETURN_IF_ERROR(
        nf::Config::parse(text, way.back(), [&](YAML::Node const& document, nf::YamlFiles const& files) -> Status {
          CATENA_ASSIGN_OR_RETURN(named, included_by(document, way.back(), files));
          return absl::OkStatus();
        }).status());
    for (IncludedName const& each : named) {
      CATENA_RETURN_IF_ERROR(read_one(way, each));
    }
    return absl::OkStatus();
  }

  std::vector<IncludedFile> take() { return std::move(included_); }

 private:
  Status read_one(std::vector<std::string> way, IncludedName const& named) {
    const bool is_circle = std::ranges::find(way, named.file) != way.end();
    way.push_back(named.file);
    const std::string shown = fmt::format("{}", fmt::join(way, " -> "));
    if (is_circle) {
      return wrong(named.position, concat(": a circle: ", shown));
    }
    if (way.size() > kMaxIncludeDepth + 1) {
      return wrong(named.position, concat(": more than ", kMaxIncludeDepth, " files include one another: ", shown));
    }
    if (included_.size() == kMaxIncludedFiles) {
      return wrong(named.position, concat(": a chain includes at most ", kMaxIncludedFiles, " files"));
    }
    const std::size_t limit = nf::YamlScope::limits().bytes;
    Result<std::string> text = read_file(named.file, limit);
    if (!text.ok()) {
      return {text.status().code(),
              escaped(concat(named.position, ": 'include': ", std::string(text.status().message())))};
    }
    if (bytes_ += text->size(); bytes_ > limit) {
      return wrong(named.position,
                   concat(": with ", named.file, " the files of the chain have more than ", limit, " bytes"));
    }
    included_.push_back({named.file, *text});
    return read(way, *text);
  }

  std::vector<IncludedFile> included_;
  std::size_t bytes_;  ///< of all texts
};

/// The mapping without keys at `mark`: errors about missing keys name this position.
YAML::Node empty_mapping(YAML::Mark const& mark) {
  return mark.is_null() ? YAML::Node(YAML::NodeType::Map)
                        : YAML::Load(concat(std::string(static_cast<std::size_t>(mark.line), '\n'),
                                            std::string(static_cast<std::size_t>(mark.column), ' '), "{}"));
}

/// Null: the section has no such key.
Key const* find_key(std::span<const Key> keys, std::string_view name) {
  const auto found = std::ranges::find(keys, name, &Key::name);
  return found == keys.end() ? nullptr : &*found;
}

/// Whether two values of the key become one.
bool is_merged(Key const* key) {
  return key != nullptr &&
         ((key->kind == KeyKind::kSection && key->alternatives.empty()) || key->kind == KeyKind::kVariables);
}

/// `upper` with the entries of `lower` that it lacks. Both stay as they are: an alias may share them. Keys given twice
/// in one file stay, as errors.
YAML::Node merged(YAML::Node const& upper, YAML::Node const& lower, std::span<const Key> keys) {
  YAML::Node result = empty_mapping(upper.Mark());
  std::map<std::string, YAML::Node> of_lower;
  for (auto const& entry : lower) {
    of_lower.emplace(entry.first.Scalar(), entry.second);
  }
  std::set<std::string> known;
  for (auto const& entry : upper) {
    std::string const& name = entry.first.Scalar();
    known.insert(name);
    Key const* const key = find_key(keys, name);
    const auto other = of_lower.find(name);
    const bool are_maps = other != of_lower.end() && other->second.IsMap() && entry.second.IsMap();
    result.force_insert(entry.first, are_maps && is_merged(key) ? merged(entry.second, other->second, key->keys)
                                                                : YAML::Node(entry.second));
  }
  std::set<std::string> seen;
  for (auto const& entry : lower) {
    std::string const& name = entry.first.Scalar();
    if (!seen.insert(name).second || !known.contains(name)) {
      result.force_insert(entry.first, entry.second);
    }
  }
  return result;
}

/// `document`, the file `file`, over the files included by it. `texts`: those not merged yet.
Result<YAML::Node> with_included(YAML::Node document, std::string const& file, std::span<const IncludedFile>& texts,
                                 nf::YamlFiles& files) {
  CATENA_ASSIGN_OR_RETURN(const std::vector<IncludedName> named, included_by(document, file, files));
  document.remove(std::string(kInclude));
  std::vector<YAML::Node> parts;
  for (IncludedName const& each : named) {
    if (texts.empty()) {
      return wrong(each.position, " has an escape; write it as a plain word");
    }
    IncludedFile const& part = texts.front();
    texts = texts.subspan(1);
    CATENA_ASSIGN_OR_RETURN(const YAML::Node root, files.parse(part.text, part.file));
    CATENA_ASSIGN_OR_RETURN(parts.emplace_back(), with_included(root, part.file, texts, files));
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    document.reset(merged(document, *part, chain_keys()));
  }
  return document;
}

}  // namespace

Result<std::vector<IncludedFile>> read_included(std::string const& file, std::string const& text) {
  Reader reader(text.size());
  CATENA_RETURN_IF_ERROR(reader.read({fs::path(file).lexically_normal().string()}, text));
  return reader.take();
}

Status merge_included(ChainSource const& source, YAML::Node& document, nf::YamlFiles& files) {
  std::span<const IncludedFile> texts = source.included;
  CATENA_ASSIGN_OR_RETURN(const YAML::Node whole, with_included(document, source.file, texts, files));
  document.reset(whole);
  return absl::OkStatus();
}

}  // namespace catena::chain
