// SPDX-License-Identifier: Apache-2.0
#include "fuzz/chains/random_chain.hpp"

#include "system/chain_runner.hpp"

#include <catena/core/text.hpp>
#include <catena/plan/cost_model.hpp>

#include <array>
#include <fstream>
#include <utility>

namespace catena::fuzz {
namespace {

namespace fs = std::filesystem;

// Files that stand beside the tests', which write_chain_files() copies.
constexpr std::array<std::pair<const char*, const char*>, 4> kOwnFiles{{
    {"udp-all.yaml",
     "associations:\n"
     "  - spi: 4096\n"
     "    source: 198.51.100.1\n"
     "    destination: 203.0.113.1\n"
     "    encryption_key: \"000102030405060708090a0b0c0d0e0f\"\n"
     "    salt: \"a0a1a2a3\"\n"
     "    authentication_key: \"101112131415161718191a1b1c1d1e1f20212223\"\n"
     "    udp_encapsulation: {source_port: 4500, destination_port: 4500}\n"},
    {"open.rules",
     "deny udp any any any 53\n"
     "allow any any any any any\n"},
    {"default.routes",
     "0.0.0.0/0 1\n"
     "10.0.0.0/8 2\n"
     "203.0.113.0/24 3\n"},
    {"many.txt", "e\nee\nabc\nneedle\nxyzzy\nHost: \n"},
}};
/// Stands in configs for the file of flows of the NF that writes it.
constexpr std::string_view kFlows = "@flows";

constexpr std::array<const char*, 6> kSharedFiles{"fw.rules", "ids.rules",   "routes.txt",
                                                  "sa.yaml",  "sa-all.yaml", "strings.txt"};
constexpr std::array<const char*, 3> kAssociations{"sa.yaml", "sa-all.yaml", "udp-all.yaml"};

std::string encrypt_config(Random& random, std::string const& associations) {
  return concat("direction: encrypt, sa: ", associations,
                random.chance(85) ? ", mtu: 2034" : concat(", mtu: ", random.between(68, 2034)));
}

FuzzNf make_nf(Random& random) {
  switch (random.below(12)) {
    case 0:
    case 1:
      return {"firewall", random.chance(75)   ? "rules: open.rules, default: deny"
                          : random.chance(90) ? "rules: fw.rules, default: allow"
                                              : "rules: fw.rules, default: deny"};
    case 2:
      return {"nids", "rules: ids.rules"};
    case 3:
      return {"nids",
              concat("strings: ", random.chance(50) ? "many.txt" : "strings.txt",
                     random.chance(30) ? ", nocase: true" : "", random.chance(20) ? ", string_action: drop" : "")};
    case 4:
    case 5:
      return {"ipsec", encrypt_config(random, random.pick(kAssociations))};
    case 6:
      return {"ipsec", concat("direction: decrypt, sa: ", random.pick(kAssociations))};
    case 7:
      return {"router", concat("routes: ", random.chance(70) ? "default.routes" : "routes.txt",
                               random.chance(50) ? ", ports: [{port: 1, mac: 02:00:00:00:03:01, next_hop_mac: "
                                                   "02:00:00:00:03:02}]"
                                                 : "")};
    case 8:
      return {"nat", concat("inside: [10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12], external: [203.0.113.1",
                            random.chance(50) ? "-203.0.113.3]" : "]", random.chance(20) ? ", ports: 40000-40003" : "",
                            random.chance(20) ? ", max_mappings: 5" : "")};
    case 9:
      return {
          "lb",
          concat("services: [{address: 10.0.0.6, port: 80, protocol: tcp, backends: [{name: a, address: 10.200.0.1, "
                 "port: 8080}, {name: b, address: 10.200.0.2, weight: 3}]}, {address: 8.8.8.8, port: 53, protocol: "
                 "udp, backends: [{name: c, address: 10.0.0.138, port: 53}]}]",
                 random.chance(20) ? ", max_flows: 4" : "")};
    case 10:
      return {"remark", concat("map: [{from: 46, to: 10}, {from: 0, to: 1}, {from: 1, to: 63}]",
                               random.chance(15) ? ", unlisted: drop" : "")};
    default:
      return {"monitor",
              concat("max_flows: ", random.chance(30) ? 3 : 1000, ", export: [{format: json, file: ", kFlows, "}]"), "",
              false};
  }
}

/// Tunnels put on and taken off again, as often or less often, with other NFs between them.
std::vector<FuzzNf> make_stack(Random& random) {
  const std::string associations = random.pick(kAssociations);
  std::vector<FuzzNf> nfs;
  const std::uint32_t tunnels = random.between(1, 3);
  for (std::uint32_t i = 0; i < tunnels; ++i) {
    nfs.push_back({"ipsec", encrypt_config(random, associations)});
  }
  for (std::uint32_t i = random.below(tunnels + 1); i > 0; --i) {
    nfs.push_back({"ipsec", concat("direction: decrypt, sa: ", associations)});
  }
  for (std::uint32_t i = random.below(3); i > 0; --i) {
    nfs.insert(nfs.begin() + random.below(nfs.size() + 1), make_nf(random));
  }
  return nfs;
}

std::string random_tuning(Random& random) {
  constexpr std::array<std::uint32_t, 7> kUnits{4, 7, 16, 32, 64, 256, 1024};
  constexpr std::array<std::uint32_t, 6> kLaunches{1, 2, 3, 8, 20, 64};
  const std::uint32_t unit = random.pick(kUnits);
  return concat("{unit_packets: ", unit, ", units_per_launch: ", random.pick(kLaunches),
                ", launches_in_flight: ", random.between(1, 5), ", pool_slots: ", random.chance(60) ? 2048 : 8192,
                ", max_batch_delay_us: ",
                random.chance(80)   ? 50
                : random.chance(50) ? 0
                                    : 2000,
                ", device_limit_ms: 120000}");
}

/// Costs by which a planner takes one method wherever it can, or that are of no machine: any plan is right.
chain::CostProfile random_costs(Random& random) {
  constexpr std::array<plan::Method, 3> kMethods{plan::Method::kStaged, plan::Method::kStrided, plan::Method::kGather};
  chain::CostProfile profile = chain::CostProfile::built_in();
  plan::CostModel& costs = profile.costs;
  if (random.chance(60)) {
    const plan::Method method = random.pick(kMethods);
    costs.available = plan::method_bit(method);
    if (method != plan::Method::kStaged) {  // it is always there: make it dear
      costs.host_copy_ns_per_byte *= 1000;
      costs.host_touch_ns *= 1000;
    }
    return profile;
  }
  const auto scale = [&random](double& value) {
    constexpr std::array<double, 5> kFactors{0.001, 0.1, 1, 10, 1000};
    value *= random.pick(kFactors);
  };
  for (auto& directions : costs.methods) {
    for (plan::MethodCost& cost : directions) {
      scale(cost.per_transfer_ns);
      scale(cost.per_packet_ns);
      scale(cost.per_packet_fields_ns);
      scale(cost.per_byte_ns);
    }
  }
  scale(costs.host_copy_ns_per_byte);
  scale(costs.host_touch_ns);
  scale(costs.host_column_ns);
  scale(costs.device_copy_ns_per_byte);
  return profile;
}

void choose_sync(Random& random, Variant& variant) {
  const std::uint32_t mode = random.below(10);
  variant.sync.mode = mode < 3 ? plan::Mode::kCopy : mode < 5 ? plan::Mode::kShared : plan::Mode::kAdaptive;
  variant.sync.pushdown = random.chance(70);
  variant.sync_options =
      concat("--sync ", plan::to_string(variant.sync.mode), variant.sync.pushdown ? "" : " --pushdown off");
  if (random.chance(75)) {
    variant.sync.profile = random_costs(random);
  }
}

}  // namespace

FuzzChain make_chain(Random& random) {
  FuzzChain chain;
  if (random.chance(40)) {
    chain.nfs = make_stack(random);
  } else {
    for (std::uint32_t i = random.between(1, 5); i > 0; --i) {
      chain.nfs.push_back(make_nf(random));
    }
  }
  constexpr std::array<const char*, 2> kUnsupported{"pass", "drop"};
  for (FuzzNf& nf : chain.nfs) {
    if (random.chance(30)) {
      nf.more = concat(", on_unsupported: ", random.pick(kUnsupported));
    }
  }
  if (random.chance(40)) {
    chain.spec = concat("  on_unsupported: ", random.pick(kUnsupported), "\n");
  }
  return chain;
}

FuzzChain make_tunnels(Random& random, std::uint32_t tunnels) {
  FuzzChain chain;
  const std::string associations = random.pick(kAssociations);
  for (std::uint32_t i = 0; i < tunnels; ++i) {
    chain.nfs.push_back(
        {"ipsec", concat("direction: encrypt, mtu: 2034, sa: ", associations), ", on_unsupported: pass"});
  }
  return chain;
}

Variant make_variant(Random& random, FuzzChain const& chain, Variant const* like) {
  Variant variant;
  if (like != nullptr) {
    variant = *like;
  } else {
    std::uint32_t kernels = 0;
    for (std::size_t i = 0; i < chain.nfs.size(); ++i) {
      kernels |= chain.nfs[i].has_kernel ? 1U << i : 0U;
    }
    while (variant.gpu_mask == 0 && kernels != 0) {
      variant.gpu_mask = kernels & static_cast<std::uint32_t>(random.chance(40) ? ~0U : random.bits());
    }
    choose_sync(random, variant);
  }
  variant.tuning = random_tuning(random);
  variant.workers = random.chance(60) ? 1 : random.between(2, 4);
  return variant;
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
  for (auto const& [name, text] : kOwnFiles) {
    std::ofstream file(folder / name);
    file << text;
    if (!file.flush()) {
      return absl::UnavailableError(concat((folder / name).string(), " cannot be written"));
    }
  }
  return absl::OkStatus();
}

std::string flows_file(std::size_t nf) { return concat("flows", nf, ".jsonl"); }

std::string chain_text(FuzzChain const& chain, Variant const& variant, std::string const& device) {
  std::string text = concat(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: fuzz}\nspec:\n  rx: {pcap: in.pcap}\n  tx: {pcap: "
      "out.pcap}\n"
      "  device: ",
      device, "\n", chain.spec, variant.tuning.empty() ? "" : concat("  tuning: ", variant.tuning, "\n"),
      chain.nfs.empty() ? "  nfs: []\n" : "  nfs:\n");
  for (std::size_t i = 0; i < chain.nfs.size(); ++i) {
    FuzzNf const& nf = chain.nfs[i];
    std::string config = nf.config;
    if (const std::size_t at = config.find(kFlows); at != std::string::npos) {
      config.replace(at, kFlows.size(), flows_file(i));
    }
    text += concat("    - {name: ", nf.type, i, ", type: ", nf.type,
                   ", on: ", (variant.gpu_mask >> i & 1U) != 0 ? "gpu" : "cpu", nf.more, ", config: {", config, "}}\n");
  }
  return text;
}

}  // namespace catena::fuzz
