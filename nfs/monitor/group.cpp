// SPDX-License-Identifier: Apache-2.0
#include "group.hpp"

#include <catena/core/text.hpp>
#include <catena/core/time.hpp>

#include <algorithm>
#include <utility>

namespace catena::monitor {
Group::Group(std::vector<NamedExporter> exporters, std::uint32_t monitors)
    : is_shared_(monitors > 1), stamps_(monitors), unfinished_(monitors) {
  for (NamedExporter& named : exporters) {
    names_.push_back(std::move(named.name));
    exporters_.push_back(std::move(named.exporter));
  }
}

std::unique_lock<std::mutex> Group::lock() {
  return is_shared_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
}

std::uint64_t Group::add(std::span<const EndedFlow> flows) {
  const auto held = lock();
  for (EndedFlow const& flow : flows) {
    clock_ns_ = std::max(clock_ns_, flow.clock_ns);
    for (auto const& exporter : exporters_) {
      exporter->add(flow.record, clock_ns_);
    }
  }
  return take_losses();
}

std::uint64_t Group::flush_each_second(std::uint64_t clock_ns) {
  const auto held = lock();
  clock_ns_ = std::max(clock_ns_, clock_ns);
  if (clock_ns_ - second_ns_ < kNsPerSecond) {
    return 0;  // another monitor came to this second first
  }
  second_ns_ = clock_ns_;
  for (auto const& exporter : exporters_) {
    exporter->flush(clock_ns_);
  }
  return take_losses();
}

Group::Finish Group::finish(std::uint64_t clock_ns) {
  const auto held = lock();
  clock_ns_ = std::max(clock_ns_, clock_ns);
  if (--unfinished_ > 0) {
    return {0, absl::OkStatus()};
  }
  std::string failures;
  for (auto const& exporter : exporters_) {
    if (const Status status = exporter->finish(clock_ns_); !status.ok()) {
      failures += concat(failures.empty() ? "" : "; ", std::string(status.message()));
    }
  }
  return {take_losses(), failures.empty() ? absl::OkStatus() : absl::DataLossError(failures)};
}

void Group::take_over(Group& before) {
  std::swap(names_, before.names_);
  std::swap(exporters_, before.exporters_);
  clock_ns_ = before.clock_ns_;
  second_ns_ = before.second_ns_;
  lost_ = before.lost_;
  set_stamp(0, before.latest_stamp_ns());
}

std::uint64_t Group::latest_stamp_ns() const {
  std::uint64_t latest_ns = 0;
  for (Stamp const& stamp : stamps_) {
    latest_ns = std::max(latest_ns, stamp.ns.load(std::memory_order_relaxed));
  }
  return latest_ns;
}

std::uint64_t Group::take_losses() {
  std::uint64_t lost = 0;
  for (auto const& exporter : exporters_) {
    lost += exporter->lost_records();
  }
  return lost - std::exchange(lost_, lost);
}

}  // namespace catena::monitor
