// SPDX-License-Identifier: Apache-2.0
// Real captures, with the hits that pyahocorasick and Hyperscan agree on and the alerts that Suricata raised, at every
// place. The data lies beside the checkout (see shared_data()).
#include "functions/match/rule_parser.hpp"
#include "test_support.hpp"

#include <catena/core/testing/test_data.hpp>
#include <catena/packet/headers.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

namespace catena::nids {
namespace {

using namespace testing;

/// Frames numbered as in the capture.
class SharedData : public ::testing::Test {
 protected:
  std::string nids(std::string const& name) const { return root_ + "/nids/" + name; }

  /// Every frame of the capture, so that positions are frame numbers.
  static std::vector<nf::testing::Frame> read(std::string const& path) {
    auto frames = nf::testing::read_capture(path, 65535);
    EXPECT_TRUE(frames.ok()) << frames.status();
    for (nf::testing::Frame const& frame : *frames) {
      EXPECT_LE(frame.size(), packet::kMaxFrameBytes) << path;
    }
    return *std::move(frames);
  }
  std::vector<nf::testing::Frame> capture(std::string const& name) const { return read(root_ + "/traces/" + name); }

  const std::string root_ = shared_data();
};

std::string read_text(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Leaves what the *hits.tsv files speak of: IPv4 frames with TCP or UDP.
void keep_tcp_and_udp(Hits& hits, std::vector<nf::testing::Frame> const& frames) {
  std::erase_if(hits, [&](auto const& hit) {
    nf::testing::Frame const& frame = frames[hit.first - 1];
    return (packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size())).flags & packet::kPorts) == 0;
  });
}

TEST_F(SharedData, strings_are_found_as_often_and_where_expected) {
  const auto frames = capture("mixed.pcap");
  const std::string file = nids("strings5000.mixed.pcap.hits.tsv");
  const Hits expected = read_hits(file, 2);
  const Hits occurrences = read_hits(file, 1);
  ASSERT_GT(expected.size(), 100U);
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    const auto result = run_at(device, "strings: strings5000_opendns_top.txt", nids(""), frames);
    Hits hits = hits_of(result);
    keep_tcp_and_udp(hits, frames);
    EXPECT_EQ(hits, expected);
    for (Record const& record : parse_records(result.records)) {
      if (hits.contains(record.packet + 1)) {
        EXPECT_THAT(occurrences.at(record.packet + 1), ::testing::ElementsAre(record.occurrences))
            << "frame " << record.packet + 1;
      }
    }
  }
}

class PayloadHits : public SharedData, public ::testing::WithParamInterface<std::string> {};

/// Rules that have the contents of et150.contents.json, anywhere in the payload, and the protocol of et150.rules.
std::string content_only_rules(nlohmann::json const& contents, std::string const& rules) {
  std::string text;
  for (auto const& [sid, list] : contents.items()) {
    std::smatch header;
    EXPECT_TRUE(std::regex_search(rules, header, std::regex("(?:^|\n)alert (\\w+) [^\n]*sid:" + sid + ";")));
    text += "alert " + header[1].str() + " any any -> any any (";
    for (auto const& content : list) {
      text += "content:\"|" + content.at("hex").get<std::string>() + "|\"; ";
      text += content.at("nocase").get<bool>() ? "nocase; " : "";
    }
    text += "sid:" + sid + ";)\n";
  }
  return text;
}

