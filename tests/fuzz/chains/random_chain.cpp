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
  constexpr std::array<TransferMethod, 3> kMethods{TransferMethod::kStaged, TransferMethod::kStrided,
                                                   TransferMethod::kGather};
  chain::CostProfile profile = chain::CostProfile::built_in();
  plan::CostModel& costs = profile.costs;
  if (one_method || random.chance(60)) {
    const TransferMethod method = random.pick(kMethods);
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

/// Whether several shards give the bytes of one.
/// A NAT in shards gives other ports, a monitor writes records in another order, where ICMP errors are limited each
/// shard has a part of the limit, and the flows of an LB end by the time of its shard's packets, which goes back at
/// other places.
bool can_be_divided(FuzzChain const& chain) {
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
    constexpr std::array<std::string_view, 3> kMethods{"staged", "strided", "gather"};
    const std::string_view methods = kMethods[random.below(kMethods.size())];
    variant.sync.methods = *chain::parse_methods_option(methods);
    variant.sync_options += concat(" --methods ", methods);
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
  chain.spec = make_unseen(random, "  ", "\n");
  return chain;
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
  return chain;
}

FuzzChain make_tunnels(Random& random, std::uint32_t tunnels) {
  FuzzChain chain;
  const std::string associations = random.pick(kAssociations);
  for (std::uint32_t i = 0; i < tunnels; ++i) {
    chain.nfs.push_back(make_encrypt(associations));
    chain.nfs.back().more = ", on_unsupported: pass";
  }
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
    text += concat("    - {name: ", nf.type, i, ", type: ", nf.type,
                   ", on: ", (variant.gpu_mask >> i & 1U) != 0 ? "gpu" : "cpu", nf.more, ", config: {", config, "}}\n");
  }
  return text;
}

}  // namespace catena::fuzz
