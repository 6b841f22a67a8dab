// SPDX-License-Identifier: Apache-2.0
// What the device dialect promises, on every device: fields, bytes, local memory, atomics, the layout of shared
// structs, and that an access which is out of bounds is stopped, counted and reported. The launch buffer is laid out
// here by hand, as context.hpp describes it, and every byte of it is compared.
#include "gpu/device/testing/shared_device.hpp"
#include "gpu/launch/dialect_test.layout.hpp"

#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <set>

#include "catena_kernel_dialect_test.hpp"
#include "gpu/launch/adapt.hpp"

namespace catena::kernel {
namespace {

using namespace dialect_test;
using device::testing::shared_device;
using ::testing::ElementsAre;

constexpr std::chrono::seconds kLimit{60};
constexpr std::byte kPoison{0xDB};
constexpr std::uint32_t kHeadroom = 16;
constexpr std::uint32_t kTailroom = 12;
constexpr std::uint32_t kSpillFactor = 4;
constexpr std::uint32_t kGroupSize = 32;
constexpr std::size_t kWords = 256;
constexpr std::size_t kWide = 1024;

KernelSpec test_kernel(std::uint32_t lanes) {
  KernelSpec spec;
  spec.source = catena_kernel_dialect_test();
  spec.name = "dialect_test";
  spec.headroom = kHeadroom;
  spec.tailroom = kTailroom;
  spec.lanes = lanes;
  spec.group_size = kGroupSize;
  spec.local_bytes = 256;
  spec.spill_factor = kSpillFactor;
  return spec;
}

copy::LaunchPlan test_plan() { return {kReads, kWrites, sizeof(Aux), sizeof(Output), {}}; }

constexpr std::size_t round_up(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

template <typename T>
void put(std::vector<std::byte>& bytes, std::size_t at, T const& value) {
  ASSERT_LE(at + sizeof value, bytes.size());
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
template <typename T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Where two memories differ first; empty if they do not.
std::string difference(std::vector<std::byte> const& seen, std::vector<std::byte> const& want) {
  if (seen.size() != want.size()) {
    return concat(seen.size(), " bytes instead of ", want.size());
  }
  const auto [at, other] = std::ranges::mismatch(seen, want);
  return at == seen.end() ? std::string()
                          : concat("byte ", at - seen.begin(), " is ", std::to_integer<int>(*at), " instead of ",
                                   std::to_integer<int>(*other));
}

/// The launch buffer, the state and the spill area of one launch, as the host sees them.
struct Memory {
  explicit Memory(std::uint32_t packets, std::vector<std::uint16_t> const& lengths = {}) {
    params.count = packets;
    params.padded = static_cast<u32>(round_up(packets, 16));
    const std::size_t extents =
        std::size_t{params.padded} * (packet::columns_size(copy::in_columns(test_plan())) + sizeof(Aux));
    params.frames_offset = round_up(extents + params.padded * sizeof(Extent), 64);
    std::size_t frame_bytes = 0;
    for (std::uint32_t row = 0; row < packets; ++row) {
      const std::uint16_t length = row < lengths.size() ? lengths[row] : std::uint16_t{0};
      extent_of.push_back({static_cast<u32>(frame_bytes + kHeadroom), length, 0});
      frame_bytes += round_up(std::size_t{kHeadroom} + length + kTailroom, 16);
    }
    params.frames_bytes = round_up(frame_bytes, 64);
    params.out_offset = params.frames_offset + params.frames_bytes;
    out_columns_at = params.out_offset + sizeof(FaultReport) + params.padded;
    results_at = out_columns_at + std::size_t{params.padded} * packet::columns_size(copy::out_columns(test_plan()));
    const std::size_t batch_bytes = results_at + std::size_t{params.padded} * sizeof(Output);

    batch.assign(batch_bytes, kPoison);
    aux_at = std::size_t{params.padded} * packet::columns_size(copy::in_columns(test_plan()));
    for (std::uint32_t row = 0; row < packets; ++row) {
      put(batch, extents + row * sizeof(Extent), extent_of[row]);
    }
    std::fill_n(batch.begin() + static_cast<std::ptrdiff_t>(params.out_offset), sizeof(FaultReport) + params.padded,
                std::byte{0});

    header.wide = {round_up(sizeof(State), 64), kWide};
    header.words = {header.wide.offset + kWide * sizeof(std::uint64_t), kWords};
    state.assign(header.words.offset + kWords * sizeof(std::uint32_t), kPoison);
    params.state_bytes = state.size();
    header.elsewhere = {state.size() - 4, 2};
    header.unaligned = {header.words.offset + 2, 1};
    spill.assign(params.frames_bytes * kSpillFactor, kPoison);
    params.spill_bytes = spill.size();
    params.local_bytes = local_bytes;
  }

  std::size_t in_column(packet::Field field, std::uint32_t row) const {
    return std::size_t{params.padded} * packet::column_prefix(copy::in_columns(test_plan()), field) +
           std::size_t{row} * packet::field_size(field);
  }
  std::size_t out_column(packet::Field field, std::uint32_t row) const {
    return out_columns_at + std::size_t{params.padded} * packet::column_prefix(copy::out_columns(test_plan()), field) +
           std::size_t{row} * packet::field_size(field);
  }
  std::size_t frame(std::uint32_t row) const { return params.frames_offset + extent_of[row].begin; }
  std::size_t result(std::uint32_t row) const { return results_at + std::size_t{row} * sizeof(Output); }
  std::size_t flag(std::uint32_t row) const { return params.out_offset + sizeof(FaultReport) + row; }
  FaultReport faults() const { return kernel::get<FaultReport>(batch, params.out_offset); }
  std::vector<std::uint32_t> words() const {
    std::vector<std::uint32_t> values(kWords);
    std::memcpy(values.data(), state.data() + header.words.offset, kWords * sizeof(std::uint32_t));
    return values;
  }
  std::vector<std::uint64_t> wide() const {
    std::vector<std::uint64_t> values(kWide);
    std::memcpy(values.data(), state.data() + header.wide.offset, kWide * sizeof(std::uint64_t));
    return values;
  }

  LaunchParams params{};
  State header{};
  std::vector<Extent> extent_of;
  std::vector<std::byte> batch;
  std::vector<std::byte> state;
  std::vector<std::byte> spill;
  std::size_t aux_at = 0;
  std::size_t out_columns_at = 0;
  std::size_t results_at = 0;
  std::uint32_t local_bytes = 256;
};

class DialectTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    const Result<device::Device*> device = shared_device(GetParam());
    if (!device.ok()) {
      GTEST_SKIP() << GetParam() << ": " << device.status().message();
    }
    device_ = *device;
  }

  /// Runs one kernel over `memory` and brings all of it back.
  void run(std::string_view kernel, Memory& memory, std::uint32_t groups = 1, std::uint32_t lanes = 1) {
    put(memory.state, 0, memory.header);
    const Result<std::unique_ptr<device::Program>> program = build(*device_, test_kernel(lanes), test_plan());
    ASSERT_TRUE(program.ok()) << program.status();
    const std::unique_ptr<device::Stream> stream = device_->create_stream().value();
    const std::unique_ptr<device::Buffer> batch = copied(*stream, memory.batch);
    const std::unique_ptr<device::Buffer> state = copied(*stream, memory.state);
    const std::unique_ptr<device::Buffer> spill = copied(*stream, memory.spill);
    const device::KernelArgument arguments[] = {batch.get(),
                                                batch.get(),
                                                state.get(),
                                                spill.get(),
                                                static_cast<device::Buffer*>(nullptr),
                                                std::as_bytes(std::span(&memory.params, 1)),
                                                device::BufferSizes{}};
    ASSERT_EQ(stream->launch(*(*program)->kernel(kernel).value(), {groups, kGroupSize, memory.local_bytes}, arguments),
              absl::OkStatus());
    ASSERT_EQ(stream->copy_to_host(memory.batch, *batch, 0), absl::OkStatus());
    ASSERT_EQ(stream->copy_to_host(memory.state, *state, 0), absl::OkStatus());
    ASSERT_EQ(stream->copy_to_host(memory.spill, *spill, 0), absl::OkStatus());
    ASSERT_EQ(stream->record().value()->wait(kLimit, "test"), absl::OkStatus());
    ASSERT_EQ(device_->failed(), absl::OkStatus());
  }

 private:
  std::unique_ptr<device::Buffer> copied(device::Stream& stream, std::vector<std::byte> const& content) {
    std::unique_ptr<device::Buffer> buffer = device_->allocate(content.size()).value();
    EXPECT_EQ(stream.copy_to_device(*buffer, 0, content), absl::OkStatus());
    return buffer;
  }

  device::Device* device_ = nullptr;
};

TEST_P(DialectTest, shared_structs_have_one_layout_on_host_and_device) {
  std::vector<std::uint64_t> host;
  put_layouts([&host](std::uint64_t value) { host.push_back(value); });
  ASSERT_EQ(host.size(), kLayoutCount);
  Memory memory(1);
  run("layouts", memory);
  std::vector<std::uint64_t> seen = memory.wide();
  seen.resize(host.size());
  EXPECT_EQ(seen, host);
  EXPECT_EQ(memory.faults().count, 0U);
}

std::uint64_t big_endian(std::vector<std::byte> const& bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
  }
  return value;
}

void put_big_endian(std::vector<std::byte>& bytes, std::size_t at, std::size_t count, std::uint64_t value) {
  for (std::size_t i = 0; i < count; ++i) {
    bytes[at + i] = static_cast<std::byte>(value >> (8 * (count - 1 - i)));
  }
}

TEST_P(DialectTest, fields_are_read_and_written_in_network_order_and_metadata_in_host_order) {
  constexpr std::uint32_t kPackets = 37;
  Memory memory(kPackets);
  std::mt19937 random(1);
  std::generate_n(memory.batch.begin(), memory.params.frames_offset,
                  [&random] { return static_cast<std::byte>(random()); });
  const Memory before = memory;
  run("fields", memory, 2);
  EXPECT_EQ(memory.faults().count, 0U);

  const std::vector<std::uint64_t> wide = memory.wide();
  std::vector<std::byte> expected = before.batch;
  for (std::uint32_t row = 0; row < kPackets; ++row) {
    SCOPED_TRACE(row);
    std::vector<std::uint64_t> want;
    for (const packet::Field field : {packet::kEthDst, packet::kIpv4Version, packet::kIpv4Length, packet::kIpv4Src,
                                      packet::kL4Sport, packet::kTcpSeq}) {
      want.push_back(big_endian(before.batch, before.in_column(field, row), packet::field_size(field)));
    }
    const std::size_t address = before.in_column(packet::kIpv6Dst, row);
    want.push_back(big_endian(before.batch, address, 8));
    want.push_back(big_endian(before.batch, address + 8, 8));
    want.push_back(get<std::uint8_t>(before.batch, before.in_column(packet::kMetaVerdict, row)));
    for (const packet::Field field : {packet::kMetaPort, packet::kMetaLength, packet::kMetaOffset}) {
      want.push_back(get<std::uint16_t>(before.batch, before.in_column(field, row)));
    }
    const auto layers = get<packet::Layers>(before.batch, before.in_column(packet::kMetaLayers, row));
    want.push_back(layers.l3 | static_cast<std::uint32_t>(layers.l4) << 8 |
                   static_cast<std::uint32_t>(layers.payload) << 16);
    want.push_back(layers.flags | static_cast<std::uint32_t>(layers.payload_length) << 16);
    want.push_back(static_cast<std::uint32_t>(layers.family));
    const std::size_t aux = before.aux_at + row * sizeof(Aux);
    want.push_back(get<std::uint32_t>(before.batch, aux));
    want.push_back(get<std::uint32_t>(before.batch, aux + 4));
    EXPECT_EQ(std::vector<std::uint64_t>(wide.begin() + 20 * row, wide.begin() + 20 * row + 17), want);

    put_big_endian(expected, before.out_column(packet::kEthSrc, row), 6, 0x010203040500ULL + row);
    put_big_endian(expected, before.out_column(packet::kIpv4Ttl, row), 1, 100 + row);
    put_big_endian(expected, before.out_column(packet::kIpv4Id, row), 2, 0x1200 + row);
    put_big_endian(expected, before.out_column(packet::kIpv4Dst, row), 4, 0xC0A80000U + row);
    put_big_endian(expected, before.out_column(packet::kIpv6Src, row), 8, 0x20010DB800000000ULL + row);
    put_big_endian(expected, before.out_column(packet::kIpv6Src, row) + 8, 8, 0x1122334455667700ULL + row);
    put_big_endian(expected, before.out_column(packet::kL4Dport, row), 2, 0x3400 + row);
    put(expected, before.out_column(packet::kMetaVerdict, row), static_cast<std::uint8_t>(row));
    put(expected, before.out_column(packet::kMetaPort, row), static_cast<std::uint16_t>(0x5600 + row));
    put(expected, before.out_column(packet::kMetaLength, row), static_cast<std::uint16_t>(0x7800 + row));
    put(expected, before.result(row), Output{{row, row + 1, row + 2, row + 3, row + 4, row + 5, row + 6, row + 7}});
  }
  EXPECT_EQ(difference(memory.batch, expected), "");
}

TEST_P(DialectTest, payloads_can_be_read_written_and_grown_into_their_rooms) {
  const std::vector<std::uint16_t> lengths = {16, 5, 33, 1460, 4, 64, 7};
  const auto packets = static_cast<std::uint32_t>(lengths.size());
  Memory memory(packets, lengths);
  std::mt19937 random(2);
  for (std::uint32_t row = 0; row < packets; ++row) {
    std::generate_n(memory.batch.begin() + static_cast<std::ptrdiff_t>(memory.frame(row)), lengths[row],
                    [&random] { return static_cast<std::byte>(random()); });
  }
  const Memory before = memory;
  run("payloads", memory);
  EXPECT_EQ(memory.faults().count, 0U);

  std::vector<std::byte> expected = before.batch;
  std::vector<std::byte> spill = before.spill;
  for (std::uint32_t row = 0; row < packets; ++row) {
    const std::size_t at = before.frame(row);
    const auto be32 = [&](std::size_t i) { return static_cast<u32>(big_endian(before.batch, at + i, 4)); };
    put(expected, before.result(row),
        Output{{be32(0), static_cast<u32>(big_endian(before.batch, at + 1, 2)),
                std::to_integer<u32>(before.batch[at + 3]), lengths[row] - 3U, be32(0), be32(1), be32(2), be32(3)}});
    for (std::size_t i = 0; i < lengths[row]; ++i) {
      expected[at + i] ^= std::byte{0xFF};
    }
    put_big_endian(expected, at - 3, 2, 0xAB00U + row);
    put_big_endian(expected, at - 1, 1, row);
    put_big_endian(expected, at + lengths[row], 1, row);
    put_big_endian(expected, at + lengths[row] + 1, 4, 0xCDEF0000U + row);
    for (std::size_t i = 0; i < lengths[row]; ++i) {
      put(spill, before.extent_of[row].begin * std::size_t{kSpillFactor} + 4 * i, 0x51110000U + row);
    }
  }
  EXPECT_EQ(difference(memory.batch, expected), "");
  EXPECT_EQ(difference(memory.spill, spill), "");
}

TEST_P(DialectTest, words_can_be_fetched_and_put_at_every_alignment) {
  const std::vector<std::uint16_t> lengths = {79, 120, 1000};
  const auto packets = static_cast<std::uint32_t>(lengths.size());
  Memory memory(packets, lengths);
  std::mt19937 random(3);
  for (std::uint32_t row = 0; row < packets; ++row) {
    std::generate_n(memory.batch.begin() + static_cast<std::ptrdiff_t>(memory.frame(row)), lengths[row],
                    [&random] { return static_cast<std::byte>(random()); });
  }
  const Memory before = memory;
  run("words", memory);
  EXPECT_EQ(memory.faults().count, 0U);

  std::vector<std::byte> expected = before.batch;
  for (std::uint32_t row = 0; row < packets; ++row) {
    const std::size_t at = before.frame(row);
    Output output{};
    for (std::uint32_t i = 0; i < 4; ++i) {
      for (std::uint32_t k = 0; k < row; ++k) {
        output.words[2 * i + k] = static_cast<u32>(big_endian(before.batch, at + i + std::size_t{4} * k, 4));
      }
      put_big_endian(expected, at + 16 + 17 * i, 4, 0x01020304U + i);
      put_big_endian(expected, at + 20 + 17 * i, 4, 0x11121314U + i);
      put_big_endian(expected, at + 24 + 17 * i, 4, 0x21222324U + row);
    }
    put(expected, before.result(row), output);
  }
  EXPECT_EQ(difference(memory.batch, expected), "");
}

struct ExpectedFault {
  Access access;
  AddressSpace address_space;
  std::uint64_t offset;
  std::uint64_t size;
};

TEST_P(DialectTest, an_access_out_of_bounds_is_stopped_counted_and_reported) {
  const std::vector<std::uint16_t> lengths = {40, 20, 60};
  constexpr std::uint32_t kRow = 1;
  const std::uint64_t reach = kHeadroom + 20 + kTailroom;
  const std::uint64_t words = kWords * 4;
  // enough for the struct that the kernel reads first, not for the one that it then reads
  constexpr std::uint64_t kSmallState = sizeof(State) + 8;
  static_assert(kSmallState < sizeof(BigState));
  const ExpectedFault faults[] = {
      {kArrayRead, kAddressState, words, words},
      {kArrayLookUp, kAddressState, words + 4, words},
      {kArrayWrite, kAddressState, words + 4, words},
      {kArrayAdd, kAddressState, words + 8, words},
      {kArraySub, kAddressState, words + 4, words},
      {kArrayElsewhere, kAddressState, 0, 0},
      {kArrayUnaligned, kAddressState, 0, 0},
      {kPayloadBe16, kAddressFrames, reach - 1, reach},
      {kPayloadSetBe16, kAddressFrames, reach - 1, reach},
      {kPayloadRead, kAddressFrames, reach, reach},
      {kPayloadWrite, kAddressFrames, reach, reach},
      {kPayloadBefore, kAddressFrames, ~std::uint64_t{0}, reach},
      {kPayloadBe32, kAddressFrames, reach - 3, reach},
      {kPayloadSetBe32, kAddressFrames, reach - 1, reach},
      {kPayloadSetBe32Before, kAddressFrames, ~std::uint64_t{1}, reach},
      {kPayloadFetch, kAddressFrames, reach - 7, reach},
      {kPayloadPut, kAddressFrames, reach - 7, reach},
      {kResult, kAddressResults, 32, 32},
      {kSpill, kAddressSpill, 20 * kSpillFactor, 20 * kSpillFactor},
      {kLocal, kAddressLocal, 16, 16},
      {kLocalElsewhere, kAddressLocal, 0, 0},
      {kBigState, kAddressState, 0, 0},
  };
  ASSERT_EQ(std::size(faults), std::size_t{kAccessCount} - 1);
  for (ExpectedFault const& fault : faults) {
    SCOPED_TRACE(fault.access);
    Memory memory(3, lengths);
    memory.header.access = fault.access;
    memory.header.row = kRow;
    if (fault.access == kBigState) {
      memory.params.state_bytes = kSmallState;
    }
    const Memory before = memory;
    run("reach", memory);

    std::vector<std::byte> expected = before.batch;
    put(expected, before.params.out_offset, FaultReport{1, kRow, fault.address_space, 0, fault.offset, fault.size});
    expected[before.flag(kRow)] = std::byte{1};
    for (std::uint32_t row = 0; row < 3; ++row) {
      put(expected, before.result(row), 0x600D0000U + row);
      put(expected, before.result(row) + 4, std::uint32_t{0});  // a read out of bounds gives 0
    }
    EXPECT_EQ(difference(memory.batch, expected), "");
    std::vector<std::byte> state = before.state;
    put(state, 0, before.header);
    EXPECT_EQ(difference(memory.state, state), "");
    EXPECT_EQ(difference(memory.spill, before.spill), "");
    EXPECT_EQ(memory.faults().count, 1U);
    EXPECT_EQ(memory.faults().address_space, fault.address_space);
    EXPECT_EQ(memory.faults().offset, fault.offset);
    EXPECT_EQ(memory.faults().size, fault.size);
  }
}

TEST_P(DialectTest, a_kernel_that_stays_inside_reports_nothing) {
  Memory memory(3, {40, 20, 60});
  memory.header.access = kNone;
  run("reach", memory);
  EXPECT_EQ(memory.faults().count, 0U);
  for (std::uint32_t row = 0; row < 16; ++row) {
    EXPECT_EQ(memory.batch[memory.flag(row)], std::byte{0}) << row;
  }
}

TEST_P(DialectTest, a_launch_that_says_of_itself_what_its_buffers_do_not_hold_does_nothing) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63U;
  using Lie = void (*)(LaunchParams&);
  const std::pair<const char*, Lie> lies[] = {
      {"nothing", [](LaunchParams&) {}},
      {"more rows", [](LaunchParams& params) { params.padded += 16; }},
      {"rows without end", [](LaunchParams& params) { params.padded = 0xFFFFFFF0U; }},
      {"rows at odd places", [](LaunchParams& params) { params.padded = 15; }},
      {"frames behind the end", [](LaunchParams& params) { params.frames_offset = params.out_offset * 2; }},
      {"frames around the end", [](LaunchParams& params) { params.frames_offset = ~std::uint64_t{63}; }},
      {"long frames", [](LaunchParams& params) { params.frames_bytes = kHuge; }},
      {"another NF's part", [](LaunchParams& params) { params.batch_offset = std::uint64_t{1} << 20U; }},
      {"a part in front", [](LaunchParams& params) { params.batch_offset = ~std::uint64_t{15}; }},
      {"results in front", [](LaunchParams& params) { params.out_offset = ~std::uint64_t{15}; }},
      {"results behind", [](LaunchParams& params) { params.out_offset += 16; }},
      {"results at odd places", [](LaunchParams& params) { params.out_offset -= 8; }},
      {"more state", [](LaunchParams& params) { params.state_bytes += 1; }},
      {"more spill area", [](LaunchParams& params) { params.spill_bytes += 1; }},
      {"spill area at odd places", [](LaunchParams& params) { params.spill_row_bytes = 1; }},
      {"slots of no shared buffer", [](LaunchParams& params) { params.slots = 1; }},
      {"more local memory", [](LaunchParams& params) { params.local_bytes += 1; }},
  };
  for (auto const& [name, lie] : lies) {
    SCOPED_TRACE(name);
    Memory memory(3, {40, 20, 60});
    memory.header.access = kNone;
    lie(memory.params);
    const Memory before = memory;
    run("reach", memory);
    std::vector<std::byte> state = before.state;
    put(state, 0, before.header);
    if (name == lies[0].first) {
      EXPECT_NE(difference(memory.batch, before.batch), "");
      EXPECT_EQ(memory.faults().count, 0U);
      continue;
    }
    std::vector<std::byte> expected = before.batch;
    if (lies_in(before.params.out_offset, sizeof(FaultReport), before.batch.size()) &&
        before.params.out_offset % 16 == 0) {
      put(expected, before.params.out_offset, get<u32>(before.batch, before.params.out_offset) + 1);
    }
    EXPECT_EQ(difference(memory.batch, expected), "");
    EXPECT_EQ(difference(memory.state, state), "");
    EXPECT_EQ(difference(memory.spill, before.spill), "");
  }
}

