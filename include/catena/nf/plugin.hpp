// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <cstdint>

/// NFs that are not built into the program: shared objects made by catena_add_nf() against the installed headers.
/// Such an object is code of this process with all its rights; load only what you would run as a program.
namespace catena::nf {

/// Raised whenever a type that NFs and the program share changes.
inline constexpr std::uint32_t kPluginInterface = 10;

/// What a shared object exports as `catena_nf_plugin`, in static storage. Its layout never changes.
struct Plugin {
  std::uint32_t interface;  ///< kPluginInterface when the object was built
  const char* version;      ///< the Catena that it was built against, for messages
  Descriptor const& (*descriptor)();
};
inline constexpr const char* kPluginSymbol = "catena_nf_plugin";

}  // namespace catena::nf
