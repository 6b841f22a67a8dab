// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/headers.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <iterator>
#include <set>
#include <string>
#include <thread>

#include <catena/nf/testing/harness.hpp>
#include "bench/chains/chains.hpp"
#include "bench/chains/costs.hpp"
#include "bench/chains/filled_ahead.hpp"
#include "bench/chains/measure.hpp"
#include "bench/chains/reference.hpp"
#include "bench/chains/sample_sink.hpp"
#include "bench/chains/timeline.hpp"
#include "bench/common/data.hpp"
#include "bench/common/machine.hpp"
#include "bench/common/spread.hpp"
#include "bench/common/time_rows.hpp"
#include "bench/nca/run.hpp"
#include "bench/nca/times.hpp"
#include "bench/nca/traffic.hpp"
#include "gpu/device/subprocess.hpp"
#include "io/eal/eal.hpp"
#include "nf/registry.hpp"
#include "pipeline/session.hpp"

namespace catena::bench {
namespace {

using ::testing::HasSubstr;

// ---- samples

/// Sends `packets` packets in units of `unit_packets`; each frame's first byte is the low byte of its number.
std::vector<Sample> sampled(SampleSink& sink, std::uint64_t packets, std::uint32_t unit_packets) {
  EXPECT_TRUE(eal::start().ok());
  auto pool = memory::PacketPool::create(512);
  EXPECT_TRUE(pool.ok()) << pool.status();
  for (std::uint64_t first = 0; first < packets; first += unit_packets) {
    memory::Unit* unit = (*pool)->acquire_unit();
    const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(unit_packets, packets - first));
    EXPECT_TRUE((*pool)->acquire_slots(*unit, count));
    unit->count = count;
    for (std::uint32_t i = 0; i < count; ++i) {
      (*pool)->slot(unit->slots()[i])[packet::kSlotHeadroom] = static_cast<std::uint8_t>(first + i);
      (*pool)->set_arrived(unit->slots()[i], 60, first + i, 0);
      (*pool)->meta().verdict[unit->slots()[i]] =
          static_cast<std::uint8_t>((first + i) % 3 == 0 ? packet::Verdict::kDrop : packet::Verdict::kAlert);
    }
    EXPECT_TRUE(sink.send(**pool, *unit).ok());
    (*pool)->release_unit(unit);
  }
  EXPECT_EQ((*pool)->free_slots(), (*pool)->slots());
  return sink.samples();
}

TEST(SampleSink, keeps_the_first_sampled_runs_however_units_lie_and_counts_what_is_sent) {
  for (const std::uint32_t unit_packets : {1U, 100U, 255U, 256U}) {
    SampleSink sink(3, 2);
    const std::vector<Sample> samples = sampled(sink, 256 * 8, unit_packets);
    ASSERT_EQ(samples.size(), 512U);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::uint64_t number = i < 256 ? i : i + 512;  // runs 0 and 3
      ASSERT_EQ(samples[i].index, number);
      ASSERT_EQ(samples[i].verdict, number % 3 == 0 ? packet::Verdict::kDrop : packet::Verdict::kAlert);
      ASSERT_EQ(samples[i].bytes.size(), number % 3 == 0 ? 0U : 60U);
      if (number % 3 != 0) {
        ASSERT_EQ(samples[i].bytes.front(), number & 0xFFU);
      }
    }
    EXPECT_EQ(sink.sent(), 256U * 8 - 683U) << "2048 packets, every third one dropped";
  }
}

