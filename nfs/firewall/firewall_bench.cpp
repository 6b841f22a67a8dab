// SPDX-License-Identifier: Apache-2.0
// The firewall's CPU implementation against rte_acl called directly, on the same packets, rules and memory layout, and
// the time to load rules.
//   items_per_second of firewall_nf/R/N divided by that of rte_acl_alone/R/N is what the framework leaves of the
//   library's speed. R: rules, all of which allow, so that no packet leaves the pool. N: packets in the pool, visited
//   in batches of 256: 256 stay in the caches, 65536 are a whole packet pool.
#include "firewall.hpp"

#include <benchmark/benchmark.h>
#include <rte_acl.h>
#include <rte_memory.h>
#include <unistd.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/bench.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/packet/headers.hpp>

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "functions/classify/rule_generator.hpp"
#include "io/eal/eal.hpp"

namespace {

using catena::concat;
namespace nf = catena::nf;
namespace packet = catena::packet;

constexpr std::uint32_t kBatch = 256;
constexpr std::string_view kConfig = "default: allow, classbench_action: allow";

/// Generated rules as a file, and packets with ports near their borders.
class Workload {
 public:
  explicit Workload(std::uint32_t rules)
      : generator_(rules),
        path_(std::filesystem::temp_directory_path() / concat("catena_bench_", ::getpid(), ".rules")) {
    std::string text = generator_.text();
    for (std::size_t at = text.find("deny"); at != std::string::npos; at = text.find("deny", at)) {
      text.replace(at, 4, "allow");
    }
    std::ofstream(path_) << text;
  }
  ~Workload() { std::filesystem::remove(path_); }
  Workload(Workload const&) = delete;
  Workload& operator=(Workload const&) = delete;

  std::string const& path() const { return path_; }

  std::unique_ptr<nf::Nf> make_firewall() const {
    return nf::testing::value_or_throw(
        nf::testing::make_nf(catena_nf_firewall(), concat("{rules: ", path_, ", ", kConfig, "}")));
  }

  std::vector<nf::testing::Frame> frames(std::size_t count) {
    std::vector<nf::testing::Frame> result;
    while (result.size() < count) {
      if (const catena::classify::testing::Tuple tuple = generator_.tuple(); tuple.has_ports) {
        result.push_back(nf::testing::make_frame(
            static_cast<std::uint8_t>(tuple.protocol), tuple.src, tuple.dst, static_cast<std::uint16_t>(tuple.sport),
            static_cast<std::uint16_t>(tuple.dport), tuple.protocol == packet::kProtocolTcp ? "012345" : "0123456789"));
      }
    }
    return result;
  }

 private:
  catena::classify::testing::RuleGenerator generator_;
  std::string path_;
};

/// Runs `decide` over the pool batch by batch, as often as the benchmark wants.
template <typename Decide>
void visit(benchmark::State& state, nf::testing::PacketStore& store, Decide decide) {
  std::size_t first = 0;
  for (auto _ : state) {
    decide(store.batch(first, kBatch));
    first = (first + kBatch) % store.size();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kBatch);
}

void firewall_nf(benchmark::State& state) {
  Workload workload(static_cast<std::uint32_t>(state.range(0)));
  nf::testing::PacketStore store(workload.frames(static_cast<std::size_t>(state.range(1))));
  nf::testing::CpuNf runner(catena_nf_firewall(), workload.make_firewall());
  visit(state, store, [&](packet::Batch const& batch) { runner.process(batch); });
  if (runner.drops() > 0) {
    state.SkipWithError("packets were dropped");
  }
}

/// A hand-written filter as DPDK's examples are: headers at fixed offsets, keys of one batch, one look-up, verdicts.
class DirectFilter {
 public:
  explicit DirectFilter(std::string const& path) {
    const auto file = catena::classify::load_rules(path, catena::classify::Action::kAllow);
    RTE_ACL_RULE_DEF(Rule, 5);
    std::vector<Rule> rules;
    verdicts_.push_back(packet::Verdict::kPass);
    for (catena::classify::Rule const& rule : file->rules) {
      Rule next{};
      next.data = {1, static_cast<std::int32_t>(catena::classify::kMaxRules - rules.size()),
                   static_cast<std::uint32_t>(rules.size() + 1)};
      next.field[0].value.u8 = rule.protocol;
      next.field[0].mask_range.u8 = rule.protocol_mask;
      next.field[1].value.u32 = rule.src.address;
      next.field[1].mask_range.u32 = rule.src.length;
      next.field[2].value.u32 = rule.dst.address;
      next.field[2].mask_range.u32 = rule.dst.length;
      next.field[3].value.u16 = rule.sport.first;
      next.field[3].mask_range.u16 = rule.sport.last;
      next.field[4].value.u16 = rule.dport.first;
      next.field[4].mask_range.u16 = rule.dport.last;
      rules.push_back(next);
      verdicts_.push_back(rule.action == catena::classify::Action::kAllow ? packet::Verdict::kPass
                                                                          : packet::Verdict::kDrop);
    }
    const rte_acl_param parameters{"bench", SOCKET_ID_ANY, RTE_ACL_RULE_SZ(5),
                                   static_cast<std::uint32_t>(rules.size())};
    acl_ = rte_acl_create(&parameters);
    rte_acl_add_rules(acl_, reinterpret_cast<const rte_acl_rule*>(rules.data()),
                      static_cast<std::uint32_t>(rules.size()));
    rte_acl_config config{};
    config.num_categories = 1;
    config.num_fields = 5;
    config.max_size = rules.size() <= 1000 ? std::size_t{64} << 20 : 0;  // as the firewall builds it
    config.defs[0] = {RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, offsetof(Key, protocol)};
    config.defs[1] = {RTE_ACL_FIELD_TYPE_MASK, 4, 1, 1, offsetof(Key, addresses)};
    config.defs[2] = {RTE_ACL_FIELD_TYPE_MASK, 4, 2, 2, offsetof(Key, addresses) + 4};
    config.defs[3] = {RTE_ACL_FIELD_TYPE_RANGE, 2, 3, 3, offsetof(Key, ports)};
    config.defs[4] = {RTE_ACL_FIELD_TYPE_RANGE, 2, 4, 3, offsetof(Key, ports) + 2};
    if (rte_acl_build(acl_, &config) != 0) {
      throw std::runtime_error("rte_acl does not take the rules");
    }
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      pointers_[i] = &keys_[i].protocol;
    }
  }
  ~DirectFilter() { rte_acl_free(acl_); }
  DirectFilter(DirectFilter const&) = delete;
  DirectFilter& operator=(DirectFilter const&) = delete;

