// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/chains.hpp"

#include <catena/core/text.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace catena::bench {
namespace {

constexpr const char* kFirewallRules = "rules: fw.rules, default: allow";
constexpr const char* kDecrypt = "direction: decrypt, sa: %SA%";
constexpr const char* kNatConfig = "inside: [10.0.0.0/8], external: [203.0.113.1-203.0.113.4]";
constexpr const char* kLbConfig =
    "services: [{address: 172.16.0.10, port: 80, protocol: tcp, backends: [{name: a, address: 172.31.0.1}, "
    "{name: b, address: 172.31.0.2}]}], icmp_errors: pass";
constexpr const char* kMonitorConfig = "max_flows: 65536";
constexpr const char* kRemarkConfig = "map: [{from: 0, to: 10}]";

void replace(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

}  // namespace

std::string PaperChain::title() const {
  std::string text;
  for (PaperNf const& nf : nfs) {
    text += concat(text.empty() ? "" : " ", nf.type, nf.on_gpu ? "(G)" : "(C)");
  }
  return text;
}

std::vector<PaperChain> const& paper_chains() {
  static const std::vector<PaperChain> kChains{
      {"C1", {{"fw", "firewall", kFirewallRules, false}, kGpuVpn, kGpuIds}},
      {"C2", {kGpuIds, {"nat", "nat", kNatConfig, false}, kGpuVpn}},
      {"C3", {kGpuVpn, {"lb", "lb", kLbConfig, false}, kGpuIds}},
      {"C4", {{"fw", "firewall", kFirewallRules, true}, kGpuVpn, kGpuIds, {"rt", "router", kRoutesConfig, false}}},
      {"C5",
       {{"fw", "firewall", kFirewallRules, true},
        {"flows", "monitor", kMonitorConfig, false},
        {"nat", "nat", kNatConfig, true},
        kGpuVpn,
        kGpuIds}},
      {"C1-decrypt", {{"fw", "firewall", kFirewallRules, false}, {"vpn", "ipsec", kDecrypt, true}, kGpuIds}, true},
      {"C3-decrypt", {{"vpn", "ipsec", kDecrypt, true}, {"lb", "lb", kLbConfig, false}, kGpuIds}, true},
      {"C4-decrypt",
       {{"fw", "firewall", kFirewallRules, true},
        {"vpn", "ipsec", kDecrypt, true},
        kGpuIds,
        {"rt", "router", kRoutesConfig, false}},
       true},
  };
  return kChains;
}

std::vector<PaperChain> const& figure_chains() {
  static const PaperNf kFirewall{"fw", "firewall", kFirewallRules, true};
  static const PaperNf kBefore{"before", "nids", kRulesConfig, true};
  static const PaperNf kBehind{"behind", "nids", kRulesConfig, true};
  static const std::vector<PaperChain> kChains{{"F", {kFirewall}},
                                               {"F-I", {kFirewall, kGpuVpn}},
                                               {"F-I-N", {kFirewall, kGpuVpn, kGpuIds}},
                                               {"IPsec", {kGpuVpn}},
                                               {"IPsec-resident", {kBefore, kGpuVpn, kBehind}},
                                               {"NIDS", {kGpuIds}},
                                               {"NIDS-resident", {kBefore, kGpuIds, kBehind}}};
  return kChains;
}

std::vector<PaperChain> const& gnet_chains() {
  static const PaperNf kFirewall{"fw", "firewall", kFirewallRules, true};
  static const PaperNf kDecryptingVpn{"vpn", "ipsec", kDecrypt, true};
  static const std::vector<PaperChain> kChains{{"S_a", {kDecryptingVpn, kGpuIds}, true},
                                               {"S_b", {kFirewall, kDecryptingVpn, kGpuIds}, true},
                                               {"S_c", {kDecryptingVpn, kGpuIds, kGpuRouter}, true},
                                               {"S_d", {kFirewall, kDecryptingVpn, kGpuIds, kGpuRouter}, true}};
  return kChains;
}

std::vector<PaperChain> const& sharing_chains() {
  static const PaperNf kFirewall{"fw", "firewall", "rules: fw-188.rules, default: allow", true};
  static const std::vector<PaperChain> kChains{{"S_a", {kGpuVpn, kGpuIds}},
                                               {"S_b", {kFirewall, kGpuVpn, kGpuIds}},
                                               {"S_c", {kGpuVpn, kGpuIds, kGpuRouter}},
                                               {"S_d", {kFirewall, kGpuVpn, kGpuIds, kGpuRouter}}};
  return kChains;
}

std::vector<PaperChain> const& placed_chains() {
  static const std::vector<PaperChain> kChains{
      sharing_chains().back(), {"FNR", {{"fw", "firewall", kFirewallRules, true}, kGpuIds, kGpuRouter}}};
  return kChains;
}

std::vector<PaperChain> const& growing_chains() {
  static const std::vector<PaperChain> kChains{
      {"IPsec", {kGpuVpn}}, sharing_chains()[0], sharing_chains()[1], sharing_chains()[3]};
  return kChains;
}

std::vector<PaperChain> const& kernel_chains() {
  static const std::vector<PaperChain> kChains{{"firewall", {{"fw", "firewall", kFirewallRules, true}}},
                                               {"ipsec-encrypt", {kGpuVpn}},
                                               {"ipsec-decrypt", {{"vpn", "ipsec", kDecrypt, true}}, true},
                                               {"nids", {kGpuIds}},
                                               {"nat", {{"nat", "nat", kNatConfig, true}}},
                                               {"lb", {{"lb", "lb", kLbConfig, true}}},
                                               {"router", {kGpuRouter}},
                                               {"monitor", {{"flows", "monitor", kMonitorConfig, true}}},
                                               {"remark", {{"mark", "remark", kRemarkConfig, true}}}};
  return kChains;
}

Result<PaperChain const*> find_chain(std::string_view name) {
  std::vector<std::string_view> names;
  for (auto const* const chains : {&paper_chains(), &figure_chains(), &placed_chains()}) {
    for (PaperChain const& chain : *chains) {
      if (chain.name == name) {
        return &chain;
      }
      names.emplace_back(chain.name);
    }
  }
  return absl::NotFoundError(fmt::format("there is no chain '{}'; allowed: {}", name, fmt::join(names, ", ")));
}

PaperChain const& empty_chain(bool esp_input) {
  static const PaperChain kEmpty{"rx-tx", {}};
  static const PaperChain kEmptyEsp{"rx-tx-esp", {}, true};
  return esp_input ? kEmptyEsp : kEmpty;
}

PaperChain const& encrypting_chain() {
  static const PaperChain kChain{"encrypt", {{"vpn", "ipsec", kEncryptConfig, false}}};
  return kChain;
}

namespace {

const char* place_of(PaperNf const& nf, ChainText const& text) {
  if (text.device == "none" || text.placed == Placed::kCpu) {
    return "cpu";
  }
  return text.placed == Placed::kAuto ? "auto" : nf.on_gpu ? "gpu" : "cpu";
}

}  // namespace

std::string chain_text(PaperChain const& chain, ChainText const& text) {
  std::string result = fmt::format(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {{name: {}}}\nspec:\n"
      "  rx: {{replay: {{packet: {}, flows: {}, rate: {}}}}}\n  tx: null\n  device: {}\n  tuning: {{{}}}\n  nfs:{}\n",
      chain.name, text.frame_bytes, kFlows, text.packets_per_s, text.device, text.tuning,
      chain.nfs.empty() ? " []" : "");
  for (PaperNf const& nf : chain.nfs) {
    result += fmt::format("    - {{name: {}, type: {}, on: {}, config: {}}}\n", nf.name, nf.type, place_of(nf, text),
                          config_text(nf, text.sa_file));
  }
  return result;
}

std::string config_text(PaperNf const& nf, std::string const& sa_file) {
  std::string config = nf.config;
  replace(config, "%SA%", sa_file);
  return concat("{", config, "}");
}

Result<std::string> write_sa(std::filesystem::path const& data, std::filesystem::path const& folder, std::uint32_t spi,
                             std::uint32_t first_sequence) {
  std::ifstream in(data / "sa.yaml.in");
  std::stringstream read;
  read << in.rdbuf();
  std::string text = read.str();
  for (auto const& [name, value] :
       {std::pair("@SPI@", std::to_string(spi)), std::pair("@SPI_HEX@", fmt::format("{:08x}", spi)),
        std::pair("@FIRST_SEQUENCE@", std::to_string(first_sequence))}) {
    if (!in || text.find(name) == std::string::npos) {
      return absl::NotFoundError(concat((data / "sa.yaml.in").string(), " cannot be read, or lacks ", name));
    }
    replace(text, name, value);
  }
  const std::filesystem::path path = folder / concat("sa-", spi, "-", first_sequence, ".yaml");
  std::ofstream out(path);
  out << text << std::flush;
  if (!out) {
    return absl::PermissionDeniedError(concat("cannot write ", path.string()));
  }
  return path.string();
}

}  // namespace catena::bench
