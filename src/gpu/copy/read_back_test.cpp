// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/read_back.hpp"

#include "gpu/device/testing/faulty_device.hpp"

#include <catena/packet/slot.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

namespace catena::copy {
namespace {

using packet::fields;

constexpr std::uint32_t kReadSlots = 8;
constexpr std::uint8_t kOld = 0x11;  // on the host
constexpr std::uint8_t kNew = 0xEE;  // on the device
constexpr packet::FieldSet kAllOfFrame = packet::kFrameFields;

/// Positions of `length` bytes that copying `set` changed.
std::vector<std::uint32_t> changed(packet::FieldSet set, packet::Layers const& layers, std::uint32_t length) {
  const std::vector<std::uint8_t> from(length, kNew);
  std::vector<std::uint8_t> to(length + 8, kOld);
  copy_fields(set, layers, length, from.data(), to.data());
  std::vector<std::uint32_t> places;
  for (std::uint32_t at = 0; at < to.size(); ++at) {
    if (to[at] != kOld) {
      places.push_back(at);
    }
  }
  return places;
}

std::vector<std::uint32_t> slot_range(std::uint32_t begin, std::uint32_t end) {
  std::vector<std::uint32_t> places(end - begin);
  std::iota(places.begin(), places.end(), begin);
  return places;
}

// RFC 791 and RFC 9293: one VLAN tag, 4 bytes of IPv4 options, 8 of TCP options, 100 of payload, 6 of padding
constexpr packet::Layers kTcpLayers{
    18, 42, 70, packet::AddressFamily::kIpv4, packet::kIpv4 | packet::kTcp | packet::kPorts, 100};
constexpr std::uint32_t kTcpLength = 176;

TEST(CopyFields, each_field_is_where_the_headers_have_it) {
  const auto of_tcp = [](packet::Field field) { return changed(fields(field), kTcpLayers, kTcpLength); };
  EXPECT_EQ(of_tcp(packet::kEthDst), slot_range(0, 6));
  EXPECT_EQ(of_tcp(packet::kEthSrc), slot_range(6, 12));
  EXPECT_EQ(of_tcp(packet::kEthType), slot_range(12, 18));
  EXPECT_EQ(of_tcp(packet::kIpv4Ttl), slot_range(26, 27));
  EXPECT_EQ(of_tcp(packet::kIpv4Dst), slot_range(34, 38));
  EXPECT_EQ(of_tcp(packet::kIpv4Options), slot_range(38, 42));
  EXPECT_EQ(of_tcp(packet::kL4Dport), slot_range(44, 46));
  EXPECT_EQ(of_tcp(packet::kL4Checksum), slot_range(58, 60));
  EXPECT_EQ(of_tcp(packet::kTcpOptions), slot_range(62, 70));
  EXPECT_EQ(of_tcp(packet::kPayload), slot_range(70, 170));
  EXPECT_EQ(of_tcp(packet::kTrailer), slot_range(170, 176));
  EXPECT_TRUE(of_tcp(packet::kUdpLength).empty());
  EXPECT_TRUE(of_tcp(packet::kIcmpHeader).empty());
}

TEST(CopyFields, all_fields_one_by_one_are_the_frame) {
  std::vector<std::uint32_t> places;
  for (std::uint32_t field = 0; field < packet::kMetaVerdict; ++field) {
    const auto more = changed(packet::FieldSet{1} << field, kTcpLayers, kTcpLength);
    places.insert(places.end(), more.begin(), more.end());
  }
  std::sort(places.begin(), places.end());
  EXPECT_EQ(places, slot_range(0, kTcpLength)) << "each byte is in one field";
  EXPECT_EQ(changed(kAllOfFrame, kTcpLayers, kTcpLength), slot_range(0, kTcpLength));
}

TEST(CopyFields, icmp_has_its_checksum_in_the_middle) {
  constexpr packet::Layers kIcmpLayers{14, 34, 42, packet::AddressFamily::kIpv4, packet::kIpv4 | packet::kIcmp, 20};
  EXPECT_EQ(changed(fields(packet::kIcmpHeader), kIcmpLayers, 62),
            (std::vector<std::uint32_t>{34, 35, 38, 39, 40, 41}));
  EXPECT_EQ(changed(fields(packet::kL4Checksum), kIcmpLayers, 62), slot_range(36, 38));
}

TEST(CopyFields, what_is_no_ipv4_moves_as_a_frame_alone) {
  constexpr packet::Layers kNone{};
  EXPECT_TRUE(changed(fields(packet::kIpv4Ttl, packet::kPayload, packet::kTrailer), kNone, 60).empty());
  EXPECT_EQ(changed(kAllOfFrame, kNone, 60), slot_range(0, 60));
}

struct FreeRead {
  void operator()(std::uint8_t* memory) const { std::free(memory); }
};

class ReadBackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    constexpr std::size_t kPageBytes = 4096;
    auto opened = device::open(device::DevicePreference::of("opencl"));
    ASSERT_TRUE(opened.ok()) << opened.status();
    real_ = *std::move(opened);
    device_ = std::make_unique<device::testing::FaultyDevice>(*real_);
    pool_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kPageBytes, kReadSlots * packet::kSlotBytes)));
    std::fill_n(pool_.get(), kReadSlots * packet::kSlotBytes, kOld);
    std::iota(slots_.begin(), slots_.end(), 0U);
    for (std::uint32_t slot = 0; slot < kReadSlots; ++slot) {
      offset_[slot] = static_cast<std::uint16_t>(100 + slot);
      length_[slot] = kTcpLength;
      layers_[slot] = kTcpLayers;
    }
    shared_ = *SharedBuffer::create(*device_,
                                    std::as_writable_bytes(std::span(pool_.get(), kReadSlots * packet::kSlotBytes)));
    const auto stream = *device_->create_stream({});
    ASSERT_TRUE(stream->fill(shared_->buffer(), 0, shared_->buffer().size(), kNew).ok());
    ASSERT_TRUE((*stream->record())->wait(std::chrono::seconds(60), "filling").ok());
  }
  packet::Batch batch() { return {pool_.get(), meta_, slots_}; }
  Status read(packet::FieldSet set) {
    CATENA_ASSIGN_OR_RETURN(const auto back, ReadBack::create(*device_, *shared_, set, kReadSlots));
    CATENA_RETURN_IF_ERROR(back->start(batch()));
    for (;;) {
      CATENA_ASSIGN_OR_RETURN(const bool done, back->poll());
      if (done) {
        back->apply();
        return absl::OkStatus();
      }
    }
  }
  std::uint8_t byte(std::uint32_t slot, std::uint32_t at) const {
    return pool_.get()[std::size_t{slot} * packet::kSlotBytes + offset_[slot] + at];
  }

  std::unique_ptr<device::Device> real_;
  std::unique_ptr<device::testing::FaultyDevice> device_;
  std::unique_ptr<std::uint8_t, FreeRead> pool_;
  std::unique_ptr<SharedBuffer> shared_;
  std::array<std::uint16_t, kReadSlots> offset_{};
  std::array<std::uint16_t, kReadSlots> length_{};
  std::array<packet::Layers, kReadSlots> layers_{};
  std::array<std::uint8_t, kReadSlots> verdict_{};
  std::array<std::uint16_t, kReadSlots> port_{};
  std::array<std::uint64_t, kReadSlots> index_{};
  std::array<std::uint64_t, kReadSlots> arrival_{};
  std::array<std::uint8_t, kReadSlots> rewritten_{};
  std::array<std::uint32_t, kReadSlots> slots_{};
  packet::MetaColumns meta_{offset_.data(), length_.data(), layers_.data(),  verdict_.data(),
                            port_.data(),   index_.data(),  arrival_.data(), rewritten_.data()};
};

