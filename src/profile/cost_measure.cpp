// SPDX-License-Identifier: Apache-2.0
#include "profile/cost_measure.hpp"

#include "plan/methods.hpp"
#include "profile/host_meter.hpp"
#include "profile/transfer_meter.hpp"

#include <catena/core/text.hpp>

#include <array>
#include <span>
#include <vector>

namespace catena::profile {
namespace {

using plan::Timing;

constexpr std::array kDirections{Direction::kToDevice, Direction::kToHost};
constexpr std::array<std::uint32_t, 4> kFewerPackets{64, 256, 1024, 4096};
constexpr std::uint32_t kMaxPackets = TransferMeter::kMaxPackets;
constexpr std::array<std::uint32_t, 6> kSizes{64, 128, 256, 512, 1024, 1514};
constexpr std::array<std::uint32_t, 3> kLargeSizes{512, 1024, 1514};  // bytes decide here, not packets
constexpr std::uint32_t kFieldBytes = 4;
constexpr std::array<std::uint32_t, 4> kFieldCounts{1, 2, 4, 8};

/// A timed step, and where its one or two times go.
struct Step {
  std::string what;
  std::vector<Transfer> transfers;
  std::vector<std::vector<Timing>*> timings;
};

/// What is timed of one method, for each direction.
struct Series {
  TransferMethod method;
  std::array<std::vector<Timing>, 2> frames = {};
  std::array<std::vector<Timing>, 2> fields = {};
  std::array<std::vector<Timing>, 2> both_ways = {};

  plan::Timings of(Direction direction) const {
    const auto side = static_cast<std::size_t>(direction);
    return {frames[side], fields[side], both_ways[side]};
  }
};

void add_step(std::vector<Step>& steps, Transfer const& transfer, std::vector<Timing>& timings) {
  const std::string what = transfer.content == TransferContent::kField ? "header fields"
                           : transfer.content == TransferContent::kWithin
                               ? concat("frames of ", transfer.bytes, " bytes within the device")
                               : concat("frames of ", transfer.bytes, " bytes");
  steps.push_back(
      {concat(to_string(transfer.method), " ", to_string(transfer.direction), ", ", transfer.packets, " ", what),
       {transfer},
       {&timings}});
}

void add_steps(Series& series, std::vector<Step>& steps) {
  for (const Direction direction : kDirections) {
    const auto side = static_cast<std::size_t>(direction);
    const auto add = [&](TransferContent content, std::uint32_t packets, std::uint32_t bytes,
                         std::vector<Timing>& timings) {
      add_step(steps, {series.method, direction, content, packets, bytes}, timings);
    };
    for (const std::uint32_t packets : kFewerPackets) {
      add(TransferContent::kFrames, packets, kSizes.front(), series.frames[side]);
    }
    for (const std::uint32_t bytes : kSizes) {
      add(TransferContent::kFrames, kMaxPackets, bytes, series.frames[side]);
    }
    if (needs_mapped_pool(series.method)) {
      for (const std::uint32_t packets : kFewerPackets) {
        add(TransferContent::kField, packets, kFieldBytes, series.fields[side]);
      }
      add(TransferContent::kField, kMaxPackets, kFieldBytes, series.fields[side]);
    }
  }
  for (const std::uint32_t bytes : kLargeSizes) {
    steps.push_back({concat(to_string(series.method), " both ways, ", kMaxPackets, " frames of ", bytes, " bytes"),
                     {{series.method, Direction::kToDevice, TransferContent::kFrames, kMaxPackets, bytes},
                      {series.method, Direction::kToHost, TransferContent::kFrames, kMaxPackets, bytes}},
                     {&series.both_ways[0], &series.both_ways[1]}});
  }
}

/// The median of both directions: the model has one figure for them.
void measure_host(HostMeter& meter, plan::CostModel& model) {
  std::vector<plan::Point> frames;
  std::vector<plan::Point> fields;
  for (const bool in : {true, false}) {
    for (const std::uint32_t bytes : kLargeSizes) {
      frames.push_back({static_cast<double>(bytes), meter.copy_frames(bytes, in)});
    }
    for (const std::uint32_t count : kFieldCounts) {
      fields.push_back({static_cast<double>(count), meter.copy_fields(count, in)});
    }
  }
  model.host_copy_ns_per_byte = plan::fit_ratio(frames);
  const plan::Line line = plan::fit_line(fields);
  model.host_touch_ns = line.intercept;
  model.host_column_ns = line.slope;
}

}  // namespace

Result<plan::CostModel> measure(device::Device& device, MeasureObserver const& observer) {
  std::uint32_t done = 0;
  std::uint32_t total = 0;
  const auto next = [&](std::string what) {
    if (observer) {
      observer({std::move(what), done, total});
    }
    ++done;
  };
  CATENA_ASSIGN_OR_RETURN(const auto meter, TransferMeter::create(device));
  CATENA_RETURN_IF_ERROR(meter->check_bytes());

  plan::CostModel model;
  std::vector<Series> all;
  for (const TransferMethod method : kTransferMethods) {
    if (meter->can_time(method)) {
      all.push_back({.method = method});
    } else {
      model.available &= static_cast<plan::MethodSet>(~plan::method_bit(method));
    }
  }
  std::vector<Step> steps;
  for (Series& series : all) {
    add_steps(series, steps);
  }
  std::vector<Timing> within;
  for (const std::uint32_t bytes : kLargeSizes) {
    add_step(steps, {TransferMethod::kStaged, Direction::kToDevice, TransferContent::kWithin, kMaxPackets, bytes},
             within);
  }
  total = static_cast<std::uint32_t>(steps.size()) + 1;

  for (Step const& step : steps) {
    next(step.what);
    CATENA_ASSIGN_OR_RETURN(const std::vector<double> times, meter->time(step.transfers));
    for (std::size_t i = 0; i < times.size(); ++i) {
      Transfer const& transfer = step.transfers[i];
      step.timings[i]->push_back(
          {static_cast<double>(transfer.packets), static_cast<double>(transfer.bytes), times[i]});
    }
  }
  for (Series const& series : all) {
    for (const Direction direction : kDirections) {
      model.methods[static_cast<std::size_t>(series.method)][static_cast<std::size_t>(direction)] =
          plan::traits_of(series.method).fit(series.of(direction));
    }
  }
  std::vector<plan::Point> bytes_within;
  for (Timing const& timing : within) {
    bytes_within.push_back({timing.packets * timing.bytes, timing.ns});
  }
  model.device_copy_ns_per_byte = plan::fit_line(bytes_within).slope;

  next("one core, batching packets");
  CATENA_ASSIGN_OR_RETURN(const auto host, HostMeter::create(meter->staging()));
  measure_host(*host, model);
  next("done");
  return model;
}

}  // namespace catena::profile