  void decide(std::uint8_t* const* packets, std::uint8_t* verdicts) {
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      const std::uint8_t* ip = packets[i] + packet::kEthernetBytes;
      keys_[i].protocol = ip[9];
      std::memcpy(keys_[i].addresses, ip + 12, sizeof keys_[i].addresses);
      std::memcpy(keys_[i].ports, ip + 20, sizeof keys_[i].ports);
    }
    rte_acl_classify(acl_, pointers_.data(), matches_.data(), kBatch, 1);
    for (std::uint32_t i = 0; i < kBatch; ++i) {
      verdicts[i] = static_cast<std::uint8_t>(verdicts_[matches_[i]]);
    }
  }

 private:
  struct Key {
    std::uint8_t protocol;
    std::uint8_t unused[3];
    std::uint8_t addresses[8];
    std::uint8_t ports[4];
  };

  rte_acl_ctx* acl_;
  std::vector<packet::Verdict> verdicts_;
  std::array<Key, kBatch> keys_{};
  std::array<const std::uint8_t*, kBatch> pointers_{};
  std::array<std::uint32_t, kBatch> matches_{};
};

void rte_acl_alone(benchmark::State& state) {
  Workload workload(static_cast<std::uint32_t>(state.range(0)));
  nf::testing::PacketStore store(workload.frames(static_cast<std::size_t>(state.range(1))));
  DirectFilter filter(workload.path());
  std::vector<std::uint8_t*> packets;
  for (std::uint32_t i = 0; i < store.size(); ++i) {
    packets.push_back(store.all()[i].frame());
  }
  visit(state, store, [&](packet::Batch const& batch) {
    const std::uint32_t first = batch.slots()[0];
    filter.decide(packets.data() + first, batch.meta().verdict + first);
  });
}

const std::vector<std::vector<std::int64_t>> kSizes{{16, 188, 1000, 10000}, {kBatch, 65536}};
BENCHMARK(rte_acl_alone)->ArgsProduct(kSizes);
BENCHMARK(firewall_nf)->ArgsProduct(kSizes);

/// What a chain waits for at start: file and rte_acl.
void load_cpu(benchmark::State& state) {
  const Workload workload(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) {
    workload.make_firewall();
  }
}
/// The kernel's tables.
void load_kernel(benchmark::State& state) {
  const Workload workload(static_cast<std::uint32_t>(state.range(0)));
  const auto nf = workload.make_firewall();
  for (auto _ : state) {
    benchmark::DoNotOptimize(nf->kernel_side());
  }
}
BENCHMARK(load_cpu)->Arg(188)->Arg(catena::classify::kMaxRules)->Unit(benchmark::kMillisecond)->Iterations(3);
BENCHMARK(load_kernel)->Arg(188)->Arg(catena::classify::kMaxRules)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace

int main(int argc, char** argv) { return catena::nf::testing::run_benchmarks(argc, argv, catena::eal::start()); }
