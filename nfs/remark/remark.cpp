// SPDX-License-Identifier: Apache-2.0
#include "remark.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>

#include "catena_kernel_remark.hpp"
#include "remark.layout.hpp"

namespace catena::remark {
namespace {

using Table = std::array<std::uint8_t, kCodePoints>;

constexpr std::array<nf::DropReason, 1> kDropReasons{{
    {"unlisted", "the map does not name the packet's DSCP, and `unlisted` is drop"},
}};

constexpr std::array<nf::ConfigKey, 2> kConfig{{
    {"map", "list of {from, to}", "", "DSCP values 0..63; each `from` once"},
    {"unlisted", "keep | drop", "keep", "packets with a DSCP outside the map"},
}};

class Remark final : public nf::Nf {
 public:
  explicit Remark(Table const& table) : table_(table) {}

  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config) {
    CATENA_ASSIGN_OR_RETURN(const std::string unlisted, config.one_of("unlisted", {"keep", "drop"}, "keep"));
    CATENA_ASSIGN_OR_RETURN(const std::vector<nf::Config> entries, config.sections("map"));
    CATENA_RETURN_IF_ERROR(config.finish());
    Table table;
    for (std::size_t i = 0; i < table.size(); ++i) {
      table[i] = unlisted == "drop" ? kDropped : static_cast<std::uint8_t>(i);
    }
    std::array<bool, kCodePoints> seen{};
    for (nf::Config entry : entries) {
      CATENA_ASSIGN_OR_RETURN(const std::int64_t from, entry.integer("from", 0, kCodePoints - 1));
      CATENA_ASSIGN_OR_RETURN(const std::int64_t to, entry.integer("to", 0, kCodePoints - 1));
      CATENA_RETURN_IF_ERROR(entry.finish());
      if (std::exchange(seen[static_cast<std::size_t>(from)], true)) {
        return entry.error("from", concat("'from' is ", from, " a second time; name each DSCP once"));
      }
      table[static_cast<std::size_t>(from)] = static_cast<std::uint8_t>(to);
    }
    return std::make_unique<Remark>(table);
  }

  nf::Hints hints() const override {
    constexpr packet::FieldSet kUsed = packet::fields(packet::kIpv4Tos, packet::kIpv4Checksum);
    return {.cr = kUsed, .cw = kUsed, .gr = kUsed, .gw = kUsed, .complete_reads = packet::fields(packet::kIpv4Tos)};
  }

  void compute(packet::Batch const& batch, std::span<const std::byte> /*aux*/, std::span<std::byte> results) override {
    const std::span<RemarkResult> decisions = nf::array_of<RemarkResult>(results);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      std::uint8_t* header = batch[i].l3();
      const std::uint8_t to = table_[header[1] >> 2];
      decisions[i].dropped = to == kDropped ? 1 : 0;
      if (to == kDropped) {
        continue;
      }
      const std::uint16_t before = packet::load_be16(header);
      header[1] = static_cast<std::uint8_t>(to << 2 | (header[1] & 3));  // ECN stays
      packet::store_be16(header + 10,
                         packet::checksum_update(packet::load_be16(header + 10), before, packet::load_be16(header)));
    }
  }

  void complete(nf::Completion const& completion) override {
    packet::Batch const& batch = completion.batch();
    nf::Outcome& outcome = completion.outcome();
    const std::span<const RemarkResult> decisions = completion.results<RemarkResult>();
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      const packet::Packet packet = batch[i];
      if (decisions[i].dropped != 0) {
        outcome.drop(packet, 0);
        if (outcome.recording()) {
          outcome.record(packet, packet::Verdict::kDrop, 0, "");
        }
      } else if (outcome.recording()) {
        outcome.record(packet, packet::Verdict::kPass, -1, concat("\"dscp\":", packet.l3()[1] >> 2));
      }
    }
  }

  Result<nf::KernelSide> kernel_side() const override {
    nf::KernelSide side;
    side.spec.source = catena_kernel_remark();
    side.spec.name = "remark";
    nf::StateBuilder state(sizeof(State));
    const State header{.table = state.add(std::span<const std::uint8_t>(table_))};
    side.state = state.finish(header);
    return side;
  }

 private:
  Table table_;
};

}  // namespace
}  // namespace catena::remark

catena::nf::Descriptor const& catena_nf_remark() {
  namespace remark = catena::remark;
  static constexpr catena::nf::Descriptor kDescriptor{
      .type = "remark",
      .help = "Replaces the DSCP of IPv4 packets (RFC 2474)",
      .needs = catena::packet::kIpv4,
      .refuses = 0,
      .drop_reasons = remark::kDropReasons,
      .config = remark::kConfig,
      .aux_bytes = 0,
      .result_bytes = sizeof(remark::RemarkResult),
      .has_kernel = true,
      .sharding = catena::nf::Sharding::kPacket,
      .create = &remark::Remark::create,
  };
  return kDescriptor;
}
