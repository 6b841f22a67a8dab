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

/// Packets as plain bytes, each of which belongs to a field, for tests of hints to copy, overwrite and compare.
namespace catena::nf::testing {

/// Everything in a packet that an NF can change.
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
/// Sets the packets of `batch` to `images`. Precondition: one image per packet.
void put_back(packet::Batch const& batch, std::span<const PacketImage> images);

/// Owner of bytes: a packet::Field, or one of these.
enum PartId : std::uint32_t {
  kUnnamed = packet::kFieldCount,  ///< frame bytes without a field: part of the whole frame alone
  kRoom,                           ///< head- and tailroom
  kMark,                           ///< marks of NFs that no plan moves: set_mtu(), mark_rewritten()
  kPartIds,
};
/// "ipv4.ttl", "head- and tailroom".
std::string name_of_part(std::uint32_t part);

/// Neighbouring bytes of an image with one owner.
struct Part {
  std::uint32_t id;
  std::uint32_t begin;
  std::uint32_t size;
};
/// Every byte of the image once, with fields at the positions in `layers`.
std::vector<Part> parts_of(PacketImage const& image, packet::Layers const& layers);

}  // namespace catena::nf::testing
