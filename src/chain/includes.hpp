// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_source.hpp"
#include "nf/yaml_files.hpp"

#include <catena/core/status.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace YAML {
class Node;
}

/// `include`: other YAML files whose mappings are put under the keys of a chain file. A value of the file itself comes
/// first, then one of the last included file. Mappings are merged key by key, except for `rx` and `tx`; lists are not.
namespace catena::chain {

/// Maximum number of files included by a chain, and of files that include one another.
inline constexpr std::size_t kMaxIncludedFiles = 32;
inline constexpr std::size_t kMaxIncludeDepth = 8;

/// Reads the files included by the chain file with the text `text`, with the rights of the calling thread.
/// Errors, with the position of the name: InvalidArgument for a circle, too many files or bytes, an included file that
/// is no regular file; NotFound and PermissionDenied as read_file(). InvalidArgument with a position in the included
/// file if it is no YAML mapping.
Result<std::vector<IncludedFile>> read_included(std::string const& file, std::string const& text);

/// Puts the included files of `source` under `document`, the parsed text of `source`. `files`: of the document; gets
/// the included ones. Opens no file. InvalidArgument as read_included().
Status merge_included(ChainSource const& source, YAML::Node& document, nf::YamlFiles& files);

}  // namespace catena::chain
