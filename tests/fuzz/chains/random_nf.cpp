// SPDX-License-Identifier: Apache-2.0
#include "fuzz/chains/random_nf.hpp"

#include "system/chain_runner.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

namespace catena::fuzz {
namespace {

namespace fs = std::filesystem;

// An association for all packets, which may have more lines.
constexpr std::string_view kAssociation =
    "associations:\n"
    "  - spi: 4096\n"
    "    source: 198.51.100.1\n"
    "    destination: 203.0.113.1\n"
    "    encryption_key: \"000102030405060708090a0b0c0d0e0f\"\n"
    "    salt: \"a0a1a2a3\"\n"
    "    authentication_key: \"101112131415161718191a1b1c1d1e1f20212223\"\n";
constexpr std::string_view kInUdp = "    udp_encapsulation: {source_port: 4500, destination_port: 4500}\n";
// numbers that come to the end of 32 bits soon, outer headers that copy nothing, fragments where they are too long
constexpr std::string_view kExtended =
    "    esn: true\n"
    "    first_sequence: 4294967200\n"
    "    soft_limit: 4294967300\n"
    "    ttl: 3\n"
    "    dscp: 12\n"
    "    df: clear\n";

// Files beside the tests' own, which write_chain_files() copies.
constexpr std::array<std::pair<const char*, const char*>, 4> kOwnFiles{{
    {"open.rules",
     "deny udp any any any 53\n"
     "allow any any any any any\n"},
    {"default.routes",
     "0.0.0.0/0 1\n"
     "10.0.0.0/8 2\n"
     "203.0.113.0/24 3\n"},
    {"many.txt", "e\nee\nabc\nneedle\nxyzzy\nHost: \n"},
    // conditions on more than contents, and a rule that is refused
    {"more.rules",
     "alert tcp any any -> any any (msg:\"begins\"; flags:S,12; sid:2000001; rev:1;)\n"
     "alert tcp any any -> any any (msg:\"ends\"; flags:*FR; sid:2000002; rev:1;)\n"
     "alert tcp any any -> any any (msg:\"no ack\"; flags:!A; dsize:>0; sid:2000003; rev:1;)\n"
     "alert udp any any -> any any (msg:\"long\"; dsize:>500; sid:2000004; rev:1;)\n"
     "alert ip any any -> any any (msg:\"short\"; dsize:5<>40; sid:2000005; rev:1;)\n"
     "alert icmp any any -> any any (msg:\"echo\"; itype:8; icode:0; sid:2000006; rev:1;)\n"
     "drop icmp any any -> any any (msg:\"errors\"; itype:>2; icode:<3; content:\"e\"; sid:2000007; rev:1;)\n"
     "alert tcp any any -> any any (msg:\"GET\"; content:\"GET \"; startswith; sid:2000008; rev:1;)\n"
     "alert ip any any -> any any (msg:\"xyzzy\"; content:\"xyzzy\"; endswith; fast_pattern; sid:2000009; rev:1;)\n"
     "drop udp any any -> any any (msg:\"more\"; content:\"needle\"; isdataat:10,relative; sid:2000010; rev:1;)\n"
     "alert tcp any any -> any any (msg:\"abc\"; content:\"abc\"; nocase; content:!\"GET\"; isdataat:!200; "
     "sid:2000011; rev:1;)\n"
     "alert tcp $HOME_NET any -> any any (msg:\"home\"; content:\"e\"; offset:3; depth:40; flow:to_server; "
     "sid:2000012; rev:1;)\n"
     "alert tcp any any -> any any (msg:\"refused\"; pcre:\"/x/\"; sid:2000013; rev:1;)\n"},
}};

constexpr std::array<const char*, 4> kSharedFiles{"fw.rules", "ids.rules", "routes.txt", "strings.txt"};

/// Of the files of associations, each with other keys; as many as a chain has NFs.
constexpr unsigned kTunnels = 8;

std::string with_number(std::string_view file, unsigned number) {
  return number == 0 ? std::string(file) : concat(number, "-", file);
}

/// Has an ipsec NF use its file with the keys of number `number`.
void use_keys(FuzzNf& nf, unsigned number) {
  constexpr std::string_view kFile = "sa: ";
  const std::size_t begin = nf.config.find(kFile) + kFile.size();
  const std::size_t length = nf.config.find(',', begin) - begin;
  nf.config.replace(begin, length, with_number(nf.config.substr(begin, length), number));
}

bool encrypts(FuzzNf const& nf) { return nf.type == "ipsec" && nf.config.find("encrypt") != std::string::npos; }

FuzzNf make_firewall(Random& random) {
  return {"firewall", concat(random.chance(75)   ? "rules: open.rules, default: deny"
                             : random.chance(90) ? "rules: fw.rules, default: allow"
                                                 : "rules: fw.rules, default: deny",
                             random.chance(20) ? ", classbench_action: allow" : "")};
}

FuzzNf make_router(Random& random) {
  std::string config = concat("routes: ", random.chance(70) ? "default.routes" : "routes.txt");
  if (random.chance(50)) {
    const bool has_address = random.chance(50);
    config += concat(", ports: [{port: 1, mac: 02:00:00:00:03:01, next_hop_mac: 02:00:00:00:03:02",
                     has_address ? ", address: 10.3.0.1/24" : "", "}]");
    if (has_address) {
      config += random.chance(40) ? concat(", icmp_rate: ", random.below(2) * 3) : "";
      config += random.chance(30) ? ", arp: pass" : "";
    }
    config += random.chance(15) ? ", frames: own" : "";
  }
  return {"router", concat(config, random.chance(20) ? ", multicast: forward" : "")};
}

FuzzNf make_nat(Random& random) {
  return {"nat", concat("inside: [10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12], external: [203.0.113.1",
                        random.chance(50) ? "-203.0.113.3]" : "]", random.chance(20) ? ", ports: 40000-40003" : "",
                        random.chance(20)   ? ", max_mappings: 5"
                        : random.chance(20) ? ", max_half_open: 2"
                                            : "",
                        random.chance(25) ? ", inbound_to_inside: pass" : "",
                        random.chance(20) ? concat(", inside_ports: [", random.below(2), "]") : "",
                        random.chance(20) ? ", timeouts: {udp: 1, tcp_opening: 1, tcp_closing: 1, icmp: 1}" : "")};
}

FuzzNf make_lb(Random& random) {
  constexpr std::array<const char*, 3> kStates{"up", "drain", "down"};
  return {"lb",
          concat("services: [{address: 10.0.0.6, port: 80, protocol: tcp, backends: [{name: a, address: 10.200.0.1, "
                 "port: 8080",
                 random.chance(20) ? concat(", state: ", random.pick(kStates)) : "",
                 "}, {name: b, address: 10.200.0.2, weight: 3}]}, {address: 8.8.8.8, port: 53, protocol: "
                 "udp, backends: [{name: c, address: 10.0.0.138, port: 53}]}]",
                 random.chance(20)   ? ", max_flows: 4"
                 : random.chance(20) ? ", max_half_open: 2"
                                     : "",
                 random.chance(20) ? ", table_size: 503" : "", random.chance(20) ? ", answers_without_flow: pass" : "",
                 random.chance(20) ? ", icmp_errors: pass" : "",
                 random.chance(20) ? ", timeouts: {udp: 1, tcp_opening: 1, tcp_closing: 1}" : "")};
}

FuzzNf make_monitor(Random& random) {
  return {"monitor",
          concat("max_flows: ", random.chance(30) ? 3 : 1000, random.chance(20) ? ", idle_timeout_s: 1" : "",
                 random.chance(20) ? ", active_timeout_s: 2" : "", ", export: [{format: json, file: ", kFlows, "}]")};
}

}  // namespace

FuzzNf make_encrypt(std::string_view associations, std::uint32_t mtu) {
  return {"ipsec", concat("direction: encrypt, sa: ", associations, ", mtu: ", mtu)};
}

FuzzNf make_decrypt(Random& random, std::string_view associations) {
  return {"ipsec", concat("direction: decrypt, sa: ", associations,
                          random.chance(60)   ? ", cleartext: pass"
                          : random.chance(20) ? ", cleartext: drop"
                                              : "")};
}

void give_keys(std::vector<FuzzNf>& nfs) {
  unsigned tunnels = 0;          // that NFs have put on
  unsigned arrived = 0;          // of those that were there before, taken off
  std::vector<unsigned> around;  // those that are still there
  for (FuzzNf& nf : nfs) {
    if (encrypts(nf)) {
      around.push_back(tunnels);
      use_keys(nf, tunnels++);
    } else if (nf.type == "ipsec") {
      use_keys(nf, around.empty() ? std::min(arrived++, kTunnels - 1) : around.back());
      if (!around.empty()) {
        around.pop_back();
      }
    }
  }
}

void give_keys_inwards(std::vector<FuzzNf>& nfs) {
  auto number = static_cast<unsigned>(nfs.size());
  for (FuzzNf& nf : nfs) {
    use_keys(nf, --number);
  }
}

FuzzNf make_nids(Random& random) {
  switch (random.below(3)) {
    case 0:
      return {"nids", concat("rules: ids.rules", random.chance(30) ? ", on_refused: error" : "")};
    case 1:
      return {"nids", concat("rules: more.rules", random.chance(50) ? ", on_refused: warn" : "",
                             random.chance(50) ? ", variables: {HOME_NET: 10.0.0.0/8}" : "")};
    default:
      return {"nids",
              concat("strings: ", random.chance(50) ? "many.txt" : "strings.txt",
                     random.chance(30) ? ", nocase: true" : "", random.chance(20) ? ", string_action: drop" : "")};
  }
}

FuzzNf make_nf(Random& random) {
  switch (random.below(12)) {
    case 0:
    case 1:
      return make_firewall(random);
    case 2:
    case 3:
      return make_nids(random);
    case 4:
    case 5:
      return make_encrypt(random.pick(kAssociations), random.chance(85) ? 2034 : random.between(68, 2034));
    case 6:
      return make_decrypt(random, random.pick(kAssociations));
    case 7:
      return make_router(random);
    case 8:
      return make_nat(random);
    case 9:
      return make_lb(random);
    case 10:
      return {"remark", concat("map: [{from: 46, to: 10}, {from: 0, to: 1}, {from: 1, to: 63}]",
                               random.chance(15) ? ", unlisted: drop" : "")};
    default:
      return make_monitor(random);
  }
}

std::string make_unseen(Random& random, std::string_view before, std::string_view behind) {
  constexpr std::array<const char*, 2> kWords{"pass", "drop"};
  std::string text;
  for (const char* key : {"on_unsupported", "link_local"}) {
    if (random.chance(30)) {
      text += concat(before, key, ": ", random.pick(kWords), behind);
    }
  }
  return text;
}

Status write_chain_files(fs::path const& folder) {
  for (const char* name : kSharedFiles) {
    std::error_code error;
    fs::copy_file(testing::data_file(concat("chain/", name)), folder / name, fs::copy_options::overwrite_existing,
                  error);
    if (error) {
      return absl::NotFoundError(concat(name, ": ", error.message()));
    }
  }
  std::vector<std::pair<std::string, std::string>> files(kOwnFiles.begin(), kOwnFiles.end());
  for (unsigned number = 0; number < kTunnels; ++number) {
    for (const char* name : {"sa.yaml", "sa-all.yaml"}) {
      files.emplace_back(with_number(name, number),
                         testing::with_keys(testing::read_file(testing::data_file(concat("chain/", name))), number));
    }
    files.emplace_back(with_number("udp-all.yaml", number), testing::with_keys(concat(kAssociation, kInUdp), number));
    files.emplace_back(with_number("esn-all.yaml", number),
                       testing::with_keys(concat(kAssociation, kExtended), number));
  }
  for (auto const& [name, text] : files) {
    std::ofstream file(folder / name);
    file << text;
    if (!file.flush()) {
      return absl::UnavailableError(concat((folder / name).string(), " cannot be written"));
    }
  }
  return absl::OkStatus();
}

}  // namespace catena::fuzz
