// SPDX-License-Identifier: Apache-2.0
#include "pipeline/test_support.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace catena::runtime::testing {

chain::ChainConfig config_of(std::string const& rx, std::string const& tx) {
  Result<chain::ChainConfig> config =
      chain::parse_chain("apiVersion: catena/v1\nkind: Chain\nmetadata: {name: test}\nspec:\n  rx: " + rx +
                             "\n  tx: " + tx + "\n  nfs: []\n",
                         "chain.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return *std::move(config);
}

}  // namespace catena::runtime::testing
