// SPDX-License-Identifier: Apache-2.0
// Texts that people bring, in every place where one is read: addresses as inet_pton() reads them, byte order marks and
// line ends of other systems, control characters in messages.
#include "chain/chain_file.hpp"
#include "chain/check.hpp"
#include "nf/registry.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <absl/strings/str_replace.h>
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace catena::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kAssociations =
    "associations:\n  - {spi: 4096, source: 198.51.100.1, destination: 203.0.113.1, salt: a0a1a2a3, selector: {},\n"
    "     encryption_key: \"000102030405060708090a0b0c0d0e0f\",\n"
    "     authentication_key: \"101112131415161718191a1b1c1d1e1f20212223\"}\n";

/// A chain and its files. Other files are right: ok.rules (firewall), ok.ids, ok.routes, ok.sa and ok.config.
struct Texts {
  std::string nfs;                           ///< in the brackets of `nfs`
  std::map<std::string, std::string> files;  ///< by name
  std::string more = {};                     ///< lines of the chain file after `nfs`
};

/// The chain file, as it was checked.
std::string chain_text(Texts const& texts) {
  return concat(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: texts}\nspec:\n  rx: {generator: {count: 1}}\n  tx: null\n"
      "  device: none\n  nfs: [",
      texts.nfs, "]\n", texts.more);
}

/// What `catena check` says of the chain: nothing, if it is right. Refused rules are listed, too.
std::string complaint_about(Texts const& texts, std::string_view chain_name = "chain.yaml",
                            std::string const& chain_file = {}) {
  const ScratchFolder folder;
  folder.write("ok.rules", "allow any any any any any\n");
  folder.write("ok.ids", "alert ip any any -> any any (sid:1;)\n");
  folder.write("ok.routes", "0.0.0.0/0 1\n");
  folder.write("ok.sa", kAssociations);
  folder.write("ok.config", "config classification: a,b,1\n");
  folder.write("ok.key", "000102030405060708090a0b0c0d0e0f\n");
  for (auto const& [name, text] : texts.files) {
    folder.write(name, text);
  }
  folder.write(chain_name, chain_file.empty() ? chain_text(texts) : chain_file);
  Result<chain::ChainConfig> config = chain::load_chain(folder.path(chain_name));
  std::vector<chain::RefusedRules> refused;
  const Status status =
      config.ok() ? chain::check(*std::move(config), {}, nullptr, nf::builtin_nfs(), refused) : config.status();
  std::string text(status.message());
  for (chain::RefusedRules const& nf : refused) {
    for (nf::Refusal const& rule : nf.rules) {
      text += concat(text.empty() ? "" : "\n", to_string(rule));
    }
  }
  return text;
}

// ---- addresses

/// A place where an address or a prefix is read, instead of `@`.
struct Place {
  std::string name;
  bool takes_prefix;
  Texts texts;
};

std::string ipsec(std::string_view key, std::string_view value) {
  return absl::StrReplaceAll({kAssociations.data(), kAssociations.size()},
                             {{std::string(key).c_str(), std::string(value).c_str()}});
}

