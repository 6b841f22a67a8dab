// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nids.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/testing/test_data.hpp>
#include <catena/nf/testing/harness.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// Shared by the tests of the NIDS.
namespace catena::nids::testing {

/// Null for the CPU, then every available device.
inline std::vector<device::Device*> places() {
  std::vector<device::Device*> all{nullptr};
  for (device::Device* device : nf::testing::devices()) {
    all.push_back(device);
  }
  return all;
}
using nf::testing::name_of;

inline std::string testdata(std::string const& name) { return source_path("nfs/nids/testdata/" + name); }

/// One parsed record line.
struct Record {
  std::uint64_t packet = 0;
  std::string verdict;
  std::string reason;
  std::set<std::uint32_t> matches;
  std::uint64_t occurrences = 0;
};
inline std::vector<Record> parse_records(std::vector<std::string> const& lines) {
  std::vector<Record> records;
  for (std::string const& line : lines) {
    const nlohmann::json json = nlohmann::json::parse(line);
    Record record;
    record.packet = json.at("packet");
    record.verdict = json.at("verdict");
    record.reason = json.value("reason", "");
    record.matches = json.at("matches").get<std::set<std::uint32_t>>();
    record.occurrences = json.value("occurrences", std::uint64_t{0});
    records.push_back(std::move(record));
  }
  return records;
}

/// Frame (from 1) -> sids or lines.
using Hits = std::map<std::uint64_t, std::set<std::uint32_t>>;
inline Hits hits_of(nf::testing::RunResult const& result) {
  Hits hits;
  for (Record const& record : parse_records(result.records)) {
    hits[record.packet + 1] = record.matches;
  }
  return hits;
}

/// Runs the NF configured by `yaml` over `frames` at one place. A failure fails the test and returns no packets.
inline nf::testing::RunResult run_at(device::Device* device, std::string const& yaml, std::string const& folder,
                                     std::vector<nf::testing::Frame> const& frames) {
  auto nf = nf::testing::make_nf(catena_nf_nids(), yaml, folder);
  EXPECT_TRUE(nf.ok()) << nf.status();
  if (!nf.ok()) {
    return {};
  }
  auto result = nf::testing::run(catena_nf_nids(), *std::move(nf), frames, device);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : nf::testing::RunResult{};
}

/// "frame<TAB>numbers", numbers separated by spaces or commas; lines starting with # are comments.
inline Hits read_hits(std::string const& path, std::size_t column = 1) {
  Hits hits;
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') {
      continue;
    }
    std::vector<std::string> columns;
    std::size_t begin = 0;
    for (std::size_t end; begin <= line.size(); begin = end + 1) {
      end = std::min(line.find('\t', begin), line.size());
      columns.push_back(line.substr(begin, end - begin));
    }
    std::string numbers = columns.at(column);
    std::replace(numbers.begin(), numbers.end(), ',', ' ');
    std::istringstream stream(numbers);
    for (std::uint32_t number = 0; stream >> number;) {
      hits[std::stoull(columns.at(0))].insert(number);
    }
  }
  return hits;
}

}  // namespace catena::nids::testing
