// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <catena/packet/headers.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "output.hpp"

/// Shared by the tests of exporters: an output in memory, and an IPFIX collector.
namespace catena::monitor::testing {

using Bytes = std::vector<std::uint8_t>;

/// Stores the bytes of each write() separately.
class MemoryOutput final : public Output {
 public:
  struct Written {
    std::vector<Bytes> messages;
    std::vector<std::uint64_t> records;
    bool finished = false;
  };
  explicit MemoryOutput(Written& written) : written_(&written) {}
  void write(std::span<const std::uint8_t> bytes, std::uint64_t records) override {
    written_->messages.emplace_back(bytes.begin(), bytes.end());
    written_->records.push_back(records);
  }
  Status finish() override {
    written_->finished = true;
    return absl::OkStatus();
  }

 private:
  Written* written_;
};

/// One decoded message: header (RFC 7011, 3.1) and data records as value by information element.
struct Message {
  std::uint16_t version, length;
  std::uint32_t export_time, sequence, domain;
  std::uint32_t templates = 0;
  std::vector<std::uint16_t> sets;
  std::vector<std::map<std::uint16_t, std::uint64_t>> records;
};

/// A collector as in RFC 7011, with its learnt templates.
class Collector {
 public:
  Message decode(Bytes const& bytes) {
    const std::uint8_t* at = bytes.data();
    Message message{packet::load_be16(at),
                    packet::load_be16(at + 2),
                    packet::load_be32(at + 4),
                    packet::load_be32(at + 8),
                    packet::load_be32(at + 12),
                    0,
                    {},
                    {}};
    std::size_t set = 16;
    while (set + 4 <= bytes.size()) {
      const std::uint16_t id = packet::load_be16(at + set);
      const std::size_t end = set + packet::load_be16(at + set + 2);
      EXPECT_GT(end, set + 4);
      EXPECT_LE(end, bytes.size());
      message.sets.push_back(id);
      if (id == 2) {
        learn(at, set + 4, end, message);
      } else {
        read_records(at, set + 4, end, id, message);
      }
      set = end;
    }
    EXPECT_EQ(set, bytes.size());
    return message;
  }

 private:
  using Template = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

  void learn(const std::uint8_t* bytes, std::size_t at, std::size_t end, Message& message) {
    while (at < end) {
      Template& fields = templates_[packet::load_be16(bytes + at)];
      fields.clear();
      for (std::uint16_t left = packet::load_be16(bytes + at + 2); left > 0; --left) {
        at += 4;
        fields.emplace_back(packet::load_be16(bytes + at), packet::load_be16(bytes + at + 2));
      }
      at += 4;
      ++message.templates;
    }
    EXPECT_EQ(at, end);
  }
  void read_records(const std::uint8_t* bytes, std::size_t at, std::size_t end, std::uint16_t id, Message& message) {
    ASSERT_TRUE(templates_.contains(id));
    while (at < end) {
      auto& record = message.records.emplace_back();
      for (auto const& [element, size] : templates_[id]) {
        std::uint64_t value = 0;
        for (std::uint16_t i = 0; i < size; ++i) {
          value = value << 8 | bytes[at++];
        }
        record[element] = value;
      }
    }
    EXPECT_EQ(at, end);
  }
  std::map<std::uint16_t, Template> templates_;
};

}  // namespace catena::monitor::testing