std::vector<Place> places() {
  const std::string ids = "{name: a, type: nids, config: {rules: ok.ids, variables: {HOME_NET: \"@\"}}}";
  const std::string nat = "{name: a, type: nat, config: {inside: [\"10.200.0.0/16\"], external: [\"@\"]}}";
  const std::string lb =
      "{name: a, type: lb, config: {services: [{address: \"S\", port: 80, protocol: tcp, backends: [{name: b, address: "
      "\"B\"}]}]}}";
  const auto rules = [](std::string_view line) {
    return Texts{"{name: a, type: firewall, config: {rules: x, default: deny}}", {{"x", concat(line, "\n")}}};
  };
  const auto ids_rules = [](std::string_view addresses) {
    return Texts{"{name: a, type: nids, config: {rules: x}}",
                 {{"x", concat("alert ip ", addresses, " any -> any any (sid:1;)\n")}}};
  };
  const auto sa = [](std::string const& text) {
    return Texts{"{name: a, type: ipsec, config: {direction: encrypt, sa: x}}", {{"x", text}}};
  };
  return {
      {"firewall source", true, rules("deny any @ any any any")},
      {"firewall destination", true, rules("deny any any @ any any")},
      {"ClassBench source", true, rules("@@ 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF")},
      {"ClassBench destination", true, rules("@0.0.0.0/0 @ 0 : 65535 0 : 65535 0x06/0xFF")},
      {"route", true, {"{name: a, type: router, config: {routes: x}}", {{"x", "@ 1\n"}}}},
      {"port of a router",
       false,
       {"{name: a, type: router, config: {routes: ok.routes, ports: [{port: 1, mac: \"02:00:00:00:00:01\", "
        "next_hop_mac: \"02:00:00:00:00:02\", address: \"@/24\"}]}}",
        {}}},
      {"nids prefix", true, ids_rules("@")},
      {"nids list", true, ids_rules("[192.0.2.1,!@]")},
      {"nids start of a range", false, ids_rules("@-10.200.0.1")},
      {"nids end of a range", false, ids_rules("1.0.0.0-@")},
      {"nids address of a dotted mask", false, ids_rules("@/255.255.255.255")},
      {"nids variable", true, {ids, {}}},
      {"nat inside", true, {"{name: a, type: nat, config: {inside: [\"@\"], external: [203.0.113.1]}}", {}}},
      {"nat external", false, {nat, {}}},
      {"nat start of a range", false, {absl::StrReplaceAll(nat, {{"@", "@-10.0.0.9"}}), {}}},
      {"nat end of a range", false, {absl::StrReplaceAll(nat, {{"@", "10.0.0.0-@"}}), {}}},
      {"lb service", false, {absl::StrReplaceAll(lb, {{"S", "@"}, {"\"B\"", "10.0.0.7"}}), {}}},
      {"lb backend", false, {absl::StrReplaceAll(lb, {{"S", "192.0.2.1"}, {"\"B\"", "\"@\""}}), {}}},
      {"ipsec source", false, sa(ipsec("source: 198.51.100.1", "source: \"@\""))},
      {"ipsec destination", false, sa(ipsec("destination: 203.0.113.1", "destination: \"@\""))},
      {"ipsec selector", true, sa(ipsec("selector: {}", "selector: {source: \"@\"}"))},
      {"graph",
       true,
       {"{name: a, type: firewall, config: {rules: ok.rules, default: deny}}",
        {},
        "  graph: [{from: rx, match: {dst: \"@\"}, to: a}, {from: a, to: tx}]\n  unmatched: drop\n"}},
      {"signals",
       false,
       {"{name: a, type: firewall, config: {rules: ok.rules, default: deny}}",
        {},
        "  flow: {mode: backpressure, signals: {downstream: \"@:7400\", key: ok.key}}\n"}},
      {"monitor", false, {"{name: a, type: monitor, config: {export: [{format: ipfix, udp: \"@:4739\"}]}}", {}}},
  };
}

std::string complaint_about(Place const& place, std::string_view spelling) {
  // a first @ of ClassBench is not the place
  const auto filled = [spelling](std::string text) {
    const std::size_t at = text.rfind('@');
    return at == std::string::npos ? text : text.replace(at, 1, spelling);
  };
  Texts texts{filled(place.texts.nfs), {}, filled(place.texts.more)};
  for (auto const& [name, text] : place.texts.files) {
    texts.files[name] = filled(text);
  }
  return complaint_about(texts);
}

TEST(TextFiles, every_place_reads_addresses_as_inet_pton_does) {
  for (Place const& place : places()) {
    SCOPED_TRACE(place.name);
    for (const char* spelling : {"10.0.0.1", "010.0.0.1", "10.0.0.01", "10.0.1", "0x0a.0.0.1", "167772161"}) {
      in_addr address{};
      const bool is_right = ::inet_pton(AF_INET, spelling, &address) == 1;
      const std::string complaint = complaint_about(place, spelling);
      // a monitor connects its socket, and the machine may have no route
      const bool is_taken = complaint.empty() || complaint.find("no UDP socket") != std::string::npos;
      EXPECT_EQ(is_taken, is_right) << spelling << ": " << complaint;
    }
    if (!place.takes_prefix) {
      continue;
    }
    EXPECT_EQ(complaint_about(place, "10.0.0.0/8"), "");
    for (const char* spelling : {"010.0.0.0/8", "10.0.0.0/08", "10/8", "10.0.0/8", "10.0.0.0/33", "10.0.0.0/+8",
                                 "10.0.0.0/", "10.0.0.0/0x8", "10.0.0.0 /8"}) {
      EXPECT_NE(complaint_about(place, spelling), "") << spelling;
    }
  }
}

// ---- byte order marks and line ends

/// Chains whose other files are `x`, with a line of each kind.
std::map<std::string, Texts> readers() {
  return {
      {"firewall",
       {"{name: a, type: firewall, config: {rules: x, default: deny}}", {{"x", "# a\nallow any any any any any\n\n"}}}},
      {"router", {"{name: a, type: router, config: {routes: x}}", {{"x", "0.0.0.0/0 1\n10.0.0.0/8 2 # b\n"}}}},
      {"ipsec", {"{name: a, type: ipsec, config: {direction: encrypt, sa: x}}", {{"x", std::string(kAssociations)}}}},
      {"nids",
       {"{name: a, type: nids, config: {rules: x}}",
        {{"x", "alert ip any any -> any any (sid:1;)\nalert ip any \\\n any -> any any (content:\"a\"; sid:2;)\n"}}}},
      {"strings", {"{name: a, type: nids, config: {strings: x}}", {{"x", "one\ntwo\n"}}}},
      {"classification",
       {"{name: a, type: nids, config: {rules: ok.ids, classification: x}}",
        {{"x", "config classification: a,b,1\n# c\n"}}}},
      {"key of signals",
       {"{name: a, type: firewall, config: {rules: ok.rules, default: deny}}",
        {{"x", "000102030405060708090a0b0c0d0e0f\n"}},
        "  flow: {mode: backpressure, signals: {downstream: \"192.0.2.1:7400\", key: x}}\n"}},
  };
}