TEST(SampleCheck, names_the_first_difference) {
  const std::vector<Sample> expected{{5, packet::Verdict::kPass, 1, {1, 2, 3}}, {6, packet::Verdict::kPass, 1, {4}}};
  EXPECT_EQ(compare(expected, expected).compared, 2U);
  EXPECT_EQ(compare(expected, expected).different, 0U);
  EXPECT_EQ(compare({{6, packet::Verdict::kPass, 1, {4}}}, expected).different, 0U) << "a part of what is known";
  const auto difference = [&](Sample const& sample) {
    const SampleCheck check = compare({sample, expected[1]}, expected);
    EXPECT_EQ(check.different, 1U);
    return check.first_difference;
  };
  EXPECT_EQ(difference({5, packet::Verdict::kPass, 1, {1, 9, 3}}), "packet 5: byte 1, 3 bytes against 3");
  EXPECT_EQ(difference({5, packet::Verdict::kPass, 1, {1, 2}}), "packet 5: byte 2, 2 bytes against 3");
  EXPECT_EQ(difference({5, packet::Verdict::kPass, 2, {1, 2, 3}}), "packet 5: port 2 instead of 1");
  EXPECT_EQ(difference({5, packet::Verdict::kDrop, 1, {}}), "packet 5: verdict 2 instead of 0");
  EXPECT_EQ(difference({7, packet::Verdict::kPass, 1, {}}), "packet 7: there is nothing to compare it with");
}

// ---- references

/// A folder of the tests' own and the data of the benchmark.
class ReferenceTest : public ::testing::Test {
 protected:
  ReferenceTest() : folder_(*device::TemporaryFolder::create()), registry_(nf::builtin_nfs()) {
    workplace_ = {*find_data("", "chains", kPaperFiles), folder_.path(), &registry_};
  }

  /// What comes out of a chain on the CPU that a replay feeds with everything up to the end of `run`.
  std::vector<Sample> whole_run(PaperChain const& chain, std::uint32_t frame_bytes, std::uint64_t run) {
    ChainText text;
    text.frame_bytes = frame_bytes;
    text.sa_file = *write_sa(workplace_.data, workplace_.folder, spi_of(0), 1);
    auto config = chain::parse_chain(chain_text(chain, text), (workplace_.data / "test.yaml").string());
    EXPECT_TRUE(config.ok()) << config.status();
    config->rx.as<io::ReplayConfig>().count = (run + 1) * io::kReplaySampleRun;
    config->rx.as<io::ReplayConfig>().sample_every = static_cast<std::uint32_t>(run);
    auto sink = std::make_unique<SampleSink>(static_cast<std::uint32_t>(run), 2);
    SampleSink const& kept = *sink;
    runtime::RunOptions options;
    options.make_sink = [&sink]() -> Result<std::unique_ptr<io::Sink>> { return std::move(sink); };
    auto made = runtime::Session::create(*std::move(config), options, registry_);
    EXPECT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE((*made)->run().ok());
    EXPECT_EQ((*made)->report().dropped(), 0U) << chain.name;
    return kept.samples();
  }

  device::TemporaryFolder folder_;
  nf::Registry registry_;
  Workplace workplace_;
};

TEST_F(ReferenceTest, is_what_a_run_from_the_start_gives) {
  constexpr std::uint64_t kRun = 70;  // more packets than the pool has slots, so that payloads are left over
  for (PaperChain const& chain : paper_chains()) {
    if (chain.esp_input) {
      continue;
    }
    const auto frames = clear_frames(252, workplace_);
    ASSERT_TRUE(frames.ok()) << frames.status();
    ASSERT_EQ(frames->size(), kFlows);
    std::vector<Sample> expected;
    for (const std::uint64_t run : {std::uint64_t{0}, kRun}) {
      auto samples = reference_run(chain, *frames, true, run, workplace_);
      ASSERT_TRUE(samples.ok()) << samples.status();
      ASSERT_EQ(samples->size(), io::kReplaySampleRun);
      EXPECT_EQ(samples->front().index, run * io::kReplaySampleRun);
      std::move(samples->begin(), samples->end(), std::back_inserter(expected));
    }
    const std::vector<Sample> whole = whole_run(chain, 252, kRun);
    EXPECT_EQ(whole.size(), 2 * io::kReplaySampleRun);
    const SampleCheck check = compare(whole, expected);
    EXPECT_EQ(check.compared, 2 * io::kReplaySampleRun);
    EXPECT_EQ(check.first_difference, "") << chain.name;
  }
}

