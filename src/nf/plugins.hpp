// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "nf/registry.hpp"

/// Loading NFs that are not built into the program (catena/nf/plugin.hpp).
namespace catena::nf {

/// Adds the NF of the shared object `path` to `registry`, and says which it is; the object stays loaded for good.
/// Errors name the file:
///   NotFound            it cannot be opened, or needs a symbol or library that is not there
///   InvalidArgument     it exports no plugin, or a descriptor that breaks a rule
///   FailedPrecondition  it was built for another interface; says for which version
///   AlreadyExists       its type is taken
Result<Descriptor const*> load_plugin(Registry& registry, std::string const& path);

/// The folders of a search path ("/a:/b"); empty parts are left out.
std::vector<std::string> split_search_path(std::string_view path);

/// Adds every `*.so` of the folders, each folder's in order of name. A folder that is not there holds none.
/// The first error ends it.
Status load_plugins(Registry& registry, std::vector<std::string> const& folders);

}  // namespace catena::nf
