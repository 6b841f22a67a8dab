// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <functional>
#include <set>
#include <string>

namespace YAML {
class Node;
struct Mark;
}  // namespace YAML

namespace catena::nf {

/// Returns the new text for `text`; `mark`: its position.
using TextReplacer = std::function<Result<std::string>(std::string const& text, YAML::Mark const& mark)>;

/// Texts of a document already replaced: one with an anchor occurs at each alias, too.
using ReplacedTexts = std::set<std::string const*>;

/// Replaces the texts below `node`, except for keys and for texts in `replaced`, and adds them there. At most
/// kMaxYamlNesting levels. Positions stay. Returns the first error of `replace`; earlier texts are replaced then.
Status replace_texts(YAML::Node node, ReplacedTexts& replaced, TextReplacer const& replace);

}  // namespace catena::nf
