// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "nf/registry.hpp"

/// Loading NFs that are not built into the program (catena/nf/plugin.hpp).
namespace catena::nf {

/// Adds the NF of the shared object `path` to `registry` and returns its descriptor. The object is never unloaded.
/// Errors name the file:
///   NotFound            it cannot be opened, or lacks a required symbol or library
///   InvalidArgument     it exports no plugin, or its descriptor breaks a rule
///   FailedPrecondition  it was built for another interface; the message has its version
///   AlreadyExists       its type is taken
Result<Descriptor const*> load_plugin(Registry& registry, std::string const& path);

/// The folders of a search path ("/a:/b"), without empty parts.
std::vector<std::string> split_search_path(std::string_view path);

/// Adds every `*.so` of the folders, in order of name within a folder. A missing folder counts as empty.
/// Stops at the first error.
Status load_plugins(Registry& registry, std::vector<std::string> const& folders);

}  // namespace catena::nf
