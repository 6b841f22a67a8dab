// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/registry.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// NFs that are not built into the program: shared objects made by catena_add_nf() against the installed headers.
/// Such an object is code of this process with all its rights; load only what you would run as a program.
namespace catena::nf {

/// Raised whenever a type that NFs and the program share changes.
inline constexpr std::uint32_t kPluginInterface = 3;

/// What a shared object exports as `catena_nf_plugin`, in static storage. Its layout never changes.
struct Plugin {
  std::uint32_t interface;  ///< kPluginInterface when the object was built
  const char* version;      ///< the Catena that it was built against, for messages
  Descriptor const& (*descriptor)();
};
inline constexpr const char* kPluginSymbol = "catena_nf_plugin";

/// Adds the NF of the shared object `path` to `registry`; the object stays loaded for good. Errors name the file:
///   NotFound            it cannot be opened, or needs a symbol or library that is not there
///   InvalidArgument     it exports no plugin, or a descriptor that breaks a rule
///   FailedPrecondition  it was built for another interface; says for which version
///   AlreadyExists       its type is taken
Status load_plugin(Registry& registry, std::string const& path);

/// The folders of a search path ("/a:/b"); empty parts are left out.
std::vector<std::string> split_search_path(std::string_view path);

/// Adds every `*.so` of the folders, each folder's in order of name. A folder that is not there holds none.
/// The first error ends it.
Status load_plugins(Registry& registry, std::vector<std::string> const& folders);

}  // namespace catena::nf