std::string with_marks(std::string const& text) {
  return concat("\xef\xbb\xbf", absl::StrReplaceAll(text, {{"\n", "\r\n"}}));
}

TEST(TextFiles, byte_order_marks_and_line_ends_of_other_systems_are_read_over) {
  for (auto const& [name, texts] : readers()) {
    SCOPED_TRACE(name);
    ASSERT_EQ(complaint_about(texts), "");
    Texts marked = texts;
    marked.files["x"] = with_marks(texts.files.at("x"));
    EXPECT_EQ(complaint_about(marked), "");
    EXPECT_EQ(complaint_about(texts, "chain.yaml", with_marks(chain_text(texts))), "") << "the chain file";
  }
}

// ---- control characters

constexpr std::string_view kHostile = "\x1b[2J\x07\x7f\xc2\x9b\xff\xe2\x80\xae\xef\xbb\xbf";

/// Whether `text` has nothing that escaped_lines() would change.
bool is_plain(std::string const& text) { return escaped_lines(text) == text; }

TEST(TextFiles, messages_have_no_control_characters_of_files) {
  const std::string yaml = "\\e[2J\\n\\x7F\\x9B\\u202E\\uFEFF";  // in double quotes: the characters, for YAML
  for (auto const& [name, texts] : readers()) {
    SCOPED_TRACE(name);
    std::string const& right = texts.files.at("x");
    std::size_t complaints = 0;
    for (std::size_t at = 0; at <= right.size(); at += 4) {
      Texts hostile = texts;
      hostile.files["x"].insert(at, kHostile);
      const std::string complaint = complaint_about(hostile);
      complaints += complaint.empty() ? 0 : 1;
      EXPECT_TRUE(is_plain(complaint)) << at << ": " << escaped(complaint);
    }
    EXPECT_TRUE(complaints > 0 || name == "strings");
  }
  for (Place const& place : places()) {
    SCOPED_TRACE(place.name);
    const std::string complaint = complaint_about(place, place.texts.files.empty() ? yaml : std::string(kHostile));
    EXPECT_NE(complaint, "");
    EXPECT_TRUE(is_plain(complaint)) << escaped(complaint);
    EXPECT_EQ(complaint.find('\n'), std::string::npos) << complaint;
  }
}

TEST(TextFiles, messages_about_a_chain_file_have_no_control_characters) {
  const Texts texts{"{name: a, type: nids, on: cpu, config: {rules: ok.ids, on_refused: warn, variables: {A: any}}}",
                    {}};
  const std::string right = chain_text(texts);
  ASSERT_EQ(complaint_about(texts), "");
  std::size_t complaints = 0;
  // a text of YAML in quotes has any character; each value of the file in turn
  for (const std::string_view value : {"catena/v1", "Chain", "texts", "null", "none", "nids", "cpu", "ok.ids", "warn",
                                       "any", "metadata", "name", "generator", "count", "config", "rules", "spec"}) {
    const std::string hostile =
        absl::StrReplaceAll(right, {{std::string(value).c_str(), "\"\\e[2J\\n\\x7F\\x9B\\u202E\""}});
    const std::string complaint = complaint_about(texts, "chain.yaml", hostile);
    complaints += complaint.empty() ? 0 : 1;
    EXPECT_TRUE(is_plain(complaint)) << value << ": " << escaped(complaint);
    EXPECT_EQ(complaint.find("\n\x7f"), std::string::npos) << value;
  }
  EXPECT_GT(complaints, 10U);
  for (std::size_t at = 0; at <= right.size(); at += 4) {
    std::string hostile = right;
    hostile.insert(at, kHostile);
    EXPECT_TRUE(is_plain(complaint_about(texts, "chain.yaml", hostile))) << at;
  }
}

TEST(TextFiles, names_of_files_have_no_control_characters_in_messages) {
  for (const char* key :
       {"firewall, config: {default: deny, rules: ", "nids, config: {rules: ", "router, config: {routes: "}) {
    const std::string missing = complaint_about({concat("{name: a, type: ", key, "\"x\\e[2J\\n.rules\"}}"), {}});
    EXPECT_THAT(missing, HasSubstr("x\\x1b[2J\\n.rules"));
    EXPECT_TRUE(is_plain(missing));
    const std::string broken = complaint_about(
        {concat("{name: a, type: ", key, "\"x\\e[2J\\n.rules\"}}"), {{"x\x1b[2J\n.rules", "nonsense\n"}}});
    EXPECT_THAT(broken, HasSubstr("x\\x1b[2J\\n.rules:1:"));
    EXPECT_TRUE(is_plain(broken));
  }
}

}  // namespace
}  // namespace catena::testing
