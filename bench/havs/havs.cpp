// SPDX-License-Identifier: Apache-2.0
#include "bench/havs/havs.hpp"

#include "base/hostcopy/engine.hpp"
#include "bench/common/results.hpp"
#include "bench/havs/stack_run.hpp"
#include "io/eal/eal.hpp"
#include "profile/copy_measure.hpp"
#include "stack/copy/engine_table.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace catena::bench {
namespace {

using stack::CopyMode;
using stack::Part::kCopy;
using stack::Part::kPoll;
using stack::Part::kPort;
using stack::Part::kPostCopy;
using stack::Part::kSession;
using stack::Part::kTcp;

constexpr const char* kCore = "core";          ///< figures 2 and 8, tables I and II
constexpr const char* kSmall = "small";        ///< figure 14
constexpr const char* kResponse = "response";  ///< figure 10, of the stack alone
constexpr const char* kCopies = "copies";      ///< figure 3
/// An engine that costs nothing and moves nothing: the most that any engine could bring.
constexpr const char* kFreeEngine = "free";

/// Completes each job at once. Bodies are wrong with it.
class FreeEngine final : public hostcopy::Engine {
 public:
  std::string name() const override { return kFreeEngine; }
  Capabilities capabilities() const override { return {.is_ordered = true}; }
  Status configure(Limits const& /*limits*/) override { return absl::OkStatus(); }
  Status enqueue_copy(Job job, std::span<const hostcopy::Move> /*moves*/) override {
    done_.push_back({job, true});
    return absl::OkStatus();
  }
  Result<std::optional<Completion>> dequeue_copy() override {
    if (next_ == done_.size()) {
      done_.clear();
      next_ = 0;
      return std::nullopt;
    }
    return done_[next_++];
  }
  Result<std::optional<Completion>> peek_copy() override {
    return next_ == done_.size() ? std::nullopt : std::optional(done_[next_]);
  }

 private:
  std::vector<Completion> done_;
  std::size_t next_ = 0;
};

Result<std::unique_ptr<hostcopy::Engine>> open_any_engine(std::string const& name) {
  if (name == kFreeEngine) {
    return std::make_unique<FreeEngine>();
  }
  return hostcopy::open_engine(name, stack::engine_table());
}

/// A way to copy: a row of each table.
struct Way {
  std::string name;
  CopyMode mode;
  std::string engine;  ///< empty: none
};

std::vector<Way> ways_of(Request const& request) {
  std::vector<Way> ways{{"reference", CopyMode::kReference, ""},
                        {"cpu", CopyMode::kCpu, ""},
                        {"cpu, streaming stores", CopyMode::kSync, "cpu-stream"}};
  for (std::string const& engine : request.texts("engine")) {
    for (const CopyMode mode : {CopyMode::kSync, CopyMode::kAsync, CopyMode::kFull}) {
      ways.push_back({concat(stack::to_string(mode), ", ", engine), mode, engine});
    }
  }
  return ways;
}

Json to_json(StackResult const& result, std::uint32_t body_bytes) {
  const auto cycles = [&result](stack::Part part) {
    const auto of = [&result](stack::Part each) {
      const auto at = static_cast<std::size_t>(each);
      return static_cast<double>(result.end.cycles[at] - result.begin.cycles[at]);
    };
    return of(part) + (part == kCopy ? of(kPoll) : part == kSession ? of(kPostCopy) : 0);
  };
  const double own = cycles(kTcp) + cycles(kSession) + cycles(kCopy);
  const auto responses = static_cast<double>(std::max<std::uint64_t>(result.responses, 1));
  const double per_core = responses / (own / result.cycles_per_second);
  const auto per_response = [&](stack::Part part) { return cycles(part) / responses; };
  stack::TxCounters const& begin = result.begin.tx;
  stack::TxCounters const& end = result.end.tx;
  const auto polls = static_cast<double>(end.polls - begin.polls);
  Json json{{"responses_per_s", responses / result.seconds},
            {"responses_per_core_s", per_core},
            {"gbps_per_core", per_core * body_bytes * 8 / 1e9},
            {"cycles",
             {{"tcp", per_response(kTcp)},
              {"session", per_response(kSession)},
              {"copy", per_response(kCopy)},
              {"peer", per_response(kPort)}}},
            {"busy_share", own / (result.cycles_per_second * result.seconds)},
            {"pieces", {{"engine", end.by_engine - begin.by_engine}, {"cpu", end.by_cpu - begin.by_cpu}}},
            {"median_wait_us", result.median_wait_s * 1e6},
            {"compared", result.compared},
            {"wrong", result.wrong}};
  if (polls > 0) {
    json["poll_interval_us"] = result.seconds * 1e6 / polls;
  }
  if (end.by_engine > begin.by_engine) {
    json["first_polls"] =
        static_cast<double>(end.first_polls - begin.first_polls) / static_cast<double>(end.by_engine - begin.by_engine);
  }
  return json;
}

class HavsBench {
 public:
  HavsBench(Request const& request, Results& results) : request_(&request), results_(&results) {}

  Status run() {
    if (request_->wants("groups", kCore)) {
      CATENA_RETURN_IF_ERROR(measure(kCore, request_->counts("sizes"), request_->count("connections")));
    }
    if (request_->wants("groups", kSmall)) {
      CATENA_RETURN_IF_ERROR(measure(kSmall, {64, 128, 256, 512}, request_->count("connections")));
    }
    if (request_->wants("groups", kResponse)) {
      CATENA_RETURN_IF_ERROR(measure(kResponse, {64, 1024, 4096, 16384, 65536}, 1));
    }
    return request_->wants("groups", kCopies) ? measure_copies() : absl::OkStatus();
  }