/// Of the frames of busy_frames().
bool holds_a_string(std::uint64_t flow) { return flow % kServiceEvery != 0 && flow % kMatchEvery == 1; }

TEST_F(ReferenceTest, the_load_balancer_and_the_nids_have_something_to_do_at_every_size) {
  for (const std::uint32_t bytes : {60U, 124U, 1514U}) {
    const auto busy = busy_frames(bytes, workplace_);
    const auto esp = esp_frames(bytes, 0, workplace_);
    ASSERT_TRUE(busy.ok() && esp.ok());
    const auto out = reference_run(**find_chain("C3-decrypt"), *esp, false, 8, workplace_);
    ASSERT_TRUE(out.ok()) << out.status();
    ASSERT_EQ(out->size(), io::kReplaySampleRun);
    for (Sample const& sample : *out) {
      const std::uint64_t flow = sample.index % kFlows;
      EXPECT_EQ(sample.bytes != (*busy)[flow], flow % kServiceEvery == 0) << "rewritten to a backend";
      EXPECT_EQ(sample.verdict, holds_a_string(flow) ? packet::Verdict::kAlert : packet::Verdict::kPass) << flow;
    }
  }
}

TEST_F(ReferenceTest, esp_frames_decrypt_to_the_busy_ones) {
  const auto busy = busy_frames(508, workplace_);
  const auto esp = esp_frames(508, 0, workplace_);
  ASSERT_TRUE(busy.ok() && esp.ok());
  ASSERT_EQ(esp->size(), kFlows);
  std::set<std::uint32_t> sequence_numbers;
  for (Frame const& frame : *esp) {
    EXPECT_EQ(frame.size(), esp->front().size());
    EXPECT_EQ(frame[23], packet::kProtocolEsp);
    EXPECT_EQ(packet::load_be32(frame.data() + 34), spi_of(0));
    sequence_numbers.insert(packet::load_be32(frame.data() + 38));
  }
  EXPECT_EQ(sequence_numbers.size(), kFlows);
  const auto decrypted = reference_run(**find_chain("C1-decrypt"), *esp, false, 8, workplace_);
  ASSERT_TRUE(decrypted.ok()) << decrypted.status();
  ASSERT_EQ(decrypted->size(), io::kReplaySampleRun);
  for (Sample const& sample : *decrypted) {
    EXPECT_EQ(sample.bytes, (*busy)[sample.index % kFlows]);
    EXPECT_EQ(sample.verdict == packet::Verdict::kAlert, holds_a_string(sample.index % kFlows)) << sample.index;
  }
  const auto other = esp_frames(508, 1, workplace_);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(packet::load_be32(other->front().data() + 34), spi_of(1)) << "each copy has an association of its own";
}

TEST_F(ReferenceTest, no_traffic_of_the_chains_that_encrypt_is_dropped_or_raises_an_alert) {
  for (PaperChain const& chain : paper_chains()) {
    if (chain.esp_input) {
      continue;
    }
    const auto frames = clear_frames(1514, workplace_);
    ASSERT_TRUE(frames.ok()) << frames.status();
    const auto samples = reference_run(chain, *frames, true, 5, workplace_);
    ASSERT_TRUE(samples.ok()) << samples.status();
    EXPECT_TRUE(std::all_of(samples->begin(), samples->end(), [](Sample const& sample) {
      return sample.verdict == packet::Verdict::kPass && !sample.bytes.empty();
    })) << chain.name;
  }
}

