// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/flow_key.hpp>

#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace catena::io {

/// The frames of the generator's flows, prepared so that writing one takes two copies and two stores. Holds the headers
/// with their checksums for each flow and frame size, and one long text. Each flow's payload is a window of this text.
/// Thread rule: any thread, after construction.
class FlowTemplates {
 public:
  /// Frames of `sizes` bytes (each at least 60) for `flows` flows (at most 2^24) with distinct source addresses; even
  /// flows are TCP, odd ones UDP. Draws its random values from `random`.
  FlowTemplates(std::uint32_t flows, std::vector<std::uint32_t> sizes, std::mt19937_64& random);

  /// Writes the frame of `flow` with sizes[size] bytes to `frame`; returns its length.
  std::uint32_t write(std::uint32_t flow, std::uint32_t size, std::uint16_t identification, std::uint8_t* frame) const;

 private:
  /// Ethernet, IPv4 and TCP; the last 12 bytes are payload for UDP flows.
  static constexpr std::uint32_t kHeadBytes = 54;
  struct Flow {
    packet::FlowKey key;  ///< of TCP or UDP
    std::uint32_t sequence;
    std::uint16_t text_at;
  };
  struct Template {
    std::array<std::uint8_t, kHeadBytes> head;
    std::uint16_t header_bytes;
    std::uint16_t text_at;   ///< first byte of the payload in text_
    std::uint32_t ipv4_sum;  ///< of the IPv4 header without identification and checksum
  };

  Template make_template(Flow const& flow, std::uint32_t frame_bytes) const;

  std::vector<std::uint32_t> sizes_;
  std::vector<std::uint8_t> text_;
  std::vector<Template> templates_;  ///< [flow][size]
};

}  // namespace catena::io
