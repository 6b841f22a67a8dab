// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/batch.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace catena::packet::testing {

using Bytes = std::vector<std::uint8_t>;

/// A packet in a slot of its own, for tests of code for a single packet.
class OnePacket {
 public:
  explicit OnePacket(Bytes const& frame, std::uint16_t offset = kSlotHeadroom)
      : offset_(offset), length_(static_cast<std::uint16_t>(frame.size())) {
    std::copy(frame.begin(), frame.end(), slot_.begin() + offset);
    layers_ = parse(slot_.data() + offset, length_);
  }
  OnePacket(OnePacket const&) = delete;
  OnePacket& operator=(OnePacket const&) = delete;

  Packet packet() { return {slot_.data(), meta_, 0}; }
  Bytes frame() const { return {slot_.begin() + offset_, slot_.begin() + offset_ + length_}; }

 private:
  std::array<std::uint8_t, kSlotBytes> slot_{};
  std::uint16_t offset_;
  std::uint16_t length_;
  Layers layers_{};
  std::uint8_t verdict_ = 0;
  std::uint16_t port_ = 0;
  std::uint64_t index_ = 0;
  std::uint64_t arrival_ns_ = 0;
  std::uint8_t rewritten_ = 0;
  std::uint16_t ingress_ = 0;
  std::uint16_t mtu_ = 0;
  MetaColumns meta_{&offset_, &length_,     &layers_,    &verdict_, &port_,
                    &index_,  &arrival_ns_, &rewritten_, &ingress_, &mtu_};
};

inline Bytes from_hex(std::string const& hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

/// The words of each line of a file in src/packet/testdata, written by make_cases.py.
inline std::vector<std::vector<std::string>> read_cases(std::string const& name) {
  std::ifstream file(CATENA_SOURCE_DIR "/src/packet/testdata/" + name);
  std::vector<std::vector<std::string>> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      continue;
    }
    std::istringstream words(line);
    cases.emplace_back();
    for (std::string word; words >> word;) {
      cases.back().push_back(word);
    }
  }
  return cases;
}

}  // namespace catena::packet::testing
