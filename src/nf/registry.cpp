// SPDX-License-Identifier: Apache-2.0
#include "nf/registry.hpp"

#include <fmt/ranges.h>
#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>

#include <algorithm>
#include <array>

namespace catena::nf {
namespace {

constexpr std::uint32_t kMaxAuxBytes = 64;
constexpr std::uint32_t kMaxResultBytes = 256;

/// Names of network functions elsewhere, and the type here.
struct OtherName {
  std::string_view name;
  std::string_view type;
  std::string_view note;
};
constexpr std::array<OtherName, 9> kOtherNames{{
    {"ips", "nids", ", with rules whose action is drop"},
    {"ids", "nids", ""},
    {"vpn", "ipsec", ""},
    {"esp", "ipsec", ""},
    {"acl", "firewall", ""},
    {"fw", "firewall", ""},
    {"loadbalancer", "lb", ""},
    {"netflow", "monitor", ""},
    {"dscp", "remark", ""},
}};

}  // namespace

Status Registry::add(Descriptor const& descriptor, std::string origin) {
  if (descriptor.type.empty() || descriptor.create == nullptr) {
    return absl::InvalidArgumentError(
        concat("NF '", descriptor.type, "': a descriptor needs a type and a create function"));
  }
  if ((descriptor.needs & descriptor.refuses) != 0) {
    return absl::InvalidArgumentError(concat("NF '", descriptor.type, "': it both needs and refuses the layers ",
                                             static_cast<unsigned>(descriptor.needs & descriptor.refuses)));
  }
  if (descriptor.aux_bytes % 4 != 0 || descriptor.aux_bytes > kMaxAuxBytes || descriptor.result_bytes % 4 != 0 ||
      descriptor.result_bytes > kMaxResultBytes) {
    return absl::InvalidArgumentError(
        concat("NF '", descriptor.type, "': aux_bytes (", descriptor.aux_bytes, ") and result_bytes (",
               descriptor.result_bytes, ") must be multiples of 4, at most ", kMaxAuxBytes, " and ", kMaxResultBytes));
  }
  if (const auto found = types_.find(descriptor.type); found != types_.end()) {
    std::string const& other = found->second.origin;
    return absl::AlreadyExistsError(concat("NF type '", descriptor.type, "' is registered already, ",
                                           other.empty() ? "built in" : "from " + other));
  }
  types_.emplace(descriptor.type, Entry{&descriptor, std::move(origin)});
  return absl::OkStatus();
}

Result<Descriptor const*> Registry::find(std::string_view type) const {
  if (const auto found = types_.find(type); found != types_.end()) {
    return found->second.descriptor;
  }
  std::vector<std::string> known;
  for (auto const& [name, entry] : types_) {
    known.emplace_back(name);
  }
  const auto other = std::ranges::find(kOtherNames, type, &OtherName::name);
  const bool has_type = other != kOtherNames.end() && types_.contains(other->type);
  const std::string near = has_type ? std::string() : nearest(type, known);
  return absl::NotFoundError(
      concat("unknown NF type '", escaped(type), "'", has_type ? concat("; write ", other->type, other->note, ".") : "",
             has_type       ? ""
             : near.empty() ? "."
                            : concat("; did you mean '", near, "'?"),
             " Known: ", fmt::format("{}", fmt::join(known, ", ")), "; --nf-path FOLDER adds others"));
}

std::vector<Descriptor const*> Registry::all() const {
  std::vector<Descriptor const*> result;
  for (auto const& [name, entry] : types_) {
    result.push_back(entry.descriptor);
  }
  return result;
}

std::string Registry::origin(std::string_view type) const {
  const auto found = types_.find(type);
  return found == types_.end() ? std::string() : found->second.origin;
}

}  // namespace catena::nf
