// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <cstdint>

/// NFs that are not built into the program: shared objects made by catena_add_nf() against the installed headers. Such
/// an object runs in this process with all its rights; load it only if you would run it as a program.
namespace catena::nf {

/// Raised with every change of a type shared by NFs and the program.
inline constexpr std::uint32_t kPluginInterface = 14;

/// The symbol `catena_nf_plugin` of a shared object, in static storage. Its layout never changes.
struct Plugin {
  std::uint32_t interface;  ///< kPluginInterface at the object's build
  const char* version;      ///< the Catena version of the object's build, for messages
  Descriptor const& (*descriptor)();
};
inline constexpr const char* kPluginSymbol = "catena_nf_plugin";

}  // namespace catena::nf