TEST_P(PayloadHits, rules_without_positions_hit_where_all_their_contents_occur) {
  const auto frames = capture(GetParam());
  const auto contents = nlohmann::json::parse(read_text(nids("et150.contents.json")));
  ASSERT_EQ(contents.size(), 150U);
  const ScratchFolder folder;
  folder.write("et.rules", content_only_rules(contents, read_text(nids("et150.rules"))));
  const Hits expected = read_hits(nids("et150." + GetParam() + ".payload_hits.tsv"));
  ASSERT_GT(expected.size(), 100U);
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    Hits hits = hits_of(run_at(device, "rules: et.rules", folder.path(), frames));
    keep_tcp_and_udp(hits, frames);
    EXPECT_EQ(hits, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(, PayloadHits, ::testing::Values("mixed.pcap", "onvm_64B_download.pcap"));

Hits ipv4_alerts(std::string const& path) {
  Hits hits;
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  for (std::string line; std::getline(file, line);) {
    std::istringstream columns(line);
    std::uint64_t frame = 0;
    std::uint32_t sid = 0;
    std::string protocol;
    std::string source;
    if (columns >> frame >> sid >> protocol >> source && source.find(':') == std::string::npos) {
      hits[frame].insert(sid);
    }
  }
  return hits;
}

class SuricataAlerts : public SharedData, public ::testing::WithParamInterface<std::string> {};

TEST_P(SuricataAlerts, rules_alert_where_suricata_does) {
  const std::string name = GetParam();
  const auto frames = capture(name);
  const match::RuleFile parsed =
      match::parse_rules(read_text(nids("et150_perpacket.rules")), "et150_perpacket.rules", match::Variables());
  EXPECT_THAT(parsed.errors, ::testing::IsEmpty());
  EXPECT_THAT(parsed.refused, ::testing::IsEmpty());
  EXPECT_EQ(parsed.rules.size(), 150U);
  const Hits expected = ipv4_alerts(nids("et150_perpacket." + name + ".suricata_alerts.tsv"));
  EXPECT_GT(expected.size(), 50U);
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    EXPECT_EQ(hits_of(run_at(device, "rules: et150_perpacket.rules", nids(""), frames)), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(, SuricataAlerts, ::testing::Values("mixed.pcap", "onvm_64B_download.pcap"));

TEST_F(SharedData, rules_for_streams_with_ports_and_addresses_load_too) {
  const match::RuleFile parsed = match::parse_rules(read_text(nids("et150.rules")), "et150.rules", match::Variables());
  EXPECT_THAT(parsed.errors, ::testing::IsEmpty());
  EXPECT_THAT(parsed.refused, ::testing::IsEmpty());
  EXPECT_EQ(parsed.rules.size(), 150U);
}

/// A test of suricata-verify whose rules, or some of them, ask nothing but single packets.
struct VerifyCase {
  std::string folder;
  std::string rules;
  std::string capture;
  std::map<std::uint32_t, std::size_t> alerts;  ///< of the rules in the subset, as test.yaml counts them
  std::size_t refused = 0;                      ///< rules outside the subset
  bool raw_ipv4 = false;                        ///< the capture has no Ethernet headers
};
std::ostream& operator<<(std::ostream& out, VerifyCase const& value) { return out << value.folder; }

class SuricataVerify : public SharedData, public ::testing::WithParamInterface<VerifyCase> {};

TEST_P(SuricataVerify, alerts_are_counted_as_expected) {
  VerifyCase const& verify = GetParam();
  const std::string folder = nids("suricata-verify/" + verify.folder);
  const match::RuleFile parsed =
      match::parse_rules(read_text(folder + "/" + verify.rules), verify.rules, match::Variables());
  EXPECT_THAT(parsed.errors, ::testing::IsEmpty());
  EXPECT_EQ(parsed.refused.size(), verify.refused);
  auto frames = read(folder + "/" + verify.capture);
  if (verify.raw_ipv4) {
    for (nf::testing::Frame& frame : frames) {
      frame.insert(frame.begin(), {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0});
    }
  }
  for (device::Device* device : places()) {
    SCOPED_TRACE(name_of(device));
    std::map<std::uint32_t, std::size_t> alerts;
    for (auto const& [frame, sids] : hits_of(run_at(device, "rules: " + verify.rules, folder, frames))) {
      for (std::uint32_t sid : sids) {
        ++alerts[sid];
      }
    }
    EXPECT_EQ(alerts, verify.alerts);
  }
}

// Left out are rules whose alerts come from a reassembled stream, from the state of a flow (a drop that ends it, a pass
// rule), from an application layer or from a tunnel.
INSTANTIATE_TEST_SUITE_P(
    , SuricataVerify,
    ::testing::Values(
        VerifyCase{
            "eve-overlap-payload-04-partial-overlap", "tcp-overlap.rules", "tcp-overlap2.pcap", {{3, 1}, {4, 1}}, 2},
        VerifyCase{"ftp-retr-bypass-baseline", "test.rules", "input.pcap", {{7003, 1}}, 2},
        VerifyCase{"pcap-file-stdin", "test.rules", "input.pcap", {{1, 1}}, 0, true},
        VerifyCase{"tcp-split-handshake-02-5whs", "test.rules", "split-handshake-5whs.pcap", {{1, 1}, {3, 1}}, 1},
        VerifyCase{"tcp-fastopen-07",
                   "test.rules",
                   "tcp_fastopen_segmentation.pcap",
                   {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {10, 2}, {11, 2}},
                   9},
        VerifyCase{"util-action-tests__util-action-07", "test.rules", "input.pcap", {{1, 3}, {3, 3}}, 1},
        // Suricata's rule 4 alerts too: its content is in four segments, so only in the stream
        VerifyCase{"bug-6244-tcp-rst-with-data-02", "test.rules", "tcp-rst-with-data.pcap", {{1, 1}}, 1},
        VerifyCase{"bug-docs-5030-01", "test.rules", "35_bytes.pcap", {{1, 1}}, 0}));

}  // namespace
}  // namespace catena::nids
