// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace catena::nf {

/// The NF types available to chain files. An ordinary object, so tests create their own.
class Registry {
 public:
  /// AlreadyExists if the type is registered; InvalidArgument if the descriptor breaks a rule (no type, no create
  /// function, a layer both needed and refused, aux or result size not a multiple of 4 or over kMaxAuxBytes or
  /// kMaxResultBytes).
  /// `origin`: the file of the descriptor; empty if it is built in.
  Status add(Descriptor const& descriptor, std::string origin = {});
  /// NotFound, with the nearest known type and all known types in the text.
  Result<Descriptor const*> find(std::string_view type) const;
  /// All types, sorted.
  std::vector<Descriptor const*> all() const;
  /// The file of a type; empty if the type is built in or unknown.
  std::string origin(std::string_view type) const;

 private:
  struct Entry {
    Descriptor const* descriptor;
    std::string origin;
  };
  std::map<std::string_view, Entry> types_;
};

/// The NFs built into this binary (the directories under nfs/). Defined in generated code.
Registry const& builtin_nfs();

}  // namespace catena::nf
