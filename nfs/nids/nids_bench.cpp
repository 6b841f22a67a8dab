// SPDX-License-Identifier: Apache-2.0
// The NIDS's CPU implementation against Hyperscan called directly, on the same payloads with the same literals. Both
// collect all matches of a packet; the NF also decides the rules and the packet's verdict.
//   bytes_per_second of Nids/<set> divided by that of Hyperscan/<set> is what the framework leaves of the library's
//   speed.
// Sets: "strings" 5,000 host names, "et150" rules of Emerging Threats, "office" the rules of the example. The first two
// and their capture lie beside the checkout; without them only the example runs.
#include "evaluator.hpp"

#include <benchmark/benchmark.h>
#include <hs.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/bench.hpp>
#include <catena/nf/testing/harness.hpp>
#include <catena/nf/testing/packet_store.hpp>
#include <catena/nf/text_file.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "functions/match/rule_parser.hpp"
#include "nids.hpp"

namespace {

using catena::concat;
namespace nf = catena::nf;
namespace nids = catena::nids;
namespace packet = catena::packet;

constexpr std::size_t kBatch = 256;
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

/// What one pair of benchmarks works on.
struct Case {
  std::string name;
  std::string config;
  std::string capture;
};

/// The IPv4 frames of the capture, as many as whole batches take.
catena::Result<std::unique_ptr<nf::testing::PacketStore>> load(std::string const& capture) {
  CATENA_ASSIGN_OR_RETURN(std::vector<nf::testing::Frame> frames, nf::testing::read_capture(capture));
  std::erase_if(frames, [](auto const& frame) {
    return (packet::parse(frame.data(), static_cast<std::uint32_t>(frame.size())).flags & packet::kIpv4) == 0;
  });
  frames.resize(frames.size() / kBatch * kBatch);
  return std::make_unique<nf::testing::PacketStore>(frames);
}

std::size_t payload_bytes(packet::Batch const& batch) {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    bytes += batch[i].payload().size();
  }
  return bytes;
}

/// Calls `decide` for one batch after the other, over and over.
template <typename Decide>
void visit(benchmark::State& state, nf::testing::PacketStore& store, Decide decide) {
  std::vector<packet::Batch> batches;
  std::vector<std::size_t> bytes;
  for (std::size_t first = 0; first < store.size(); first += kBatch) {
    batches.push_back(store.batch(first, kBatch));
    bytes.push_back(payload_bytes(batches.back()));
  }
  std::size_t next = 0;
  std::size_t total = 0;
  for (auto _ : state) {
    decide(batches[next]);
    total += bytes[next];
    next = next + 1 == batches.size() ? 0 : next + 1;
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(total));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kBatch));
}

catena::Status run_nf(benchmark::State& state, Case const& what) {
  CATENA_ASSIGN_OR_RETURN(const auto store, load(what.capture));
  CATENA_ASSIGN_OR_RETURN(auto made, nf::testing::make_nf(catena_nf_nids(), what.config));
  nf::testing::CpuNf runner(catena_nf_nids(), std::move(made));
  visit(state, *store, [&](packet::Batch const& batch) {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      batch[i].set_verdict(packet::Verdict::kPass);  // what was dropped in the last round is inspected again
    }
    runner.process(batch);
  });
  state.counters["alerts"] =
      benchmark::Counter(static_cast<double>(runner.alerts()), benchmark::Counter::kAvgIterations);
  return absl::OkStatus();
}

/// The literals of the case, as the NF finds them in its file.
catena::Result<std::vector<catena::match::Pattern>> patterns_of(Case const& what) {
  const std::string path = what.config.substr(what.config.find(": ") + 2);
  CATENA_ASSIGN_OR_RETURN(const std::string text, nf::read_text_file(path, kMaxFileBytes));
  catena::match::PatternSet patterns;
  if (what.config.starts_with("strings")) {
    CATENA_RETURN_IF_ERROR(catena::match::StringList::parse(text, path, false, patterns).status());
  } else {
    nids::Evaluator(catena::match::parse_rules(text, path, {}).rules, patterns);
  }
  return patterns.patterns();
}

using Match = std::pair<unsigned, unsigned long long>;

int on_match(unsigned pattern, unsigned long long, unsigned long long end, unsigned, void* matches) {
  static_cast<std::vector<Match>*>(matches)->emplace_back(pattern, end);
  return 0;
}

catena::Status run_library(benchmark::State& state, Case const& what) {
  CATENA_ASSIGN_OR_RETURN(const auto store, load(what.capture));
  CATENA_ASSIGN_OR_RETURN(const std::vector<catena::match::Pattern> patterns, patterns_of(what));
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  std::vector<unsigned> flags;
  std::vector<unsigned> numbers;
  for (catena::match::Pattern const& pattern : patterns) {
    texts.push_back(pattern.bytes.data());
    lengths.push_back(pattern.bytes.size());
    flags.push_back(pattern.nocase ? HS_FLAG_CASELESS : 0);
    numbers.push_back(static_cast<unsigned>(numbers.size()));
  }
  hs_database_t* database = nullptr;
  hs_scratch_t* scratch = nullptr;
  hs_compile_error_t* problem = nullptr;
  if (hs_compile_lit_multi(texts.data(), flags.data(), numbers.data(), lengths.data(),
                           static_cast<unsigned>(patterns.size()), HS_MODE_BLOCK, nullptr, &database,
                           &problem) != HS_SUCCESS ||
      hs_alloc_scratch(database, &scratch) != HS_SUCCESS) {
    return absl::InternalError("Hyperscan refuses the patterns");
  }
  std::vector<Match> matches;
  visit(state, *store, [&](packet::Batch const& batch) {
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      const auto payload = batch[i].payload();
      matches.clear();
      hs_scan(database, reinterpret_cast<const char*>(payload.data()), static_cast<unsigned>(payload.size()), 0,
              scratch, on_match, &matches);
      benchmark::DoNotOptimize(matches.data());
    }
  });
  hs_free_scratch(scratch);
  hs_free_database(database);
  return absl::OkStatus();
}

/// A benchmark that says why it cannot run.
using Run = catena::Status (*)(benchmark::State&, Case const&);
void run_or_skip(benchmark::State& state, Run run, Case const& what) {
  if (const catena::Status status = run(state, what); !status.ok()) {
    state.SkipWithError(status.ToString().c_str());
  }
}

std::vector<Case> cases() {
  const std::string examples = concat(CATENA_SOURCE_DIR, "/examples/");
  std::vector<Case> all{
      {"office", concat("rules: ", examples, "branch-office/ids.rules"), concat(examples, "branch-office.pcap")}};
  if (const std::string data = catena::shared_data(); !data.empty()) {
    const std::string mixed = data + "/traces/mixed.pcap";
    all.push_back({"strings", concat("strings: ", data, "/nids/strings5000_opendns_top.txt"), mixed});
    all.push_back({"et150", concat("rules: ", data, "/nids/et150.rules"), mixed});
    all.push_back({"et150_perpacket", concat("rules: ", data, "/nids/et150_perpacket.rules"), mixed});
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  for (Case const& what : cases()) {
    benchmark::RegisterBenchmark(concat("Hyperscan/", what.name).c_str(), run_or_skip, run_library, what);
    benchmark::RegisterBenchmark(concat("Nids/", what.name).c_str(), run_or_skip, run_nf, what);
  }
  return catena::nf::testing::run_benchmarks(argc, argv);
}
