// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/registry.hpp>

#include <fmt/ranges.h>
#include <catena/core/text.hpp>

namespace catena::nf {
namespace {

constexpr std::uint32_t kMaxAuxBytes = 64;
constexpr std::uint32_t kMaxResultBytes = 256;

}  // namespace

Status Registry::add(Descriptor const& descriptor) {
  if (descriptor.type.empty() || descriptor.create == nullptr) {
    return absl::InvalidArgumentError(
        concat("NF '", descriptor.type, "': a descriptor needs a type and a create function"));
  }
  if (descriptor.aux_bytes % 4 != 0 || descriptor.aux_bytes > kMaxAuxBytes || descriptor.result_bytes % 4 != 0 ||
      descriptor.result_bytes > kMaxResultBytes) {
    return absl::InvalidArgumentError(
        concat("NF '", descriptor.type, "': aux_bytes (", descriptor.aux_bytes, ") and result_bytes (",
               descriptor.result_bytes, ") must be multiples of 4, at most ", kMaxAuxBytes, " and ", kMaxResultBytes));
  }
  if (!types_.emplace(descriptor.type, &descriptor).second) {
    return absl::AlreadyExistsError(concat("NF type '", descriptor.type, "' is registered twice"));
  }
  return absl::OkStatus();
}

Result<Descriptor const*> Registry::find(std::string_view type) const {
  if (const auto found = types_.find(type); found != types_.end()) {
    return found->second;
  }
  std::vector<std::string> known;
  for (auto const& [name, descriptor] : types_) {
    known.emplace_back(name);
  }
  const std::string near = nearest(type, known);
  return absl::NotFoundError(concat("unknown NF type '", type, "'",
                                    near.empty() ? "" : concat("; did you mean '", near, "'?"),
                                    " Known: ", fmt::format("{}", fmt::join(known, ", "))));
}

std::vector<Descriptor const*> Registry::all() const {
  std::vector<Descriptor const*> result;
  for (auto const& [name, descriptor] : types_) {
    result.push_back(descriptor);
  }
  return result;
}

}  // namespace catena::nf
