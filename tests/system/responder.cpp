// SPDX-License-Identifier: Apache-2.0
#include "system/responder.hpp"

#include <catena/packet/icmp.hpp>

#include <array>
#include <string>

namespace catena::testing {
namespace {

constexpr char kKernel[] = R"(
#include <catena/kernel/context.hpp>
using namespace catena;
CATENA_KERNEL(responder) {
  auto packet = ctx.packet();
  if (!packet.valid()) return;
  auto payload = packet.payload();
  if (payload.length() > 0) payload.set(0, static_cast<u8>(payload[0] ^ 0x5A));
  packet.set_result<u32>(0);
}
)";
constexpr std::array<kernel::EmbeddedFile, 1> kSource{{{"responder.kernel.cpp", kKernel}}};
constexpr std::uint32_t kOwnAddress = 0xC0000201;  // 192.0.2.1

class Responder final : public nf::Nf {
 public:
  Responder(std::uint32_t every, bool in_prepare) : every_(every), in_prepare_(in_prepare) {}

  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config) {
    CATENA_ASSIGN_OR_RETURN(const std::string at, config.one_of("at", {"prepare", "complete"}));
    CATENA_ASSIGN_OR_RETURN(const std::int64_t every, config.integer("every", 1, 65536));
    CATENA_RETURN_IF_ERROR(config.finish());
    return std::make_unique<Responder>(static_cast<std::uint32_t>(every), at == "prepare");
  }

  nf::Hints hints() const override {
    constexpr packet::FieldSet kPayload = packet::fields(packet::kPayload);
    nf::Hints hints{.cr = kPayload, .cw = kPayload, .gr = kPayload, .gw = kPayload};
    (in_prepare_ ? hints.prepare_reads : hints.complete_reads) = packet::kIcmpErrorReads;
    return hints;
  }

  void prepare(packet::Batch const& batch, std::span<std::byte> /*aux*/, nf::Outcome& outcome) override {
    if (in_prepare_) {
      answer(batch, outcome);
    }
  }
  void compute(packet::Batch const& batch, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      if (const auto payload = batch[i].payload(); !payload.empty()) {
        payload[0] ^= 0x5A;
      }
    }
  }
  void complete(nf::Completion const& completion) override {
    packet::Batch const& batch = completion.batch();
    nf::Outcome& outcome = completion.outcome();
    if (!in_prepare_) {
      answer(batch, outcome);
    }
  }

  Result<nf::KernelSide> kernel_side() const override {
    nf::KernelSide side;
    side.spec.source = kSource;
    side.spec.name = "responder";
    return side;
  }

 private:
  void answer(packet::Batch const& batch, nf::Outcome& outcome) const {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      const packet::Packet packet = batch[i];
      if (packet::load_be16(packet.l3() + 4) % every_ == 0 && packet::may_report(packet)) {
        packet::make_icmp_error(packet, packet::kNetUnreachable, kOwnAddress);
        outcome.reply(packet);
        outcome.record(packet, packet::Verdict::kReply, -1, "");
      }
    }
  }

  std::uint32_t every_;
  bool in_prepare_;
};

}  // namespace

nf::Registry const& registry_with_responder() {
  static const nf::Registry kRegistry = [] {
    static constexpr nf::Descriptor kDescriptor{
        .type = "responder",
        .help = "for tests",
        .needs = packet::kIpv4,
        .drop_reasons = {},
        .config = {},
        .result_bytes = 4,
        .has_kernel = true,
        .create = &Responder::create,
    };
    nf::Registry registry = nf::builtin_nfs();
    static_cast<void>(registry.add(kDescriptor));
    return registry;
  }();
  return kRegistry;
}

}  // namespace catena::testing
