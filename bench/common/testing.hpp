// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bench/common/results.hpp"
#include "gpu/device/subprocess.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace catena::bench::testing {

/// Fixture for tests of a part: short runs with results in a temporary folder.
class PartTest : public ::testing::Test {
 protected:
  PartTest() : folder_(*device::TemporaryFolder::create()) { told_.out = (folder_.path() / "out.json").string(); }

  Result<Results> run(Part const& part) {
    CATENA_ASSIGN_OR_RETURN(const Request request, Request::create(part, told_));
    return part.run(request, nf::builtin_nfs(), [this](std::string const& line) { lines_.push_back(line); });
  }
  /// The part's error message for an invalid setting.
  std::string refused(Part const& part, std::string const& name, std::string const& value) {
    Told told = told_;
    told.settings[name] = value;
    return std::string(Request::create(part, told).status().message());
  }
  Json file() const {
    std::ifstream in(told_.out);
    return Json::parse(in);
  }

  device::TemporaryFolder folder_;
  Told told_;
  std::vector<std::string> lines_;  ///< of progress
};

}  // namespace catena::bench::testing