TEST_P(DialectTest, extents_that_leave_the_frames_region_give_no_bytes) {
  // What the device reads as extents is data too: nothing outside the frames is reached through a wrong one.
  for (const Extent wrong : {Extent{0xFFFFFFF0U, 20, 0}, Extent{0, 20, 0}, Extent{16, 0xFFFF, 0}}) {
    Memory memory(3, {40, 20, 60});
    memory.header.access = kPayloadWrite;
    memory.header.row = 1;
    const std::size_t extents = memory.aux_at + std::size_t{memory.params.padded} * sizeof(Aux);
    put(memory.batch, extents + sizeof(Extent), wrong);
    const Memory before = memory;
    run("reach", memory);
    EXPECT_EQ(memory.faults().count, 1U);
    EXPECT_EQ(memory.faults().size, 0U);
    const auto out = static_cast<std::ptrdiff_t>(before.params.out_offset);
    EXPECT_TRUE(std::equal(memory.batch.begin(), memory.batch.begin() + out, before.batch.begin()));
  }
}

TEST_P(DialectTest, local_memory_and_barriers_connect_a_group) {
  Memory memory(1);
  run("reverse", memory, 4);
  EXPECT_EQ(memory.faults().count, 0U);
  const std::vector<std::uint32_t> words = memory.words();
  for (std::uint32_t i = 0; i < 4 * kGroupSize; ++i) {
    EXPECT_EQ(words[i], 2000 + kGroupSize - 1 - i % kGroupSize) << i;
  }
}