TEST_F(ReferenceTest, a_run_is_timed_from_its_first_packet_on) {
  RunSpec spec;
  spec.chain = &empty_chain();
  spec.text.device = "none";
  spec.text.packets_per_s = 1000000;
  spec.replicas = 2;
  spec.seconds = 0.1;  // threads may need longer than that to begin
  for (int i = 0; i < 5; ++i) {
    const RunResult run = run_for(spec, workplace_);
    ASSERT_TRUE(run.status.ok()) << run.status;
    EXPECT_GT(run.sent, 0U);
    EXPECT_GT(run.latency.count(), 0U);
    EXPECT_GE(run.seconds, 0.075);
  }
  spec.chain = *find_chain("C4");
  spec.text.device = "no such device";
  EXPECT_FALSE(run_for(spec, workplace_).status.ok());
}

TEST_F(ReferenceTest, a_run_that_is_short_of_its_load_does_not_count) {
  RunSpec spec;
  spec.chain = &empty_chain();
  spec.seconds = 0.2;
  spec.text.packets_per_s = 1'000'000'000;  // what a chain file may say
  const RunResult over = run_for(spec, workplace_);
  ASSERT_TRUE(over.status.ok()) << over.status;
  EXPECT_LT(over.taken, 1 - kMaxOff);
  EXPECT_THAT(why_void(over), HasSubstr("% of what was offered"));
  EXPECT_GE(over.latency.percentile(50), 10'000'000U) << "who is due at the start and leaves at the end has waited";

  spec.text.packets_per_s = 10'000;
  const RunResult under = run_for(spec, workplace_);
  ASSERT_TRUE(under.status.ok()) << under.status;
  EXPECT_GT(under.taken, 0.5);

  RunResult run;
  EXPECT_EQ(why_void(run), "") << "nothing was offered";
  run.taken = 0.9905;
  EXPECT_EQ(why_void(run), "");
  run.taken = 0.985;
  EXPECT_EQ(why_void(run), "took 98.5 % of what was offered");
  run.taken = 1.02;
  EXPECT_EQ(why_void(run), "took 102.0 % of what was offered") << "it had fallen behind before";
}

/// `on: auto` finds no cost under a key that nothing was measured for, and leaves such an NF on the CPU.
TEST_F(ReferenceTest, costs_are_known_of_each_copy_of_a_chain) {
  constexpr std::uint32_t kCopies = 3;
  device::Device& device = *nf::testing::devices().front();
  PaperChain const& chain = **find_chain("C4");
  ChainText text;
  text.frame_bytes = 124;
  text.device = "opencl";
  const Result<profile::NfMeasurements> measured =
      measure_costs(chain, text, {128}, 0.5, chain::CostProfile::built_in(), device, workplace_, kCopies);
  ASSERT_TRUE(measured.ok()) << measured.status();
  for (std::uint32_t copy = 0; copy < kCopies; ++copy) {
    text.sa_file = *write_sa(workplace_.data, workplace_.folder, spi_of(copy), 1);
    const auto config = chain::parse_chain(chain_text(chain, text), (workplace_.data / "test.yaml").string());
    ASSERT_TRUE(config.ok()) << config.status();
    for (chain::NfConfig const& nf : config->nfs) {
      const Result<chain::NfKey> key = chain::key_of_unmade(nf, {});
      ASSERT_TRUE(key.ok()) << key.status();
      const auto is_of_it = [&key](auto const& one) { return one.key == *key; };
      EXPECT_TRUE(std::ranges::any_of(measured->on_cpu, is_of_it)) << "copy " << copy << ", " << nf.name;
      EXPECT_TRUE(nf.name == "rt" || std::ranges::any_of(measured->nfs, is_of_it))
          << "copy " << copy << ", " << nf.name;
    }
  }
}

/// By the system's clock of this process, seconds.
double processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

TEST_F(ReferenceTest, processors_that_a_run_takes_are_those_that_the_system_counts) {
  RunSpec spec;
  spec.chain = &empty_chain();
  spec.seconds = 0.4;
  const double before = processor_time();
  const RunResult run = run_for(spec, workplace_);
  const double taken = processor_time() - before;
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_LE(run.process_cores * run.seconds, taken + 0.02) << "the window is a part of it";
  EXPECT_GT(run.process_cores * run.seconds, 0.2 * taken) << "it is most of it";
  EXPECT_GT(run.cores, 0);
  EXPECT_LE(run.cores, 1.05 * run.workers) << "each stage is one thread's";
}

