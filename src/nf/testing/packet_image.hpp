// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>
#include <catena/packet/fields.hpp>
#include <catena/packet/slot.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

/// Packets as plain bytes of which each belongs to a field: what tests of hints copy, overwrite and compare.
namespace catena::nf::testing {

/// All of a packet that an NF can change.
struct PacketImage {
  std::array<std::uint8_t, packet::kSlotBytes> slot;
  packet::Layers layers;
  std::uint16_t port;
  std::uint16_t length;
  std::uint16_t offset;
  std::uint16_t mtu;
  std::uint8_t verdict;
  std::uint8_t rewritten;

  std::span<std::uint8_t> bytes() { return {reinterpret_cast<std::uint8_t*>(this), sizeof *this}; }
  std::span<const std::uint8_t> bytes() const { return {reinterpret_cast<const std::uint8_t*>(this), sizeof *this}; }
  std::uint32_t end() const { return std::uint32_t{offset} + length; }
};
static_assert(std::has_unique_object_representations_v<PacketImage>);

std::vector<PacketImage> images_of(packet::Batch const& batch);
/// Makes the packets of `batch` what `images` says. Precondition: one image for each.
void put_back(packet::Batch const& batch, std::span<const PacketImage> images);

/// What bytes belong to: a packet::Field, or one of these.
enum PartId : std::uint32_t {
  kUnnamed = packet::kFieldCount,  ///< bytes of the frame that no field names: they are part of the whole frame alone
  kRoom,                           ///< head- and tailroom
  kMark,                           ///< what NFs say of a packet and no plan moves: set_mtu(), mark_rewritten()
  kPartIds,
};
/// "ipv4.ttl", "head- and tailroom".
std::string name_of_part(std::uint32_t part);

/// Neighbouring bytes of an image that belong to one thing.
struct Part {
  std::uint32_t id;
  std::uint32_t begin;
  std::uint32_t size;
};
/// Every byte of the image once, the fields where `layers` says that they are.
std::vector<Part> parts_of(PacketImage const& image, packet::Layers const& layers);

}  // namespace catena::nf::testing
