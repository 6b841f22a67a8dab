// SPDX-License-Identifier: Apache-2.0
#include "nf/yaml_files.hpp"

#include "base/core/file_format.hpp"
#include "nf/yaml_errors.hpp"
#include "nf/yaml_gauge.hpp"
#include "nf/yaml_limits.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/text_file.hpp>

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>

namespace catena::nf {
namespace {

/// InvalidArgument with a message of one line, whatever the file has in it.
Status invalid(std::string_view message) { return absl::InvalidArgumentError(escaped(message)); }

Status too_large(std::string const& file, std::uint64_t bytes, std::size_t limit) {
  return invalid(concat(file, ": ", bytes, " bytes; a YAML file here has at most ", limit));
}

Status not_yaml(std::string_view text, std::string const& file, std::size_t first_line, YAML::Exception const& error) {
  if (error.mark.is_null()) {
    return invalid(concat(file, ": not valid YAML: ", error.msg));
  }
  const YamlError found = explain_yaml_error(text, {static_cast<std::size_t>(error.mark.line) - first_line,
                                                    static_cast<std::size_t>(error.mark.column), error.msg});
  return invalid(concat(file, ":", found.line + 1, ":", found.column + 1, ": not valid YAML: ", found.message));
}

/// yaml-cpp looks ahead to the end of brackets before it says that they begin: their depth is bounded before that.
Status check_nesting(std::string_view text, std::string const& file) {
  std::size_t flow_depth = 0;
  std::size_t dashes = 0;
  for (const char c : text) {
    flow_depth += c == '[' || c == '{' ? 1 : 0;
    flow_depth -= (c == ']' || c == '}') && flow_depth > 0 ? 1 : 0;
    dashes = c == '-' || c == '?' || (c == ' ' && dashes > 0) ? dashes + (c == ' ' ? 0 : 1) : 0;
    if (flow_depth > kMaxYamlNesting || dashes > 2 * std::size_t{kMaxYamlNesting}) {
      return invalid(concat(file, ": nested more than ", kMaxYamlNesting, " levels deep"));
    }
  }
  return absl::OkStatus();
}

Status check_mapping(YAML::Node const& node, YamlFiles const& files) {
  if (!node.IsMap()) {
    return invalid(concat(files.at(node.Mark()), ": expected a mapping of `key: value` lines, found ", kind_of(node)));
  }
  for (auto const& entry : node) {
    if (!entry.first.IsScalar()) {
      return invalid(concat(files.at(entry.first.Mark()), ": a key must be a plain word"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string kind_of(YAML::Node const& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return concat("'", node.Scalar(), "'");
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Map:
      return "a mapping";
    default:
      return "nothing";
  }
}

Result<YAML::Node> YamlFiles::parse(std::string_view text, std::string const& file) {
  const YamlLimits limits = YamlScope::limits();
  if (text.size() > limits.bytes) {
    return too_large(file, text.size(), limits.bytes);
  }
  if (is_capture(text)) {
    return invalid(
        concat(file, ": this is a packet capture, not YAML; a chain reads it by `rx: {pcap: FILE}` or --rx pcap:FILE"));
  }
  if (Compression const* compression = compression_of(text); compression != nullptr) {
    return invalid(concat(file, ": this is compressed by ", compression->name,
                          ", not YAML; decompress it: ", compression->tool, " FILE"));
  }
  CATENA_RETURN_IF_ERROR(check_nesting(text, file));
  const std::string plain = plain_text(std::string(text));
  const std::size_t first_line = lines_;
  parts_.push_back({file, first_line});
  lines_ += static_cast<std::size_t>(std::ranges::count(plain, '\n')) + 1;
  try {
    const std::string numbered = concat(std::string(first_line, '\n'), plain);
    std::istringstream stream(numbered);
    YAML::Parser parser(stream);
    YamlGauge gauge(limits.nodes, nodes_);
    parser.HandleNextDocument(gauge);
    YAML::Node root = YAML::Load(numbered);
    CATENA_RETURN_IF_ERROR(check_mapping(root, *this));
    // YAML::LoadAll would find a second one, too, but does not end on some broken texts: it makes empty documents until
    // memory is full
    parser.HandleNextDocument(gauge);
    nodes_ = gauge.nodes();
    return root;
  } catch (YamlGauge::Refused const& refused) {
    return invalid(concat(at(refused.mark), ": ", refused.why));
  } catch (YamlGauge::Second const& second) {
    return invalid(concat(at(second.mark), ": a second YAML document starts here; write everything in one mapping"));
  } catch (YAML::Exception const& e) {
    return not_yaml(plain, file, first_line, e);
  }
}

std::string YamlFiles::at(YAML::Mark const& mark) const {
  if (mark.is_null()) {
    return escaped(parts_.front().file);
  }
  const auto line = static_cast<std::size_t>(mark.line);
  const auto part = std::ranges::find_if(parts_.rbegin(), parts_.rend(),
                                         [line](Part const& each) { return each.first_line <= line; });
  return concat(escaped(part->file), ":", line - part->first_line + 1, ":", mark.column + 1);
}

}  // namespace catena::nf
