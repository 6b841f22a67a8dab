// SPDX-License-Identifier: Apache-2.0
#include "pipeline/edge_filter.hpp"

#include "chain/chain_file.hpp"

#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace catena::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t kInRingUnit = 64;
constexpr chain::FlowLimits kEdgeLimits{.batch = 256, .slow_down = 700, .fasten_up = 400, .share = 1500};

/// rx of a chain with the NFs a, b and c behind ports 1, 2 and 3. Packets to port 4 go to a, too, with a copy to b.
/// After a comes c.
class EdgeFilterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<chain::ChainConfig> chain = chain::parse_chain(
        "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: g}\nspec:\n  rx: {generator: {}}\n  tx: null\n"
        "  nfs: [{name: a, type: firewall}, {name: b, type: firewall}, {name: c, type: firewall}]\n"
        "  graph: [{from: rx, match: {dport: 4}, to: {mirror: b}}, {from: rx, match: {dport: 2}, to: b}, "
        "{from: rx, match: {dport: 3}, to: c}, {from: rx, to: a}, {from: a, to: c}, {from: [b, c], to: tx}]\n",
        "c.yaml");
    ASSERT_TRUE(chain.ok()) << chain.status();
    for (const std::size_t from : {chain::kRx, std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
      tables_.push_back(*chain::NextNodeTable::create(*chain->graph, from, {}));
    }
  }
  /// Packets wait before an NF.
  void wait_before(std::size_t nf, std::uint32_t units) {
    for (std::uint32_t i = 0; i < units; ++i) {
      memory::Unit* const unit = pool_->acquire_unit();
      ASSERT_TRUE(unit != nullptr && pool_->acquire_slots(*unit, kInRingUnit));
      unit->count = kInRingUnit;
      rings_[nf].push(unit);
    }
  }
  EdgeFilter filter() const { return EdgeFilter(tables_, {&monitors_[0], &monitors_[1], &monitors_[2]}); }
  /// Ports of refused packets, of one to each port.
  static std::vector<int> refused_ports(EdgeFilter& filter) {
    std::vector<packet::testing::Frame> frames;
    for (std::uint16_t port = 1; port <= 4; ++port) {
      frames.push_back(packet::testing::make_frame(packet::kProtocolUdp, 0x0A000001, 0x0A000002, 1000, port, "text"));
    }
    nf::testing::PacketStore store(frames);
    filter.refuse(store.all());
    std::vector<int> ports;
    for (std::uint32_t i = 0; i < store.all().size(); ++i) {
      if (store.all()[i].verdict() == packet::Verdict::kDrop) {
        ports.push_back(static_cast<int>(i) + 1);
      }
    }
    return ports;
  }

  std::unique_ptr<memory::PacketPool> pool_ = memory::PacketPool::create(8192, kInRingUnit, 3).value();
  std::vector<chain::NextNodeTable> tables_;
  memory::UnitQueue rings_[3] = {{pool_->arena(), 0}, {pool_->arena(), 1}, {pool_->arena(), 2}};
  CongestionMonitor monitors_[3] = {{"a", rings_[0], kEdgeLimits, 1, std::chrono::nanoseconds(0)},
                                    {"b", rings_[1], kEdgeLimits, 1, std::chrono::nanoseconds(0)},
                                    {"c", rings_[2], kEdgeLimits, 1, std::chrono::nanoseconds(0)}};
};

TEST_F(EdgeFilterTest, a_burst_may_wait) {
  EdgeFilter filter = this->filter();
  EXPECT_FALSE(filter.look());
  wait_before(1, 17);  // 1088: congested, and less than halfway to its share
  EXPECT_FALSE(filter.look());
  EXPECT_THAT(refused_ports(filter), IsEmpty());
  EXPECT_EQ(filter.refused(), 0U);
}

TEST_F(EdgeFilterTest, refuses_packets_and_copies_to_a_crowded_nf_alone) {
  EdgeFilter filter = this->filter();
  wait_before(1, 18);  // 1152
  EXPECT_TRUE(filter.look());
  EXPECT_THAT(refused_ports(filter), ElementsAre(2, 4));
  EXPECT_EQ(filter.refused(), 2U);
}

TEST_F(EdgeFilterTest, foresees_the_nfs_after_the_next) {
  EdgeFilter filter = this->filter();
  wait_before(2, 18);
  EXPECT_TRUE(filter.look());
  EXPECT_THAT(refused_ports(filter), ElementsAre(1, 3, 4));
}

TEST_F(EdgeFilterTest, decides_by_its_last_check) {
  EdgeFilter filter = this->filter();
  EXPECT_FALSE(filter.look());
  wait_before(0, 20);
  EXPECT_THAT(refused_ports(filter), IsEmpty());
  EXPECT_TRUE(filter.look());
  EXPECT_THAT(refused_ports(filter), ElementsAre(1, 4));
}

}  // namespace
}  // namespace catena::runtime