TEST(Machine, processor_seconds_are_those_of_the_processes_below_too) {
  const double before = processor_seconds();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setpgid(0, 0);
    (void)::fork();
    while (processor_time() < 0.3) {
    }
    ::pause();
    ::_exit(0);
  }
  // both have their processor time some day, however busy the machine is
  double taken = 0;
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
       taken < 0.6 && std::chrono::steady_clock::now() < end;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    taken = processor_seconds() - before;
  }
  ::kill(-child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_GE(taken, 0.6);
  EXPECT_LT(processor_seconds() - before, taken) << "of those that still run";
}

// ---- the source of frames that are right to the last byte

TEST(FilledAhead, gives_the_frames_in_turn_with_their_numbers) {
  std::vector<Frame> frames;
  for (std::uint8_t i = 0; i < 7; ++i) {
    frames.emplace_back(60 + 100 * i, static_cast<std::uint8_t>(i + 1));
  }
  ASSERT_TRUE(eal::start().ok());
  for (const std::uint32_t threads : {1U, 3U}) {
    constexpr std::uint64_t kCount = 10'000;
    auto pool = memory::PacketPool::create(2048);
    ASSERT_TRUE(pool.ok()) << pool.status();
    {
      auto source = make_filled_ahead(frames, threads, kCount);
      ASSERT_TRUE(source.ok()) << source.status();
      std::uint64_t next_index = 5;
      std::uint64_t number = 0;
      while (!(*source)->finished()) {
        memory::Unit* unit = (*pool)->acquire_unit();
        bool starved = false;
        ASSERT_TRUE((*source)->receive(**pool, *unit, next_index, starved).ok());
        const packet::Batch batch = (*pool)->batch(*unit);
        for (std::uint32_t i = 0; i < batch.size(); ++i, ++number) {
          Frame const& expected = frames[number % frames.size()];
          ASSERT_TRUE(
              std::equal(expected.begin(), expected.end(), batch[i].frame(), batch[i].frame() + batch[i].length()))
              << number;
          ASSERT_EQ((*pool)->meta().index[unit->slots()[i]], 5 + number);
        }
        (*pool)->release_slots(*unit, 0, unit->count);
        (*pool)->release_unit(unit);
      }
      EXPECT_EQ(number, kCount);
      EXPECT_EQ(next_index, 5 + kCount);
      EXPECT_EQ((*source)->seen(), kCount);
    }
    EXPECT_EQ((*pool)->free_slots(), (*pool)->slots());
  }
}

TEST(FilledAhead, gives_back_what_it_filled_in_vain) {
  ASSERT_TRUE(eal::start().ok());
  auto pool = memory::PacketPool::create(2048);
  ASSERT_TRUE(pool.ok()) << pool.status();
  {
    auto source = make_filled_ahead({Frame(60)}, 2, 0);
    ASSERT_TRUE(source.ok()) << source.status();
    memory::Unit* unit = (*pool)->acquire_unit();
    std::uint64_t next_index = 0;
    bool starved = false;
    while (unit->count == 0) {
      ASSERT_TRUE((*source)->receive(**pool, *unit, next_index, starved).ok());
    }
    EXPECT_FALSE((*source)->finished());
    (*pool)->release_slots(*unit, 0, unit->count);
    (*pool)->release_unit(unit);
    EXPECT_LT((*pool)->free_slots(), (*pool)->slots());
  }
  EXPECT_EQ((*pool)->free_slots(), (*pool)->slots());
  EXPECT_FALSE(make_filled_ahead({}, 1, 0).ok());
  EXPECT_FALSE(make_filled_ahead({Frame(60)}, 0, 0).ok());
  EXPECT_FALSE(make_filled_ahead({Frame()}, 1, 0).ok());
  EXPECT_FALSE(make_filled_ahead({Frame(2000)}, 1, 0).ok());
}

