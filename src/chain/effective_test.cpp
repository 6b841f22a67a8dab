// SPDX-License-Identifier: Apache-2.0
#include "chain/effective.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace catena::chain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kFile = "/etc/chains/c.yaml";
constexpr const char* kText = R"(apiVersion: catena/v1
kind: Chain
metadata: {name: office}
spec:
  rx: {generator: {count: 5}}
  tx: null
  sharing: {mode: fair}
  outputs: {eve: /var/eve.json}
  workers: 2
  nfs:
    - {name: a, type: remark, isolation: process, config: {map: []}}
    - {name: b, type: router, isolation: {cpus: 1}}
)";

std::string effective(GivenOptions const& options) {
  const Result<ChainConfig> chain = parse_chain(kText, kFile, options);
  EXPECT_TRUE(chain.ok()) << chain.status();
  return effective_text(*chain);
}

TEST(EffectiveText, has_the_defaults_of_keys_that_are_missing) {
  const std::string text = effective({});
  for (const char* line : {"  device: auto\n", "  link_local: pass\n", "  tenant: office\n", "  shards: 1\n",
                           "      packet: 64\n", "      count: 5\n", "    units_per_launch: 8\n", "  workers: 2\n",
                           "    compute_units: all\n", "    mode: adaptive\n", "    eve: /var/eve.json\n",
                           "      on: cpu\n", "        memory_mb: 6144\n", "        cpus: 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("loops"))) << "it goes with a capture";
  EXPECT_THAT(text, Not(HasSubstr("record"))) << "it has no default";
}

TEST(EffectiveText, has_options_in_place_of_their_keys) {
  const std::string text = effective({{"workers", "auto"}, {"record", "/r"}, {"rx", "dev:eth0"}, {"sync", "copy"}});
  for (const char* line : {"  workers: auto\n", "    record: /r\n", "    eve: /var/eve.json\n", "    dev: eth0\n",
                           "  shards: auto\n", "    mode: copy\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("generator")));
}

TEST(EffectiveText, is_a_chain_file_whose_own_is_the_same) {
  for (GivenOptions const& options : {GivenOptions(), GivenOptions{{"workers", "3"}, {"tx", "pcap:/out.pcap"}}}) {
    const std::string text = effective(options);
    const Result<ChainConfig> again = parse_chain(text, kFile);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(effective_text(*again), text);
    EXPECT_EQ(again->nfs.size(), 2U);
    EXPECT_EQ(again->run.sharing.mode, share::Mode::kFair);
  }
}

}  // namespace
}  // namespace catena::chain
