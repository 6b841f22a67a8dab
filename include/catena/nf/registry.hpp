// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <map>
#include <string_view>
#include <vector>

namespace catena::nf {

/// The NF types that chain files may name. An ordinary object, so tests build their own.
class Registry {
 public:
  /// AlreadyExists if a descriptor of that type is there; InvalidArgument if the descriptor breaks a rule (no type,
  /// no create function, aux or result size not a multiple of 4 or over the limits of ProgramSpec).
  Status add(Descriptor const& descriptor);
  /// NotFound with the nearest known type, and all of them, in the text.
  Result<Descriptor const*> find(std::string_view type) const;
  /// All types, sorted.
  std::vector<Descriptor const*> all() const;

 private:
  std::map<std::string_view, Descriptor const*> types_;
};

/// The NFs built into this binary (the directories under nfs/). Defined in generated code.
Registry const& builtin_nfs();

}  // namespace catena::nf