TEST(PaperChains, missing_data_and_unknown_names_are_errors_that_say_what_there_is) {
  EXPECT_THAT(std::string(find_data("/not/there", "chains", kPaperFiles).status().message()), HasSubstr("--data"));
  EXPECT_EQ(find_data("/not/there", "chains", kPaperFiles).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(find_chain("C6").status().message()),
              HasSubstr("C1, C2, C3, C4, C5, C1-decrypt, C3-decrypt"));
  EXPECT_EQ((*find_chain("C4"))->title(), "firewall(G) ipsec(G) nids(G) router(C)");
}

// ---- spreads and time lines

TEST(Spread, is_median_and_extremes) {
  EXPECT_EQ(spread_of({3, 1, 2}).median, 2);
  EXPECT_EQ(spread_of({4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(spread_of({3, 1, 2}).low, 1);
  EXPECT_EQ(spread_of({3, 1, 2}).high, 3);
  EXPECT_EQ(spread_of({}).median, 0);
  EXPECT_EQ(text_of({2, 1, 3}, 10), "20.00 (10.00 .. 30.00)");
}

TEST(Timeline, is_kinds_length_and_rows_of_boxes_in_a_file) {
  const std::vector<TimeRow> rows{{"ids", {{1, -10, 25}, {0, 50, 75}}}, {"idle", {}}};
  EXPECT_EQ(to_json(rows, {"fill", "kernel"}, 100),
            nlohmann::ordered_json::parse(R"({"kinds": ["fill", "kernel"], "length": 100.0, "rows": [
                {"name": "ids", "boxes": [[1, -10.0, 25.0], [0, 50.0, 75.0]]}, {"name": "idle", "boxes": []}]})"));
}

TEST(Timeline, shows_the_middle_of_a_run) {
  constexpr std::int64_t kMs = 1'000'000;
  // launches every millisecond, from 1 s on, for ten milliseconds: the middle is at 1 s and 5 ms
  trace::SpanLog ids;
  trace::SpanLog idle;
  for (std::uint32_t i = 0; i < 10; ++i) {
    const std::int64_t at = 1000 * kMs + i * kMs;
    const auto add = [&](const char* what, std::uint32_t track, std::int64_t begin_us, std::int64_t end_us) {
      ids.add({what, track, i, 64, at + begin_us * 1000, at + end_us * 1000});
    };
    add("fill", 0, 0, 100);
    add("submit", 0, 100, 200);
    add("deliver", 0, 700, 1000);
    add("to device", 1 + i % 2, 150, 250);
    add("kernel", 1 + i % 2, 250, 450);
    add("to host", 1 + i % 2, 450, 600);
  }
  const std::vector<runtime::StageTrace> stages{{"ids", &ids}, {"idle", &idle}};
  const std::vector<TimeRow> rows = timeline_rows(stages);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].name, "ids");
  EXPECT_EQ(rows[1].name, "ids device 1");
  EXPECT_EQ(rows[2].name, "ids device 2");
  const std::vector<std::string> kinds = timeline_kinds();
  // launch 5 begins at the middle
  ASSERT_EQ(rows[2].boxes.size(), 3U);
  EXPECT_EQ(kinds[rows[2].boxes[0].kind], "to device");
  EXPECT_DOUBLE_EQ(rows[2].boxes[0].begin, 500 + 150);
  EXPECT_DOUBLE_EQ(rows[2].boxes[0].end, 500 + 250);
  EXPECT_EQ(kinds[rows[2].boxes[1].kind], "kernel");
  EXPECT_EQ(kinds[rows[2].boxes[2].kind], "to host");
  EXPECT_DOUBLE_EQ(rows[2].boxes[2].end, 500 + 600);
  EXPECT_TRUE(timeline_rows({}).empty());
}

