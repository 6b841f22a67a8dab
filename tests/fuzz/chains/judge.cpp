// SPDX-License-Identifier: Apache-2.0
#include "fuzz/chains/judge.hpp"

#include "system/chain_runner.hpp"
#include "system/packet_sets.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <utility>

namespace catena::fuzz {
namespace {

namespace fs = std::filesystem;
using device::testing::FaultyDevice;

constexpr std::size_t kPcapHeader = 24;
constexpr std::size_t kPacketHeader = 16;

/// Reads a file that a run wrote, and removes it.
std::string take_file(fs::path const& path) {
  std::string bytes = testing::read_file(path);
  std::error_code error;
  fs::remove(path, error);
  return bytes;
}

std::uint32_t captured_bytes(std::string const& capture, std::size_t at) {
  std::uint32_t bytes = 0;
  std::copy_n(capture.data() + at + 8, sizeof bytes, reinterpret_cast<char*>(&bytes));
  return bytes;
}

/// Where two captures, written by one program, differ first.
std::string capture_difference(std::string const& actual, std::string const& expected) {
  if (actual == expected) {
    return {};
  }
  std::size_t at = kPcapHeader;
  for (std::size_t packet = 0; at + kPacketHeader <= std::min(actual.size(), expected.size()); ++packet) {
    const std::size_t bytes = kPacketHeader + captured_bytes(expected, at);
    if (actual.compare(at, bytes, expected, at, bytes) != 0) {
      const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(at);
      const auto end = expected.begin() + static_cast<std::ptrdiff_t>(std::min(at + bytes, expected.size()));
      const auto first = std::mismatch(begin, end, actual.begin() + static_cast<std::ptrdiff_t>(at), actual.end());
      return concat("packet ", packet, " of the output (", captured_bytes(actual, at), " bytes, ",
                    captured_bytes(expected, at), " expected) differs at byte ",
                    (first.first - begin) - static_cast<std::ptrdiff_t>(kPacketHeader));
    }
    at += bytes;
  }
  return concat("the output has ", actual.size(), " bytes, ", expected.size(), " expected");
}

/// A sound device of this kind, which is there for the whole process: what a chain leaves on a device that failed is
/// never freed. Errors: NotFound.
Result<device::Device*> real_device(std::string_view name) {
  for (device::Device* device : nf::testing::devices()) {
    if (device->info().backend == name) {
      return device;
    }
  }
  return absl::NotFoundError(concat("there is no ", name, " device"));
}

template <typename Value>
std::string unequal(std::string_view what, Value const& actual, Value const& expected) {
  return actual == expected ? std::string() : concat(what, " is ", actual, ", ", expected, " expected");
}

std::string count_difference(std::string_view what, std::vector<io::NamedCount> const& actual,
                             std::vector<io::NamedCount> const& expected) {
  const auto text = [](std::vector<io::NamedCount> const& counts) {
    std::string all;
    for (io::NamedCount const& count : counts) {
      all += concat(" ", std::string(count.name), "=", count.count);
    }
    return all;
  };
  return unequal(what, text(actual), text(expected));
}

}  // namespace

Result<RunOutput> run_chain(fs::path const& folder, FuzzChain const& chain, Variant const& variant,
                            std::string const& device) {
  const fs::path records = folder / "records.jsonl";
  CATENA_ASSIGN_OR_RETURN(chain::ChainConfig config,
                          chain::parse_chain(chain_text(chain, variant, device), (folder / "chain.yaml").string()));
  config.tuning = variant.tuning;
  FaultyDevice* faulty = nullptr;
  runtime::RunOptions options;
  options.record_path = records.string();
  options.workers = variant.workers;
  options.sync = variant.sync;
  if (variant.fault) {
    options.open_device = [&faulty, &device](device::DevicePreference const&,
                                             std::string*) -> Result<std::unique_ptr<device::Device>> {
      CATENA_ASSIGN_OR_RETURN(device::Device* const real, real_device(device));
      auto opened = std::make_unique<FaultyDevice>(*real);
      faulty = opened.get();
      return opened;
    };
  }
  RunOutput output;
  {
    CATENA_ASSIGN_OR_RETURN(const auto running,
                            runtime::Session::create(std::move(config), options, nf::builtin_nfs()));
    if (faulty != nullptr) {  // no NF is on the device otherwise
      arm(*faulty, *variant.fault);
    }
    output.status = running->run();
    output.report = running->report();
  }
  if (!variant.fault) {
    CATENA_RETURN_IF_ERROR(output.status);
  }
  output.capture = take_file(folder / "out.pcap");
  output.records = take_file(records);
  for (std::size_t i = 0; i < chain.nfs.size(); ++i) {
    output.flows.push_back(take_file(folder / flows_file(i)));
  }
  return output;
}

std::string fault_of(RunOutput const& run, FuzzChain const& chain, std::uint32_t gpu_mask) {
  runtime::Report const& report = run.report;
  if (!report.accounted()) {
    return concat("not balanced: ", report.rx.seen, " seen, ", report.tx.sent, " sent, ", report.dropped(), " dropped");
  }
  if (report.rx.slots_in_use != 0) {
    return concat(report.rx.slots_in_use, " slots did not come back");
  }
  for (std::size_t i = 0; i < chain.nfs.size(); ++i) {
    // those of a graph are in the order in which packets meet them
    runtime::NfReport const& nf = *std::ranges::find(report.nfs, nf_name(chain, i), &runtime::NfReport::name);
    if (nf.device.kernel_faults != 0) {
      return concat("NF ", nf.name, ": its kernel reached out of bounds ", nf.device.kernel_faults, " times");
    }
    if (nf.placement != ((gpu_mask >> i & 1U) != 0 ? "gpu" : "cpu")) {
      return concat("NF ", nf.name, " ran on ", nf.placement, ": ", nf.device.error);
    }
  }
  return {};
}

std::string nf_difference(runtime::NfReport const& actual, runtime::NfReport const& expected) {
  for (std::string const& wrong : {unequal("in", actual.packets.in, expected.packets.in),
                                   unequal("passed", actual.packets.passed, expected.packets.passed),
                                   unequal("alerts", actual.packets.alerts, expected.packets.alerts),
                                   unequal("replies", actual.packets.replies, expected.packets.replies),
                                   unequal("unsupported", actual.packets.unsupported, expected.packets.unsupported),
                                   count_difference("drops", actual.packets.drops, expected.packets.drops),
                                   count_difference("statistics", actual.statistics, expected.statistics)}) {
    if (!wrong.empty()) {
      return concat("NF ", expected.name, ": ", wrong);
    }
  }
  return {};
}

std::string difference(RunOutput const& run, RunOutput const& expected, bool has_order) {
  const auto lines_of = [has_order](std::string const& text) { return has_order ? text : testing::sorted_lines(text); };
  for (std::size_t i = 0; i < expected.report.nfs.size(); ++i) {
    if (std::string wrong = nf_difference(run.report.nfs[i], expected.report.nfs[i]); !wrong.empty()) {
      return wrong;
    }
  }
  if (std::string wrong = testing::first_difference(lines_of(run.records), lines_of(expected.records));
      !wrong.empty()) {
    return concat("the records differ in ", wrong);
  }
  if (!has_order &&
      testing::sorted(testing::packets_of(run.capture)) != testing::sorted(testing::packets_of(expected.capture))) {
    return "other packets came out";
  }
  if (std::string wrong = has_order ? capture_difference(run.capture, expected.capture) : std::string();
      !wrong.empty()) {
    return wrong;
  }
  for (std::size_t i = 0; i < expected.flows.size(); ++i) {
    if (std::string wrong = testing::first_difference(lines_of(run.flows[i]), lines_of(expected.flows[i]));
        !wrong.empty()) {
      return concat("the flows in ", flows_file(i), " differ in ", wrong);
    }
  }
  for (std::string const& wrong : {unequal("seen", run.report.rx.seen, expected.report.rx.seen),
                                   unequal("sent", run.report.tx.sent, expected.report.tx.sent),
                                   count_difference("rx drops", run.report.rx.drops, expected.report.rx.drops),
                                   count_difference("tx drops", run.report.tx.drops, expected.report.tx.drops)}) {
    if (!wrong.empty()) {
      return wrong;
    }
  }
  return {};
}

}  // namespace catena::fuzz
