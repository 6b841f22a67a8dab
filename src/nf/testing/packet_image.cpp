// SPDX-License-Identifier: Apache-2.0
#include "nf/testing/packet_image.hpp"

#include <algorithm>
#include <cstddef>

namespace catena::nf::testing {
namespace {

/// Writes whose bytes are whose, from the start of a frame and within it.
class Painter {
 public:
  explicit Painter(std::uint32_t length) : owners_(length, std::uint8_t{kUnnamed}) {}
  void paint(std::uint32_t part, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t at = begin; at < std::min<std::size_t>(end, owners_.size()); ++at) {
      owners_[at] = static_cast<std::uint8_t>(part);
    }
  }
  /// The parts of a frame that begins at `offset`.
  void add_parts(std::uint32_t offset, std::vector<Part>& parts) const {
    for (auto begin = owners_.begin(); begin != owners_.end();) {
      const auto end = std::find_if(begin, owners_.end(), [begin](std::uint8_t owner) { return owner != *begin; });
      parts.push_back({*begin, offset + static_cast<std::uint32_t>(begin - owners_.begin()),
                       static_cast<std::uint32_t>(end - begin)});
      begin = end;
    }
  }

 private:
  std::vector<std::uint8_t> owners_;
};

void paint_ipv4(Painter& painter, const std::uint8_t* frame, std::uint32_t length, packet::Layers const& layers) {
  const std::uint32_t payload_end = std::uint32_t{layers.payload} + layers.payload_length;
  painter.paint(packet::kEthType, 2 * packet::field_size(packet::kEthDst), layers.l3);
  painter.paint(packet::kIpv4Options, layers.l3, layers.l4);
  painter.paint(packet::kTcpOptions, layers.l4, layers.payload);  // of TCP alone: other headers have no bytes left over
  painter.paint(packet::kPayload, layers.payload, payload_end);
  painter.paint(packet::kTrailer, layers.l3 + packet::l3_length(frame, length, layers), length);
  for (std::uint32_t field = packet::kIpv4Version; field < packet::kPayload; ++field) {
    if (packet::field_size(field) == 0 || !packet::has_field(field, layers.flags)) {
      continue;
    }
    const std::uint32_t at = packet::field_offset(field, layers);
    if (field == packet::kIcmpHeader) {  // is around the checksum
      painter.paint(field, at, at + 2);
      painter.paint(field, at + 4, at + 8);
    } else {
      painter.paint(field, at, at + packet::field_size(field));
    }
  }
}

void paint_frame(Painter& painter, const std::uint8_t* frame, std::uint32_t length, packet::Layers const& layers) {
  painter.paint(packet::kEthDst, 0, 6);
  painter.paint(packet::kEthSrc, 6, 12);
  painter.paint(packet::kEthType, 12, 14);
  if ((layers.flags & packet::kIpv4) != 0) {
    paint_ipv4(painter, frame, length, layers);
  }
}

}  // namespace

std::vector<PacketImage> images_of(packet::Batch const& batch) {
  packet::MetaColumns const& meta = batch.meta();
  std::vector<PacketImage> images(batch.size());
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const std::uint32_t slot = batch.slots()[i];
    PacketImage& image = images[i];
    std::copy_n(batch.memory() + std::size_t{slot} * packet::kSlotBytes, packet::kSlotBytes, image.slot.data());
    image.layers = meta.layers[slot];
    image.port = meta.port[slot];
    image.length = meta.length[slot];
    image.offset = meta.offset[slot];
    image.mtu = meta.mtu[slot];
    image.verdict = meta.verdict[slot];
    image.rewritten = meta.rewritten[slot];
  }
  return images;
}

void put_back(packet::Batch const& batch, std::span<const PacketImage> images) {
  packet::MetaColumns const& meta = batch.meta();
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const std::uint32_t slot = batch.slots()[i];
    PacketImage const& image = images[i];
    std::copy_n(image.slot.data(), packet::kSlotBytes, batch.memory() + std::size_t{slot} * packet::kSlotBytes);
    meta.layers[slot] = image.layers;
    meta.port[slot] = image.port;
    meta.length[slot] = image.length;
    meta.offset[slot] = image.offset;
    meta.mtu[slot] = image.mtu;
    meta.verdict[slot] = image.verdict;
    meta.rewritten[slot] = image.rewritten;
  }
}

std::string name_of_part(std::uint32_t part) {
  switch (part) {
#define CATENA_FIELD_NAME(id, name, constant, bytes, help) \
  case id:                                                 \
    return name;
    CATENA_PACKET_FIELDS(CATENA_FIELD_NAME)
#undef CATENA_FIELD_NAME
    case kUnnamed:
      return "bytes of no field";
    case kRoom:
      return "head- and tailroom";
    default:
      return "marks";
  }
}

std::vector<Part> parts_of(PacketImage const& image, packet::Layers const& layers) {
  std::vector<Part> parts;
  const auto add = [&parts](std::uint32_t id, std::size_t begin, std::size_t size) {
    parts.push_back({id, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(size)});
  };
  Painter painter(image.length);
  paint_frame(painter, image.slot.data() + image.offset, image.length, layers);
  add(kRoom, 0, image.offset);
  painter.add_parts(image.offset, parts);
  add(kRoom, image.end(), packet::kSlotBytes - image.end());
  add(packet::kMetaLayers, offsetof(PacketImage, layers), sizeof image.layers);
  add(packet::kMetaPort, offsetof(PacketImage, port), sizeof image.port);
  add(packet::kMetaLength, offsetof(PacketImage, length), sizeof image.length);
  add(packet::kMetaOffset, offsetof(PacketImage, offset), sizeof image.offset);
  add(packet::kMetaVerdict, offsetof(PacketImage, verdict), sizeof image.verdict);
  add(kMark, offsetof(PacketImage, mtu), sizeof image.mtu);
  add(kMark, offsetof(PacketImage, rewritten), sizeof image.rewritten);
  return parts;
}

}  // namespace catena::nf::testing
