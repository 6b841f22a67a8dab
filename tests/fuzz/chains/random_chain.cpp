// SPDX-License-Identifier: Apache-2.0
#include "fuzz/chains/random_chain.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "plan/cost_model.hpp"

namespace catena::fuzz {
namespace {

/// Tunnels put on and taken off again, as often or less often, with other NFs between them.
std::vector<FuzzNf> make_stack(Random& random) {
  const std::string associations = random.pick(kAssociations);
  std::vector<FuzzNf> nfs;
  const std::uint32_t tunnels = random.between(1, 3);
  for (std::uint32_t i = 0; i < tunnels; ++i) {
    nfs.push_back(make_encrypt(associations, random.chance(85) ? 2034 : random.between(68, 2034)));
  }
  for (std::uint32_t i = random.below(tunnels + 1); i > 0; --i) {
    nfs.push_back(make_decrypt(random, associations));
  }
  for (std::uint32_t i = random.below(3); i > 0; --i) {
    nfs.insert(nfs.begin() + random.below(nfs.size() + 1), make_nf(random));
  }
  return nfs;
}

/// `grows`: with launches that a few hundred packets fill.
chain::Tuning random_tuning(Random& random, bool grows) {
  constexpr std::array<std::uint32_t, 7> kUnits{4, 7, 16, 32, 64, 256, 1024};
  constexpr std::array<std::uint32_t, 6> kLaunches{1, 2, 3, 8, 20, 64};
  chain::Tuning tuning;
  tuning.unit_packets = grows ? kUnits[random.below(5)] : random.pick(kUnits);
  tuning.units_per_launch = grows ? kLaunches[random.below(3)] : random.pick(kLaunches);
  tuning.launches_in_flight = random.between(1, 5);
  tuning.pool_slots = random.chance(60) ? 2048 : 8192;
  tuning.max_batch_delay_us = random.chance(80) ? 50 : random.chance(50) ? 0 : 2000;
  tuning.device_limit_ms = 120'000;
  return tuning;
}

std::string to_yaml(chain::Tuning const& tuning) {
  constexpr std::uint32_t kFewestSlots = 2048;  // that a chain file may say
  return concat(
      "{unit_packets: ", tuning.unit_packets, ", units_per_launch: ", tuning.units_per_launch,
      ", launches_in_flight: ", tuning.launches_in_flight, ", pool_slots: ", std::max(tuning.pool_slots, kFewestSlots),
      ", max_batch_delay_us: ", tuning.max_batch_delay_us, ", device_limit_ms: ", tuning.device_limit_ms, "}");
}

/// Costs by which a planner takes one method wherever it can, or that are of no machine: any plan is right.
chain::CostProfile random_costs(Random& random, bool one_method) {
  chain::CostProfile profile = chain::CostProfile::built_in();
  plan::CostModel& costs = profile.costs;
  if (one_method || random.chance(60)) {
    const TransferMethod method = random.pick(kTransferMethods);
    costs.available = plan::method_bit(method);
    if (method != TransferMethod::kStaged) {  // it is always there: make it dear
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

/// Whether what the NF makes of a packet has nothing to do with those before it, in the order in which they come.
bool processes_by_packet(FuzzNf const& nf) {
  return nf.type == "firewall" || nf.type == "nids" || nf.type == "remark" ||
         (nf.type == "router" && nf.config.find("address:") == std::string::npos);
}

/// Conditions of a row behind `from`.
std::string make_conditions(Random& random, std::size_t from) {
  constexpr std::array<std::string_view, 6> kProtocols{"tcp", "udp", "icmp", "esp", "47", "6"};
  constexpr std::array<std::string_view, 5> kPrefixes{"10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12", "0.0.0.0/1",
                                                      "10.0.0.0/24"};
  constexpr std::array<std::string_view, 4> kPorts{"0-1023", "53", "1024-40000", "443"};
  std::string keys;
  const auto add = [&](std::uint32_t percent, std::string const& key) {
    if (random.chance(percent)) {
      keys += concat(keys.empty() ? "" : ", ", key);
    }
  };
  const std::string_view protocol = random.pick(kProtocols);
  add(45, concat("protocol: ", protocol));
  add(30, concat(random.chance(50) ? "dst: " : "src: ", random.pick(kPrefixes)));
  if (keys.empty() || protocol == "tcp" || protocol == "udp") {
    add(30, concat(random.chance(50) ? "dport: " : "sport: ", random.pick(kPorts)));
  }
  add(10, random.chance(50) ? "vlan: untagged" : "vlan: 10");
  add(10, "verdict: alert");
  add(5, "tx_port: 1");
  const bool has_output = from != kRxNode && random.chance(15);
  const std::string output = concat("output: ", random.chance(50) ? "alert" : "pass");
  return keys.empty() ? has_output ? output : "match: {protocol: udp}"
                      : concat(has_output ? output + ", " : "", "match: {", keys, "}");
}

/// Rows of any kind, of which a chain file may refuse some. Packets go to NFs with greater numbers.
std::vector<FuzzRow> make_rows(Random& random, std::uint32_t nfs) {
  std::vector<FuzzRow> rows;
  const auto behind = [&random, nfs](std::size_t from) {
    const std::size_t first = from == kRxNode ? 0 : from + 1;
    const std::size_t to = first + random.below(nfs - first + 1);
    return to == nfs ? kTxNode : to;
  };
  for (std::size_t nf = 0; nf < nfs; ++nf) {  // something comes to each
    const std::size_t in_front = random.below(nf + 1);
    const std::size_t from = in_front == nf ? kRxNode : in_front;
    const bool is_mirror = random.chance(20);
    rows.push_back({from, is_mirror && random.chance(30) ? "" : make_conditions(random, from), nf, is_mirror});
  }
  for (std::uint32_t more = random.below(5); more > 0; --more) {
    const std::size_t from = random.chance(30) ? kRxNode : random.below(nfs);
    rows.push_back({from, make_conditions(random, from), random.chance(15) ? kDropNode : behind(from), false});
    rows.back().is_mirror = rows.back().to != kDropNode && random.chance(30);
  }
  for (std::size_t i = rows.size(); i > 1; --i) {
    std::swap(rows[i - 1], rows[random.below(i)]);
  }
  for (std::size_t i = 0; i <= nfs; ++i) {
    const std::size_t from = i == nfs ? kRxNode : i;
    if (random.chance(85)) {
      rows.push_back({from, "", behind(from), false});
    }
  }
  return rows;
}

/// Of each NF, whether all packets come to it on one way, and so in the order of rx.
std::vector<bool> is_on_one_way(std::vector<FuzzRow> const& rows, std::size_t nfs) {
  std::vector<bool> is_one(nfs);
  for (std::size_t nf = 0; nf < nfs; ++nf) {
    std::vector<std::size_t> from;
    for (FuzzRow const& row : rows) {
      if (row.to == nf) {
        from.push_back(row.from);
      }
    }
    is_one[nf] = from.size() == 1 && (from.front() == kRxNode || is_one[from.front()]);
  }
  return is_one;
}

/// Whether several shards give the bytes of one.
/// A NAT in shards gives other ports, a monitor writes records in another order, where ICMP errors are limited each
/// shard has a part of the limit, and the flows of an LB end by the time of its shard's packets, which goes back at
/// other places.
bool can_be_divided(FuzzChain const& chain) {
  if (!chain.rows.empty()) {
    return std::ranges::all_of(chain.nfs, processes_by_packet);
  }
  return std::none_of(chain.nfs.begin(), chain.nfs.end(), [](FuzzNf const& nf) {
    const auto says = [&nf](std::string_view text) { return nf.config.find(text) != std::string::npos; };
    return nf.type == "nat" || nf.type == "lb" || (nf.type == "monitor" && says(kFlows)) ||
           (nf.type == "router" && says("address:")) || (nf.type == "ipsec" && says("mtu:") && !says("mtu: 2034"));
  });
}

void choose_sync(Random& random, bool grows, Variant& variant) {
  const std::uint32_t mode = random.below(grows ? 8 : 10);
  variant.sync.mode = mode < 3 ? plan::Mode::kCopy : mode < 5 ? plan::Mode::kShared : plan::Mode::kAdaptive;
  variant.sync.pushdown = random.chance(70);
  variant.sync_options =
      concat("--sync ", plan::to_string(variant.sync.mode), variant.sync.pushdown ? "" : " --pushdown off");
  if (random.chance(20)) {
    const TransferMethod method = random.pick(kTransferMethods);
    variant.sync.methods = plan::method_bit(method);
    variant.sync_options += concat(" --methods ", to_string(method));
  }
  if (random.chance(75)) {
    variant.sync.profile = random_costs(random, grows);  // few programs, and so more cases, where chains are alike
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
  for (FuzzNf& nf : chain.nfs) {
    nf.more = make_unseen(random, ", ", "");
  }
  give_keys(chain.nfs);
  chain.spec = make_unseen(random, "  ", "\n");
  return chain;
}

FuzzChain make_graph(Random& random) {
  for (;;) {
    FuzzChain chain;
    const std::uint32_t nfs = random.between(2, 7);
    chain.rows = make_rows(random, nfs);
    const std::vector<bool> is_one_way = is_on_one_way(chain.rows, nfs);
    for (std::size_t nf = 0; nf < nfs; ++nf) {
      FuzzNf made = make_nf(random);
      while (!is_one_way[nf] && !processes_by_packet(made)) {
        made = make_nf(random);
      }
      made.more = make_unseen(random, ", ", "");
      chain.nfs.push_back(std::move(made));
    }
    give_keys(chain.nfs);
    chain.spec = concat("  unmatched: ", random.chance(70) ? "drop" : "tx", "\n");
    std::string text = chain_text(chain, {}, "none");
    constexpr std::string_view kRx = "pcap: in.pcap";  // which is not there yet
    text.replace(text.find(kRx), kRx.size(), "generator: {}");
    if (chain::parse_chain(text, "chain.yaml").ok()) {
      return chain;
    }
  }
}

FuzzChain make_growing_chain(Random& random) {
  FuzzChain chain;
  // in UDP they take the most, and leave less in front of the packet than the kernels ask for
  const std::string associations = random.chance(60) ? "udp-all.yaml" : random.pick(kAssociations);
  chain.growing_nfs = random.chance(70) ? 2 : 1;
  for (std::uint32_t i = 0; i < chain.growing_nfs; ++i) {
    chain.nfs.push_back(make_encrypt(associations));
  }
  for (std::uint32_t i = random.between(1, 2); i > 0; --i) {
    const std::uint32_t kind = random.below(10);
    chain.nfs.push_back(kind < 5   ? make_decrypt(random, associations)
                        : kind < 7 ? make_encrypt(associations)
                        : kind < 9 ? make_nids(random)
                                   : make_nf(random));
  }
  give_keys(chain.nfs);
  return chain;
}

FuzzChain make_tunnels(Random& random, std::uint32_t tunnels) {
  FuzzChain chain;
  const std::string associations = random.pick(kAssociations);
  for (std::uint32_t i = 0; i < tunnels; ++i) {
    chain.nfs.push_back(make_encrypt(associations));
    chain.nfs.back().more = ", on_unsupported: pass";
  }
  give_keys_inwards(chain.nfs);
  return chain;
}

Variant make_variant(Random& random, FuzzChain const& chain, Variant const* like) {
  Variant variant;
  if (like != nullptr) {
    variant = *like;
  } else {
    const std::uint32_t all = (1U << chain.nfs.size()) - 1;
    const std::uint32_t grown = all & ~((1U << chain.growing_nfs) - 1);
    if (chain.growing_nfs > 0 && random.chance(75)) {
      variant.gpu_mask = grown;
    }
    while (variant.gpu_mask == 0) {
      variant.gpu_mask = all & static_cast<std::uint32_t>(random.chance(40) ? ~0U : random.bits());
    }
    choose_sync(random, chain.growing_nfs > 0, variant);
  }
  variant.tuning = random_tuning(random, chain.growing_nfs > 0);
  variant.workers = random.chance(60) ? 1 : random.between(2, 4);
  variant.shards = can_be_divided(chain) && random.chance(40) ? random.between(2, 6) : 1;
  if (!chain.rows.empty()) {  // there must be slots for copies, in each shard
    variant.tuning.pool_slots = 16384;
    variant.tuning.unit_packets = std::min(variant.tuning.unit_packets, variant.shards > 1 ? 64U : 256U);
  }
  return variant;
}

Variant make_faulty(Random& random, Variant const& like) {
  constexpr std::array<std::uint32_t, 5> kUnits{4, 7, 16, 32, 64};
  Variant variant = like;
  variant.fault = make_fault(random);
  variant.tuning.unit_packets = random.pick(kUnits);
  variant.tuning.units_per_launch = random.between(1, 3);
  variant.tuning.pool_slots = 512;
  variant.tuning.device_limit_ms = variant.fault->kind == DeviceFault::Kind::kHangs ? 200 : 120'000;
  return variant;
}

std::string nf_name(FuzzChain const& chain, std::size_t nf) { return concat(chain.nfs[nf].type, nf); }

FuzzChain without_nf(FuzzChain chain, std::size_t nf) {
  chain.nfs.erase(chain.nfs.begin() + static_cast<std::ptrdiff_t>(nf));
  std::erase_if(chain.rows, [nf](FuzzRow const& row) { return row.from == nf; });
  for (FuzzRow& row : chain.rows) {
    if (row.to == nf) {
      row.to = kTxNode;
    }
    for (std::size_t* node : {&row.from, &row.to}) {
      *node -= *node > nf && *node < kDropNode ? 1 : 0;
    }
  }
  return chain;
}

std::string flows_file(std::size_t nf) { return concat("flows", nf, ".jsonl"); }

std::string chain_text(FuzzChain const& chain, Variant const& variant, std::string const& device) {
  std::string text = concat(
      "apiVersion: catena/v1\nkind: Chain\nmetadata: {name: fuzz}\nspec:\n  rx: {pcap: in.pcap}\n  tx: {pcap: "
      "out.pcap}\n"
      "  device: ",
      device, "\n", chain.spec, "  shards: ", variant.shards, "\n  tuning: ", to_yaml(variant.tuning), "\n",
      chain.nfs.empty() ? "  nfs: []\n" : "  nfs:\n");
  for (std::size_t i = 0; i < chain.nfs.size(); ++i) {
    FuzzNf const& nf = chain.nfs[i];
    std::string config = nf.config;
    if (const std::size_t at = config.find(kFlows); at != std::string::npos) {
      config.replace(at, kFlows.size(), flows_file(i));
    }
    text += concat("    - {name: ", nf_name(chain, i), ", type: ", nf.type,
                   ", on: ", (variant.gpu_mask >> i & 1U) != 0 ? "gpu" : "cpu", nf.more, ", config: {", config, "}}\n");
  }
  const auto name_of = [&chain](std::size_t node) {
    return node == kRxNode ? "rx" : node == kTxNode ? "tx" : node == kDropNode ? "drop" : nf_name(chain, node);
  };
  text += chain.rows.empty() ? "" : "  graph:\n";
  for (FuzzRow const& row : chain.rows) {
    text += concat("    - {from: ", name_of(row.from), ", ", row.conditions, row.conditions.empty() ? "" : ", ",
                   "to: ", row.is_mirror ? concat("{mirror: ", name_of(row.to), "}") : name_of(row.to), "}\n");
  }
  return text;
}

}  // namespace catena::fuzz
