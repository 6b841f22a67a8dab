// SPDX-License-Identifier: Apache-2.0
#include "nf/yaml_texts.hpp"

#include <yaml-cpp/yaml.h>

namespace catena::nf {

Status replace_texts(YAML::Node node, ReplacedTexts& replaced, TextReplacer const& replace) {
  if (node.IsScalar()) {
    if (!replaced.insert(&node.Scalar()).second) {
      return absl::OkStatus();
    }
    CATENA_ASSIGN_OR_RETURN(const std::string text, replace(node.Scalar(), node.Mark()));
    if (text != node.Scalar()) {
      node = text;
    }
    return absl::OkStatus();
  }
  if (node.IsSequence()) {
    for (YAML::Node const& entry : node) {
      CATENA_RETURN_IF_ERROR(replace_texts(entry, replaced, replace));
    }
  }
  if (node.IsMap()) {
    for (auto const& entry : node) {
      CATENA_RETURN_IF_ERROR(replace_texts(entry.second, replaced, replace));
    }
  }
  return absl::OkStatus();
}

}  // namespace catena::nf
