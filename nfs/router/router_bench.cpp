// SPDX-License-Identifier: Apache-2.0
// The router's CPU implementation against rte_fib called directly, on the same packets, routes and memory layout, doing
// the same rewriting; and the time to load a route table.
//   items_per_second of router_nf/N divided by that of rte_fib_alone/N is what the framework leaves of the library's
//   speed. N: packets in the pool, visited in batches of 256. 256 stay in the caches, 65536 are a whole packet pool.
#include "router.hpp"

#include <benchmark/benchmark.h>
#include <rte_fib.h>
#include <rte_memory.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/bench.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/nf/text_file.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/testing/frames.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "functions/lpm/dir24_8.hpp"
#include "io/eal/eal.hpp"

namespace {

using catena::concat;
namespace nf = catena::nf;
namespace packet = catena::packet;

constexpr std::uint32_t kBatch = 256;
constexpr std::uint32_t kPorts = 64;
constexpr std::uint8_t kFirstTtl = 255;
constexpr std::uint32_t kPassesPerTtl = 250;

/// A routes file of the Internet table where the shared test data is there, else of 200,000 random prefixes; with the
/// port of each line assigned as line number mod kPorts.
class RouteFile {
 public:
  RouteFile() : path_(std::filesystem::temp_directory_path() / concat("catena_bench_routes_", ::getpid(), ".txt")) {
    std::ofstream file(path_);
    const std::string data = catena::shared_data();
    if (!data.empty()) {
      label_ = "Internet table";
      std::FILE* unzip = ::popen(concat("gzip -dc '", data, "/routes/tier1_ipv4_901899.txt.gz'").c_str(), "r");
      char prefix[64];
      while (std::fscanf(unzip, "%63s", prefix) == 1) {
        file << prefix << ' ' << ++count_ % kPorts << '\n';
      }
      ::pclose(unzip);
      return;
    }
    label_ = "random prefixes";
    for (std::uint32_t network = 0; count_ < 200000; network += 83) {
      file << to_string(packet::Ipv4Prefix{network << 8, 24}) << ' ' << ++count_ % kPorts << '\n';
    }
  }
  ~RouteFile() { std::filesystem::remove(path_); }

  std::string const& path() const { return path_; }
  std::string label() const { return concat(count_, " prefixes, ", label_); }