TEST(Timeline, shows_something_of_a_run_that_rests_in_its_middle) {
  trace::SpanLog log;
  log.add({"work", 0, 0, 1, 1'000'000'000, 1'000'010'000});
  log.add({"work", 0, 1, 1, 1'090'000'000, 1'090'010'000});
  const std::vector<TimeRow> rows = timeline_rows(std::vector<runtime::StageTrace>{{"rx", &log}});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].boxes.size(), 1U);
}

// ---- nca

std::string_view bytes_of(nca_packet const& packet) { return {static_cast<const char*>(packet.data), packet.length}; }

/// As nca.h says what a match is, by inspecting each place.
std::size_t occurrences(std::string_view packet, std::vector<std::string> const& strings) {
  std::size_t count = 0;
  for (std::string const& string : strings) {
    for (std::size_t at = packet.find(string); at != std::string_view::npos; at = packet.find(string, at + 1)) {
      ++count;
    }
  }
  return count;
}

TEST(NcaTraffic, as_many_packets_match_as_asked_for_and_every_occurrence_is_listed) {
  // one string is the end of another, one overlaps itself
  const std::vector<std::string> strings{"catena.example", "example", "aaaa", "www.aaaaa"};
  const auto hyperscan = Hyperscan::create(strings);
  ASSERT_TRUE(hyperscan.ok()) << hyperscan.status();
  for (const std::uint32_t percent : {0U, 35U, 100U}) {
    const auto traffic = make_traffic({1000, 0, percent}, strings, *hyperscan);
    ASSERT_TRUE(traffic.ok()) << traffic.status();
    ASSERT_EQ(traffic->packets.size(), 1000U);
    std::size_t matching = 0;
    for (std::size_t i = 0; i < 1000; ++i) {
      const std::size_t found = occurrences(bytes_of(traffic->packets[i]), strings);
      EXPECT_EQ(traffic->first[i + 1] - traffic->first[i], found) << i;
      EXPECT_EQ(traffic->packets[i].tag, i);
      matching += found > 0 ? 1 : 0;
    }
    EXPECT_EQ(matching, percent * 10);
    EXPECT_EQ(traffic->matches.size(), traffic->first.back());
  }
}

