// SPDX-License-Identifier: Apache-2.0
#include "nat_testing.hpp"

#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/migration.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <algorithm>
#include <optional>

namespace catena::nat::testing {
namespace {

using namespace nf::testing;

void expect_same(RunResult const& expected, RunResult const& actual) {
  ASSERT_EQ(expected.packets.size(), actual.packets.size());
  for (std::size_t i = 0; i < expected.packets.size(); ++i) {
    ASSERT_TRUE(expected.packets[i] == actual.packets[i]) << "packet " << i;
  }
  EXPECT_EQ(expected.records, actual.records);
  EXPECT_EQ(expected.drops, actual.drops);
  ASSERT_EQ(expected.statistics.size(), actual.statistics.size());
  for (std::size_t i = 0; i < expected.statistics.size(); ++i) {
    EXPECT_EQ(expected.statistics[i].value, actual.statistics[i].value) << expected.statistics[i].name;
  }
}

}  // namespace

Frame echo_answer(Frame const& request) {
  Frame answer = echo_reply(destination_of(request), source_of(request), packet::load_be16(&request[kL4 + 4]),
                            packet::load_be16(&request[kL4 + 6]));
  std::swap_ranges(answer.begin(), answer.begin() + 6, answer.begin() + 6);
  return answer;
}

Frame with_numbers(Frame segment, std::uint32_t sequence, std::uint32_t acknowledged) {
  packet::store_be32(&segment[kL4 + 4], sequence);
  packet::store_be32(&segment[kL4 + 8], acknowledged);
  return with_checksums(std::move(segment));
}

Result<std::unique_ptr<nf::Nf>> make(std::string_view yaml) {
  return make_nf(catena_nf_nat(), with_room(yaml, "max_mappings"));
}

RunResult run_everywhere(std::vector<Frame> const& frames, std::string_view yaml,
                         std::vector<std::uint64_t> const& arrivals_ns) {
  std::vector<device::Device*> places{nullptr};
  places.insert(places.end(), devices().begin(), devices().end());
  std::optional<RunResult> first;
  for (device::Device* place : places) {
    for (const std::uint32_t unit_size : {256U, 33U, 1U}) {
      SCOPED_TRACE(concat(name_of(place), ", units of ", unit_size));
      auto nat = make(yaml);
      if (!nat.ok()) {
        ADD_FAILURE() << nat.status();
        return {};
      }
      RunOptions options;
      options.unit_size = unit_size;
      options.units_per_launch = unit_size == 1 ? 512 : 4;
      options.arrivals_ns = arrivals_ns;
      auto result = run(catena_nf_nat(), std::move(nat).value(), frames, place, options);
      if (!result.ok()) {
        ADD_FAILURE() << result.status();
        return {};
      }
      EXPECT_EQ(result->counters.kernel_faults, 0U);
      if (!first) {
        first = std::move(result).value();
      } else {
        expect_same(*first, *result);
      }
    }
  }
  return std::move(*first);
}

DividedNat::DividedNat(std::string_view yaml, std::uint32_t shards) {
  nf::Config config = nf::Config::parse(yaml, "test.yaml").value();
  config.set_shard({0, shards});
  std::unique_ptr<nf::Nf> first = Nat::create(config).value();
  sharder_ = first->sharder();
  std::vector<std::unique_ptr<nf::Nf>> others;
  for (std::uint32_t shard = 1; shard < shards; ++shard) {
    others.push_back(first->replicate(shard).value());
  }
  nats_.push_back(std::make_unique<CpuNf>(catena_nf_nat(), std::move(first)));
  for (std::unique_ptr<nf::Nf>& other : others) {
    nats_.push_back(std::make_unique<CpuNf>(catena_nf_nat(), std::move(other)));
  }
}

DividedNat::Sent DividedNat::send(Frame const& frame, std::uint64_t arrival_ns) {
  PacketStore store(std::span(&frame, 1), std::span(&arrival_ns, 1));
  const packet::Packet packet = store.all()[0];
  Sent sent;
  // what any shard may have goes to all in turn
  sent.shard = sharder_->shard_of(packet).value_or(static_cast<std::uint32_t>(++sent_ % nats_.size()));
  CpuNf& nat = *nats_.at(sent.shard);
  const std::vector<std::uint64_t> before = drops(nat);
  nat.process(store.all());
  if (packet.verdict() == packet::Verdict::kDrop) {
    const std::vector<std::uint64_t> after = drops(nat);
    const auto at = std::mismatch(before.begin(), before.end(), after.begin()).first - before.begin();
    sent.drop_reason = catena_nf_nat().drop_reasons[static_cast<std::size_t>(at)].name;
  } else {
    sent.frame.assign(packet.frame(), packet.frame() + packet.length());
  }
  return sent;
}

std::vector<nf::Nf*> DividedNat::all() const {
  std::vector<nf::Nf*> all;
  for (auto const& nat : nats_) {
    all.push_back(&nat->nf());
  }
  return all;
}

void DividedNat::take_over(DividedNat& before) {
  const Status ready = nf::testing::prepare_migration(before.all(), all());
  ASSERT_TRUE(ready.ok()) << ready;
  nf::testing::migrate_state(before.all(), all());
}

std::vector<std::uint64_t> DividedNat::drops(CpuNf const& nat) {
  std::vector<std::uint64_t> counts;
  for (nf::DropReason const& reason : catena_nf_nat().drop_reasons) {
    counts.push_back(nat.dropped(reason.name));
  }
  return counts;
}

std::uint64_t DividedNat::statistic(std::string_view name) {
  std::uint64_t sum = 0;
  for (auto const& nat : nats_) {
    for (nf::Statistic const& entry : nat->nf().statistics()) {
      sum += entry.name == name ? entry.value : 0;
    }
  }
  return sum;
}

std::uint64_t statistic(RunResult const& result, std::string_view name) {
  const auto found = std::find_if(result.statistics.begin(), result.statistics.end(),
                                  [name](nf::Statistic const& entry) { return entry.name == name; });
  EXPECT_NE(found, result.statistics.end()) << name;
  return found == result.statistics.end() ? 0 : found->value;
}

}  // namespace catena::nat::testing
