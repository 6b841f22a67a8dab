// SPDX-License-Identifier: Apache-2.0
#include "ttl_guard.hpp"

#include <catena/core/text.hpp>

#include <array>

#include "catena_kernel_ttl_guard.hpp"
#include "ttl_guard.layout.hpp"

namespace catena::ttl_guard {
namespace {

constexpr std::array<nf::DropReason, 1> kDropReasons{{
    {"ttl_too_low", "time to live below `minimum`"},
}};

constexpr std::array<nf::ConfigKey, 1> kConfig{{
    {"minimum", "integer 0..255", "", "packets with a smaller TTL are dropped (RFC 5082: 255 lets only neighbours in)"},
}};

/// Drops packets whose time to live is below a minimum.
class TtlGuard final : public nf::Nf {
 public:
  explicit TtlGuard(std::uint32_t minimum) : minimum_(minimum) {}

  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config) {
    constexpr std::int64_t kMaxTtl = 255;
    CATENA_ASSIGN_OR_RETURN(const std::int64_t minimum, config.integer("minimum", 0, kMaxTtl));
    CATENA_RETURN_IF_ERROR(config.finish());
    return std::make_unique<TtlGuard>(static_cast<std::uint32_t>(minimum));
  }

  nf::Hints hints() const override {
    constexpr packet::FieldSet kUsed = packet::fields(packet::kIpv4Ttl);
    return {.cr = kUsed, .gr = kUsed, .complete_reads = kUsed};
  }

  void compute(packet::Batch const& batch, std::span<const std::byte> /*aux*/, std::span<std::byte> results) override {
    const std::span<TtlGuardResult> decisions = nf::array_of<TtlGuardResult>(results);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      decisions[i].dropped = batch[i].l3()[8] < minimum_ ? 1 : 0;
    }
  }

  void complete(nf::Completion const& completion) override {
    packet::Batch const& batch = completion.batch();
    nf::Outcome& outcome = completion.outcome();
    const std::span<const TtlGuardResult> decisions = completion.results<TtlGuardResult>();
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      if (decisions[i].dropped == 0) {
        continue;
      }
      outcome.drop(batch[i], 0);
      if (outcome.recording()) {
        outcome.record(batch[i], packet::Verdict::kDrop, 0, concat("\"ttl\":", batch[i].l3()[8]));
      }
    }
  }

  Result<nf::KernelSide> kernel_side() const override {
    nf::KernelSide side;
    side.spec.source = catena_kernel_ttl_guard();
    side.spec.name = "ttl_guard";
    side.state = nf::StateBuilder(sizeof(State)).finish(State{minimum_});
    return side;
  }

 private:
  std::uint32_t minimum_;
};

}  // namespace
}  // namespace catena::ttl_guard

catena::nf::Descriptor const& catena_nf_ttl_guard() {
  namespace ttl_guard = catena::ttl_guard;
  static constexpr catena::nf::Descriptor kDescriptor{
      .type = "ttl_guard",
      .help = "Drops IPv4 packets whose time to live is below a minimum",
      .needs = catena::packet::kIpv4,
      .drop_reasons = ttl_guard::kDropReasons,
      .config = ttl_guard::kConfig,
      .aux_bytes = 0,
      .result_bytes = sizeof(ttl_guard::TtlGuardResult),
      .has_kernel = true,
      .sharding = catena::nf::Sharding::kPacket,
      .create = &ttl_guard::TtlGuard::create,
  };
  return kDescriptor;
}
