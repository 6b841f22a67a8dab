// SPDX-License-Identifier: Apache-2.0
#include "base/hostcopy/engine.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/hostcopy/testing/engine_check.hpp"

namespace catena::hostcopy {
namespace {

TEST(Engines, open_by_the_names_of_their_kinds) {
  for (EngineKind const& kind : engine_kinds()) {
    const Result<std::unique_ptr<Engine>> engine = open_engine(kind.name);
    EXPECT_EQ(engine.status().code(), kind.probe().code()) << kind.name;
    EXPECT_TRUE(!engine.ok() || (*engine)->name() == kind.name);
  }
  EXPECT_EQ(std::string(open_engine("abacus").status().message()),
            "copy engine 'abacus' is not known; allowed: cpu, cpu-stream");
}

TEST(Engines, move_each_byte_to_its_place_and_no_other) {
  for (EngineKind const& kind : engine_kinds()) {
    if (Result<std::unique_ptr<Engine>> engine = kind.open(); engine.ok()) {
      SCOPED_TRACE(kind.name);
      testing::expect_moves_each_byte(**engine, 1500, 500);
    } else {
      GTEST_LOG_(WARNING) << "without " << kind.name << ": " << engine.status();
    }
  }
}

TEST(Engines, reach_many_memories_that_come_and_go) {
  for (EngineKind const& kind : engine_kinds()) {
    if (Result<std::unique_ptr<Engine>> engine = kind.open(); engine.ok()) {
      SCOPED_TRACE(kind.name);
      testing::expect_reaches_many_memories(**engine);
    }
  }
}

}  // namespace
}  // namespace catena::hostcopy