TEST_P(DialectTest, atomic_adds_count_every_work_item_once) {
  Memory memory(1);
  std::fill(memory.state.begin(), memory.state.end(), std::byte{0});
  constexpr std::uint32_t kItems = 6 * kGroupSize;
  run("atomics", memory, 6);
  EXPECT_EQ(memory.faults().count, 0U);
  const std::vector<std::uint32_t> words = memory.words();
  EXPECT_EQ(words[0], kItems);
  EXPECT_EQ(words[1], kItems);
  std::set<std::uint32_t> seen(words.begin() + 2, words.begin() + 2 + kItems);
  EXPECT_EQ(seen.size(), kItems);
  EXPECT_EQ(*seen.rbegin(), kItems - 1);
}

TEST_P(DialectTest, primitives_agree_with_the_standard_library) {
  Memory memory(1);
  std::mt19937 random(3);
  std::vector<std::uint32_t> values = {0, 1, 0x80000000U, 0xFFFFFFFFU, 0x12345678U};
  while (values.size() < 4 * kGroupSize) {
    values.push_back(static_cast<std::uint32_t>(random()) >> (values.size() % 32));
  }
  std::memcpy(memory.state.data() + memory.header.words.offset, values.data(), values.size() * 4);
  run("primitives", memory, 4);
  EXPECT_EQ(memory.faults().count, 0U);
  const std::vector<std::uint64_t> wide = memory.wide();
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const std::uint32_t value = values[i];
    EXPECT_THAT(std::span(wide).subspan(4 * std::size_t{i}, 4),
                ElementsAre(__builtin_bswap32(value), std::rotl(value, static_cast<int>(i % 32)),
                            static_cast<std::uint64_t>(std::popcount(value)),
                            value == 0 ? 99U : static_cast<std::uint64_t>(std::countr_zero(value))))
        << value;
  }
}

TEST_P(DialectTest, lanes_share_a_packet) {
  Memory memory(1);
  run("lanes", memory, 4, 8);
  const std::vector<std::uint32_t> words = memory.words();
  for (std::uint32_t i = 0; i < 4 * kGroupSize; ++i) {
    EXPECT_EQ(words[i], i / 8 << 16 | i % 8) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(backends, DialectTest, ::testing::ValuesIn(device::backend_names()),
                         [](auto const& param_info) { return std::string(param_info.param); });

}  // namespace
}  // namespace catena::kernel