 private:
  Status measure(std::string const& group, std::vector<std::uint32_t> const& sizes, std::uint32_t connections) {
    const std::vector<Way> ways = ways_of(*request_);
    std::vector<Json> keys;
    for (const std::uint32_t bytes : sizes) {
      for (Way const& way : ways) {
        keys.push_back({{"group", group}, {"body_bytes", bytes}, {"connections", connections}, {"way", way.name}});
      }
    }
    Work work;
    work.table = {"group", "body_bytes", "connections"};
    work.measure = [](std::size_t, Json& cell) {
      cell["repeats"] = Json::array();
      return absl::OkStatus();
    };
    work.repeat = [&](std::size_t number, Json& cell) -> Status {
      Way const& way = ways[number % ways.size()];
      const std::uint32_t bytes = sizes[number / ways.size()];
      StackRun run{
          .tx = {.mode = way.mode, .threshold = request_->count("threshold"), .poll_at = request_->count("poll_at")},
          .engine = nullptr,
          .connections = connections,
          .body_bytes = bytes,
          .seconds = request_->seconds(),
          .warm_up_seconds = request_->seconds() / 4};
      if (!way.engine.empty()) {
        CATENA_ASSIGN_OR_RETURN(run.engine, open_any_engine(way.engine));
      }
      CATENA_ASSIGN_OR_RETURN(const StackResult result, run_stack(std::move(run)));
      cell["repeats"].push_back(to_json(result, bytes));
      if (result.wrong > 0 && way.engine != kFreeEngine) {
        return absl::DataLossError(concat(result.wrong, " of ", result.compared, " words of bodies are wrong"));
      }
      return absl::OkStatus();
    };
    work.summary = [](Json const& cell) {
      Json const& last = cell["repeats"].back();
      return fmt::format("{:.1f} Gbps of a core, {:.0f} k responses/s of it", last["gbps_per_core"].get<double>(),
                         last["responses_per_core_s"].get<double>() / 1e3);
    };
    return results_->measure(keys, work);
  }

  /// One engine after another at all sizes, in turn within each repeat.
  Status measure_copies() {
    std::vector<hostcopy::EngineKind> kinds;
    std::vector<Json> keys;
    for (hostcopy::EngineKind const& kind : stack::engine_table()) {
      if (kind.probe().ok()) {
        kinds.push_back(kind);
        keys.push_back({{"group", kCopies}, {"engine", kind.name}});
      }
    }
    Work work;
    work.table = {"group"};
    work.measure = [](std::size_t, Json& cell) {
      cell["repeats"] = Json::array();
      return absl::OkStatus();
    };
    work.repeat = [&](std::size_t number, Json& cell) -> Status {
      profile::CopyMeasureOptions options;
      options.sizes = request_->counts("sizes");
      options.seconds = request_->seconds() / static_cast<double>(options.sizes.size());
      CATENA_ASSIGN_OR_RETURN(const auto engines,
                              profile::measure_copies(std::span(kinds).subspan(number, 1), options, [](auto) {}));
      CATENA_RETURN_IF_ERROR(engines.front().status);
      Json points = Json::array();
      for (chain::CopyPoint const& point : engines.front().points) {
        points.push_back({{"bytes", point.bytes}, {"cpu_ns", point.cpu_ns}, {"gbps", point.gbps}});
      }
      cell["repeats"].push_back({{"points", std::move(points)}});
      return absl::OkStatus();
    };
    work.summary = [](Json const& cell) {
      return fmt::format("{:.1f} Gbps at the largest size",
                         cell["repeats"].back()["points"].back()["gbps"].get<double>());
    };
    return results_->measure(keys, work);
  }

  Request const* request_;
  Results* results_;
};

Result<Results> run_havs(Request const& request, nf::Registry const& /*registry*/, Progress const& progress) {
  CATENA_RETURN_IF_ERROR(eal::start());
  CATENA_ASSIGN_OR_RETURN(Results results, Results::begin(request, progress, {{"device", "none"}}));
  CATENA_RETURN_IF_ERROR(HavsBench(request, results).run());
  return results;
}

}  // namespace

Part havs_part() {
  return {
      .name = "havs",
      .help = "Offloaded copies of a TCP stack beside copies of the CPU, as the HAVS paper measures them",
      .seconds = 3,
      .quick_seconds = 0.4,
      .settings = {groups_setting({kCore, kSmall, kResponse, kCopies}),
                   device_setting(),
                   {.name = "sizes",
                    .help = "Bytes of a body, and of a copy alone: multiples of 8",
                    .usual = "1024,4096,16384,65536,131072,262144",
                    .quick = "16384",
                    .least = 8,
                    .most = 1 << 24,
                    .is_list = true,
                    .chooses = true},
                   {.name = "engine",
                    .help = "Copy engines, of those that catena doctor lists; free copies nothing and costs nothing",
                    .usual = "free",
                    .quick = nullptr,
                    .is_list = true},
                   {.name = "threshold",
                    .help = "Bytes from which on an engine copies, with full",
                    .usual = "8192",
                    .quick = nullptr,
                    .least = 0,
                    .most = 1 << 24},
                   {.name = "poll_at",
                    .help = "Copies in flight from which on engines are polled at once",
                    .usual = "10",
                    .quick = nullptr,
                    .least = 0,
                    .most = 1024},
                   {.name = "connections",
                    .help = "Clients of a server",
                    .usual = "64",
                    .quick = "16",
                    .least = 1,
                    .most = 16384}},
      .run = run_havs};
}

}  // namespace catena::bench
