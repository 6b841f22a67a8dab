// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/commands.hpp"
#include "apps/catena/fail.hpp"
#include "apps/catena/progress_line.hpp"
#include "apps/catena/style.hpp"
#include "chain/cost_profile.hpp"
#include "profile/cost_measure.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

namespace catena::cli {
namespace {

constexpr std::array kDirections{Direction::kToDevice, Direction::kToHost};
constexpr double kSmallFrame = 64;
constexpr double kLargeFrame = 1514;
constexpr double kFieldBytes = 4;

plan::TransferShape frames_of(double bytes) {
  return {.kind = plan::TransferShape::Kind::kBody,
          .bytes = bytes,
          .staged_bytes = bytes,
          .longest_bytes = bytes,
          .whole_frames = true,
          .between_slots = true};
}
plan::TransferShape one_field() {
  return {.kind = plan::TransferShape::Kind::kColumns,
          .bytes = kFieldBytes,
          .staged_bytes = kFieldBytes,
          .columns = 1,
          .touches_packet = true,
          .between_slots = true};
}

/// What the planner takes for such packets, and how long a packet takes.
struct Question {
  std::string_view what;
  plan::TransferShape shape;
};
std::array<Question, 3> questions() {
  return {{{"frames of 64 bytes", frames_of(kSmallFrame)},
           {"frames of 1514 bytes", frames_of(kLargeFrame)},
           {"a header field", one_field()}}};
}

/// ns of a packet on the bus in an endless transfer.
double bus_ns(plan::MethodCost const& cost, double bytes) {
  return std::max(cost.per_packet_ns, bytes * cost.per_byte_ns);
}

std::string rates(double bytes, double ns) {
  return ns > 0 ? fmt::format("{:>8.2f} {:>8.2f}", bytes / ns, 1e3 / ns) : fmt::format("{:>8} {:>8}", "-", "-");
}

double per_second(double amount, double ns) { return ns > 0 ? amount / ns : 0; }

void print(chain::CostProfile const& profile) {
  plan::CostModel const& costs = profile.costs;
  std::cout << concat("device    ", profile.device, " (", profile.backend, "), ", profile.driver, "\n\n");
  std::cout << fmt::format("{:<8} {:<4} {:>12}   {:^17}   {:^17}   {:>8}\n", "", "", "per transfer", "64-byte frames",
                           "1514-byte frames", "a field");
  std::cout << fmt::format("{:<8} {:<4} {:>12}   {:>8} {:>8}   {:>8} {:>8}   {:>8}\n", "method", "", "us", "GB/s",
                           "Mpps", "GB/s", "Mpps", "Mpps");
  for (const TransferMethod method : kTransferMethods) {
    if ((costs.available & plan::method_bit(method)) == 0) {
      std::cout << fmt::format("{:<8} not available: kernels of this device do not reach host memory\n",
                               to_string(method));
      continue;
    }
    for (const Direction direction : kDirections) {
      plan::MethodCost const& cost = costs.of(method, direction);
      const std::string field =
          needs_mapped_pool(method)
              ? fmt::format("{:.2f}",
                            per_second(1e3, std::max(cost.per_packet_fields_ns, kFieldBytes * cost.per_byte_ns)))
              : "-";
      std::cout << fmt::format("{:<8} {:<4} {:>12.2f}   {}   {}   {:>8}\n", to_string(method), to_string(direction),
                               cost.per_transfer_ns / 1e3, rates(kSmallFrame, bus_ns(cost, kSmallFrame)),
                               rates(kLargeFrame, bus_ns(cost, kLargeFrame)), field);
    }
  }
  std::cout << fmt::format(
      "\non one core, for `staged`: batches {:.2f} GB/s of frames, {:.1f} ns to reach a packet's headers and {:.2f} ns "
      "per field;\nwithin the device: {:.2f} GB/s\n",
      per_second(1, costs.host_copy_ns_per_byte), costs.host_touch_ns, costs.host_column_ns,
      per_second(1, costs.device_copy_ns_per_byte));
  std::cout << fmt::format("\nthe planner takes, with {} packets per transfer\n", costs.packets_per_transfer);
  for (Question const& question : questions()) {
    std::cout << fmt::format("  {:<21}", question.what);
    for (const Direction direction : kDirections) {
      plan::MoveCost cost;
      const TransferMethod method = costs.cheapest(direction, question.shape, cost);
      std::cout << fmt::format("  {} {:<7} {:>8.2f} ns", to_string(direction), to_string(method), cost.total_ns);
    }
    std::cout << '\n';
  }
}

nlohmann::ordered_json as_json(chain::CostProfile const& profile, std::string const& file) {
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(chain::to_json(profile));
  json["file"] = file;
  json["choices"] = nlohmann::ordered_json::array();
  for (Question const& question : questions()) {
    for (const Direction direction : kDirections) {
      plan::MoveCost cost;
      const TransferMethod method = profile.costs.cheapest(direction, question.shape, cost);
      json["choices"].push_back({{"what", question.what},
                                 {"direction", to_string(direction)},
                                 {"method", to_string(method)},
                                 {"ns", cost.total_ns}});
    }
  }
  return json;
}

/// A line with the command that measures a CPU's OpenCL, which `auto` does not take; empty without OpenCL.
std::string cpu_hint() {
  const auto opened = device::open(device::DevicePreference::of("opencl"));
  return opened.ok() && *opened ? "\n`catena profile --device opencl` measures that one" : "";
}

}  // namespace

int profile(ProfileArguments const& arguments) {
  std::string const& output = arguments.output;
  const bool json = arguments.json;
  const Result<device::DevicePreference> choice = device::parse_preference(arguments.device);
  if (!choice.ok()) {
    return fail(choice.status(), json);
  }
  std::string why;
  const Result<std::unique_ptr<device::Device>> opened = device::open(*choice, &why);
  if (!opened.ok()) {
    return fail(opened.status(), json);
  }
  if (!*opened) {
    return fail(absl::UnavailableError(concat("no device to measure:\n", why, cpu_hint())), json);
  }
  device::DeviceInfo const& info = (*opened)->info();
  std::cerr << concat("measuring ", info.name, " (", info.backend,
                      "): some seconds, in which nothing else should run\n");
  if (!why.empty()) {
    std::cerr << "not used: " << why << '\n';
  }
  ProgressLine line;
  const Result<plan::CostModel> costs =
      profile::measure(**opened, [&line](profile::MeasureProgress const& progress) { line.show(progress); });
  if (!costs.ok()) {
    return fail(costs.status(), json);
  }
  chain::CostProfile measured = chain::CostProfile::of(info, *costs);
  const std::string file = output.empty() ? chain::ProfileStore::from_environment().file_of(info).string() : output;
  if (Result<chain::CostProfile> before = chain::load_profile(file); before.ok() && before->is_of(info)) {
    measured.nfs = std::move(before->nfs);
    measured.nfs_on_cpu = std::move(before->nfs_on_cpu);
    measured.ends = std::move(before->ends);
  }
  const Status saved = file.empty()
                           ? absl::UnavailableError("no folder for the profile: set HOME, or use --output FILE")
                           : chain::save_profile(measured, file);
  if (json) {
    print_json(std::cout, as_json(measured, saved.ok() ? file : ""));
  } else {
    print(measured);
    if (saved.ok()) {
      std::cout << concat("\nsaved     ", file, "\n");
    }
  }
  return saved.ok() ? kExitOk : fail(saved);
}

}  // namespace catena::cli