TEST_F(ReadBackTest, brings_these_fields_of_packets_that_are_alive) {
  verdict_[3] = static_cast<std::uint8_t>(packet::Verdict::kDrop);
  ASSERT_EQ(read(fields(packet::kIpv4Ttl, packet::kMetaPort)), absl::OkStatus());
  for (std::uint32_t slot = 0; slot < kReadSlots; ++slot) {
    const bool is_alive = slot != 3;
    EXPECT_EQ(byte(slot, 26), is_alive ? kNew : kOld);
    EXPECT_EQ(port_[slot], is_alive ? 0xEEEE : 0);
    EXPECT_EQ(std::count(pool_.get() + std::size_t{slot} * packet::kSlotBytes,
                         pool_.get() + std::size_t{slot + 1} * packet::kSlotBytes, kNew),
              is_alive ? 1 : 0)
        << "no other byte";
  }
}

TEST_F(ReadBackTest, brings_whole_frames_and_nothing_beside_them) {
  ASSERT_EQ(read(kAllOfFrame), absl::OkStatus());
  for (std::uint32_t slot = 0; slot < kReadSlots; ++slot) {
    EXPECT_EQ(byte(slot, 0), kNew);
    EXPECT_EQ(byte(slot, kTcpLength - 1), kNew);
    EXPECT_EQ(byte(slot, kTcpLength), kOld);
    EXPECT_EQ(port_[slot], 0);
  }
}

TEST_F(ReadBackTest, what_the_device_refuses_is_the_error_and_changes_nothing) {
  using device::testing::Call;
  for (const Call call : {Call::kAllocatePinned, Call::kCreateStream, Call::kCopyToHost, Call::kRecord, Call::kReady}) {
    device_->fail(call, 1, absl::InternalError("refused"));
    EXPECT_EQ(read(fields(packet::kPayload)), absl::InternalError("refused")) << static_cast<int>(call);
    EXPECT_EQ(std::count(pool_.get(), pool_.get() + kReadSlots * packet::kSlotBytes, kOld),
              kReadSlots * packet::kSlotBytes);
  }
}

}  // namespace
}  // namespace catena::copy