TEST(NcaTraffic, sizes_are_fixed_or_vary_around_583) {
  const std::vector<std::string> strings{"catena.example"};
  const auto hyperscan = Hyperscan::create(strings);
  ASSERT_TRUE(hyperscan.ok()) << hyperscan.status();
  const auto fixed = make_traffic({10, 1450, 0}, strings, *hyperscan);
  ASSERT_TRUE(fixed.ok()) << fixed.status();
  EXPECT_EQ(fixed->bytes.size(), 14500U);
  const auto variable = make_traffic({10'000, 0, 0}, strings, *hyperscan);
  ASSERT_TRUE(variable.ok()) << variable.status();
  std::set<std::uint32_t> lengths;
  for (nca_packet const& packet : variable->packets) {
    lengths.insert(packet.length);
  }
  EXPECT_EQ(*lengths.begin(), 64U);
  EXPECT_EQ(*lengths.rbegin(), 1102U);
  // the standard deviation of the mean is 3 bytes
  EXPECT_NEAR(static_cast<double>(variable->bytes.size()) / 10'000, 583, 12);
  EXPECT_THAT(make_traffic({10, 13, 50}, strings, *hyperscan).status().message(), HasSubstr("no string fits"));
}

TEST(NcaOverlap, copies_count_as_hidden_where_a_kernel_runs) {
  // kernels 20..60 and 70..90 of 100; copies 0..20, 30..40, 50..70, 90..95: of their 55, 10 and 10 are hidden
  const std::vector<nca_times> buffers{{0, 20, 60, 70}, {50, 70, 90, 95}, {30, 40, 40, 40}};
  const Overlap overlap = overlap_of(buffers, 0, 100);
  EXPECT_DOUBLE_EQ(overlap.copy, 0.55);
  EXPECT_DOUBLE_EQ(overlap.kernel, 0.60);
  EXPECT_DOUBLE_EQ(overlap.both, 0.20);
  EXPECT_DOUBLE_EQ(overlap.hidden(), 20.0 / 55);
  EXPECT_DOUBLE_EQ(overlap.kernel_hidden(), 20.0 / 60);
  // what lies outside of the time does not count: of 55 .. 65, copies take all and the kernel half
  const Overlap part = overlap_of(buffers, 55, 65);
  EXPECT_DOUBLE_EQ(part.copy, 1);
  EXPECT_DOUBLE_EQ(part.kernel, 0.5);
  EXPECT_DOUBLE_EQ(part.hidden(), 0.5);
  EXPECT_DOUBLE_EQ(overlap_of({}, 0, 100).hidden(), 0);
}

TEST(NcaTimeline, buffers_in_flight_at_one_time_get_rows_of_their_own) {
  const std::vector<nca_times> buffers{
      {1000, 3000, 7000, 8000}, {2000, 5000, 9000, 11'000}, {8000, 9000, 12'000, 13'000}};
  const auto [rows, length] = nca_timeline(buffers, 2000);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_DOUBLE_EQ(length, 12);
  ASSERT_EQ(rows[0].boxes.size(), 6U);
  ASSERT_EQ(rows[1].boxes.size(), 3U);
  EXPECT_DOUBLE_EQ(rows[0].boxes[1].begin, 2);
  EXPECT_DOUBLE_EQ(rows[0].boxes[1].end, 6);
  EXPECT_DOUBLE_EQ(rows[0].boxes[3].begin, 7);
  EXPECT_DOUBLE_EQ(rows[1].boxes[0].begin, 1);
  EXPECT_TRUE(nca_timeline({}, 0).first.empty());
}

TEST(NcaRun, matches_that_are_not_hyperscan_s_fail_the_run) {
  const std::vector<std::string> strings{"catena.example", "example"};
  const auto hyperscan = Hyperscan::create(strings);
  ASSERT_TRUE(hyperscan.ok()) << hyperscan.status();
  const auto good = make_traffic({512, 0, 35}, strings, *hyperscan);
  ASSERT_TRUE(good.ok()) << good.status();
  std::string text;
  const auto context = open_nca("cpu", text);
  ASSERT_TRUE(context.ok()) << context.status();
  const auto function = add_strings(**context, strings);
  ASSERT_TRUE(function.ok()) << function.status();
  NcaLoad load;
  load.traffic = &*good;
  load.buffer_packets = 128;
  load.streams = 2;
  load.threads = 2;
  load.seconds = 0.01;
  const auto speed = run_nca(**context, **function, load);
  ASSERT_TRUE(speed.ok()) << speed.status();
  EXPECT_GT(speed->bytes_per_s, 0);
  EXPECT_GE(speed->buffers, 6U);
  EXPECT_GT(speed->matches, 0U);
  EXPECT_TRUE(absl::IsFailedPrecondition(plain_kernel_bytes_per_s(**function, load).status()));

  Traffic other_place = *good;
  for (nca_match& match : other_place.matches) {
    ++match.end;
  }
  load.traffic = &other_place;
  EXPECT_THAT(run_nca(**context, **function, load).status().message(), HasSubstr("where Hyperscan finds ("));
  Traffic one_more = *good;
  for (std::size_t i = 0; i < one_more.first.size(); ++i) {
    one_more.first[i] += static_cast<std::uint32_t>(i);
  }
  load.traffic = &one_more;
  EXPECT_THAT(run_nca(**context, **function, load).status().message(), HasSubstr("matches where Hyperscan finds"));
}

}  // namespace
}  // namespace catena::bench
