// SPDX-License-Identifier: Apache-2.0
#include "nf/testing/marker.hpp"

#include <array>
#include <random>
#include <string>

namespace catena::nf::testing {
namespace {

constexpr char kKernel[] = R"(
#include <catena/kernel/context.hpp>
using namespace catena;
CATENA_KERNEL(marker) {
  auto packet = ctx.packet();
  if (!packet.valid()) return;
  const u32 add = packet.aux<u32>();
  const u16 port = packet.get<packet::kL4Dport>();
  auto payload = packet.payload();
  if (port == 6666) { u32 sum = 0; for (i32 i = 0; i < 100000; i += 999) sum += payload[i]; packet.set_result<u32>(sum); return; }
  if (port == 6667) { payload.set(1 << 20, 1); payload.set(-5000, 1); return; }
  if (port == 6668) { const auto other = ctx.for_group_packet(ctx.group_packets() - 1); packet.set_result<u32>(other.packet().payload()[0]); return; }
  u32 sum = 0;
  for (u32 i = 0; i < payload.length(); ++i) {
    const u8 value = static_cast<u8>(payload[static_cast<i32>(i)] ^ (port & 0xFF));
    payload.set(static_cast<i32>(i), value);
    sum += value;
  }
  packet.set<packet::kIpv4Ttl>(static_cast<u8>(packet.get<packet::kIpv4Ttl>() + add));
  packet.set<packet::kMetaPort>(port);
  packet.set_result<u32>(sum);
}
)";
constexpr std::array<kernel::EmbeddedFile, 1> kSource{{{"marker.kernel.cpp", kKernel}}};

constexpr std::array<DropReason, 1> kReasons{{{"seven", "the TTL was 7"}}};

class Marker final : public Nf {
 public:
  Hints hints() const override {
    constexpr packet::FieldSet kReads = packet::fields(packet::kIpv4Ttl, packet::kL4Dport, packet::kPayload);
    constexpr packet::FieldSet kWrites = packet::fields(packet::kIpv4Ttl, packet::kMetaPort, packet::kPayload);
    return {
        .cr = kReads, .cw = kWrites, .gr = kReads, .gw = kWrites, .prepare_reads = packet::fields(packet::kIpv4Ttl)};
  }

  void prepare(packet::Batch const& batch, std::span<std::byte> aux, Outcome& outcome) override {
    const auto add = array_of<std::uint32_t>(aux);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      add[i] = ++count_ % 5;
      if (batch[i].l3()[8] == 7) {
        outcome.drop(batch[i], 0);
        outcome.record(batch[i], packet::Verdict::kDrop, 0, "");
      }
    }
  }

  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      const packet::Packet packet = batch[i];
      const std::uint16_t port = packet::load_be16(packet.l4() + 2);
      std::uint32_t sum = 0;
      for (std::uint8_t& byte : packet.payload()) {
        byte = static_cast<std::uint8_t>(byte ^ (port & 0xFFU));
        sum += byte;
      }
      packet.l3()[8] = static_cast<std::uint8_t>(packet.l3()[8] + array_of<const std::uint32_t>(aux)[i]);
      packet.set_port(port);
      array_of<std::uint32_t>(results)[i] = sum;
    }
  }

  void complete(Completion const& completion) override {
    packet::Batch const& batch = completion.batch();
    Outcome& outcome = completion.outcome();
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      outcome.record(batch[i], packet::Verdict::kPass, -1,
                     "\"sum\":" + std::to_string(completion.results<std::uint32_t>()[i]));
    }
  }

  Result<KernelSide> kernel_side() const override {
    KernelSide side;
    side.spec.source = kSource;
    side.spec.name = "marker";
    return side;
  }

 private:
  std::uint32_t count_ = 0;
};

}  // namespace

Descriptor marker_descriptor() {
  Descriptor descriptor;
  descriptor.type = "marker";
  descriptor.help = "for tests";
  descriptor.needs = packet::kPorts;
  descriptor.drop_reasons = kReasons;
  descriptor.aux_bytes = 4;
  descriptor.result_bytes = 4;
  descriptor.has_kernel = true;
  return descriptor;
}

std::unique_ptr<Nf> make_marker() { return std::make_unique<Marker>(); }

std::vector<Frame> marker_frames(std::size_t count) {
  std::mt19937 random(3);
  std::vector<Frame> result;
  for (std::size_t i = 0; i < count; ++i) {
    Frame frame = make_frame(random() % 2 == 0 ? packet::kProtocolTcp : packet::kProtocolUdp, 0x0A000001,
                             static_cast<std::uint32_t>(random()), 1234, static_cast<std::uint16_t>(random() % 6000),
                             std::string(random() % 1400, 'x'), static_cast<std::uint8_t>(random() % 4 == 0 ? 7 : 64));
    if (random() % 10 == 0) {
      frame[12] = 0x86;
    }
    result.push_back(std::move(frame));
  }
  return result;
}

}  // namespace catena::nf::testing