 private:
  std::string path_;
  std::string label_;
  std::size_t count_ = 0;
};
RouteFile const& route_file() {
  static const RouteFile kFile;
  return kFile;
}

/// Whether packets to it are routed: those to this network, the machine itself, groups and reserved ones are not.
bool is_routed(std::uint32_t address) {
  const std::uint32_t network = address >> 24U;
  return network != 0 && network != 127 && network < 224;
}

/// UDP packets to addresses that some route matches.
std::vector<nf::testing::Frame> frames(std::size_t count) {
  const auto routes = catena::lpm::load_routes(route_file().path());
  std::mt19937 random(1);
  std::vector<nf::testing::Frame> result;
  while (result.size() < count) {
    if (const std::uint32_t address = (*routes)[random() % routes->size()].address; is_routed(address)) {
      result.push_back(
          nf::testing::make_frame(packet::kProtocolUdp, 0xC0A80001, address, 1, 2, "0123456789abcdef01", kFirstTtl));
    }
  }
  return result;
}

/// The pool of `count` packets: the same memory for every benchmark, because which cache sets it falls into decides
/// more than what is measured.
nf::testing::PacketStore& pool(std::int64_t count) {
  static std::map<std::int64_t, nf::testing::PacketStore> pools;
  return pools.try_emplace(count, frames(static_cast<std::size_t>(count))).first->second;
}

std::unique_ptr<nf::Nf> make_router() {
  return nf::testing::value_or_throw(nf::testing::make_nf(catena_nf_router(), concat("routes: ", route_file().path())));
}

/// Runs `decide` over the pool batch by batch, as often as the benchmark wants; packets get a fresh TTL, unmeasured,
/// before they run out of it.
template <typename Decide>
void visit(benchmark::State& state, nf::testing::PacketStore& store, Decide decide) {
  const auto refresh = [&store] {
    for (std::uint32_t i = 0; i < store.size(); ++i) {
      std::uint8_t* header = store.all()[i].l3();
      header[8] = kFirstTtl;
      packet::store_be16(header + 10, 0);
      packet::store_be16(header + 10, nf::testing::internet_checksum({header, 20}));
    }
  };
  refresh();
  std::size_t first = 0;
  std::uint32_t passes = 0;
  for (auto _ : state) {
    decide(store.batch(first, kBatch));
    first += kBatch;
    if (first == store.size()) {
      first = 0;
      if (++passes == kPassesPerTtl) {
        state.PauseTiming();
        passes = 0;
        refresh();
        state.ResumeTiming();
      }
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kBatch);
  state.SetLabel(route_file().label());
}

void router_nf(benchmark::State& state) {
  nf::testing::PacketStore& store = pool(state.range(0));
  nf::testing::CpuNf runner(catena_nf_router(), make_router());
  visit(state, store, [&](packet::Batch const& batch) { runner.process(batch); });
  if (runner.drops() > 0) {
    state.SkipWithError("packets were dropped");
  }
}

/// A hand-written forwarder as DPDK's examples are: bursts of 32, headers at fixed offsets, next hop = port.
class DirectForwarder {
 public:
  static constexpr std::uint32_t kBurst = 32;

  DirectForwarder() {
    const auto routes = catena::lpm::load_routes(route_file().path());
    rte_fib_conf config{};
    config.type = RTE_FIB_DIR24_8;
    config.default_nh = kPorts;
    config.max_routes = static_cast<int>(routes->size());
    config.dir24_8.nh_sz = RTE_FIB_DIR24_8_2B;
    config.dir24_8.num_tbl8 = static_cast<std::uint32_t>(std::max<std::size_t>(1, catena::lpm::count_groups(*routes)));
    fib_ = rte_fib_create("bench", SOCKET_ID_ANY, &config);
    for (catena::lpm::Route const& route : *routes) {
      rte_fib_add(fib_, route.address, route.length, route.port);
    }
  }
  ~DirectForwarder() { rte_fib_free(fib_); }

  void forward(std::uint8_t** packets, std::uint16_t* ports, std::uint8_t* verdicts) const {
    std::uint32_t addresses[kBurst];
    std::uint64_t hops[kBurst];
    for (std::uint32_t i = 0; i < kBurst; ++i) {
      addresses[i] = packet::load_be32(packets[i] + 30);
    }
    rte_fib_lookup_bulk(fib_, addresses, hops, kBurst);
    for (std::uint32_t i = 0; i < kBurst; ++i) {
      std::uint8_t* ip = packets[i] + 14;
      if (ip[8] <= 1 || hops[i] == kPorts) {
        verdicts[i] = static_cast<std::uint8_t>(packet::Verdict::kDrop);
        continue;
      }
      --ip[8];
      packet::store_be16(ip + 10, packet::checksum_update(packet::load_be16(ip + 10), 0x0100, 0));
      ports[i] = static_cast<std::uint16_t>(hops[i]);
    }
  }

 private:
  rte_fib* fib_;
};

void rte_fib_alone(benchmark::State& state) {
  nf::testing::PacketStore& store = pool(state.range(0));
  const DirectForwarder forwarder;
  std::vector<std::uint8_t*> packets;
  for (std::uint32_t i = 0; i < store.size(); ++i) {
    packets.push_back(store.all()[i].frame());
  }
  visit(state, store, [&](packet::Batch const& batch) {
    const std::uint32_t first = batch.slots()[0];
    for (std::uint32_t i = first; i < first + kBatch; i += DirectForwarder::kBurst) {
      forwarder.forward(packets.data() + i, batch.meta().port + i, batch.meta().verdict + i);
    }
  });
}

BENCHMARK(rte_fib_alone)->Arg(kBatch)->Arg(65536);
BENCHMARK(router_nf)->Arg(kBatch)->Arg(65536);

/// What a chain waits for at start: file, next hops and rte_fib.
void load_cpu(benchmark::State& state) {
  state.SetLabel(route_file().label());
  for (auto _ : state) {
    make_router();
  }
}
/// The same and the kernel's tables.
void load_cpu_and_kernel(benchmark::State& state) {
  state.SetLabel(route_file().label());
  for (auto _ : state) {
    benchmark::DoNotOptimize(make_router()->kernel_side());
  }
}
BENCHMARK(load_cpu)->Unit(benchmark::kMillisecond)->Iterations(3);
BENCHMARK(load_cpu_and_kernel)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace

int main(int argc, char** argv) { return catena::nf::testing::run_benchmarks(argc, argv, catena::eal::start()); }
