// SPDX-License-Identifier: Apache-2.0
#include "monitor.hpp"

#include <catena/core/text.hpp>
#include <catena/core/time.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "catena_kernel_monitor.hpp"
#include "monitor.layout.hpp"

namespace catena::monitor {
namespace {

constexpr std::int64_t kDefaultFlows = 1'000'000;
constexpr std::int64_t kMaxTimeoutSeconds = 86'400 * 365;
constexpr std::int64_t kMaxTop = 1000;
// Pairs of addresses that are counted exactly; with more, the smallest ones share counters.
constexpr std::size_t kTalkerCounters = 65'536;
// Packets whose headers are fetched side by side before they are read.
constexpr std::uint32_t kChunkPackets = 64;
// Records that are given to the exporters together, which is one turn at their lock where monitors share them.
constexpr std::size_t kMaxWaiting = 64;

constexpr std::array<nf::ConfigKey, 6> kConfig{{
    {"max_flows", "integer 1..100000000", "1000000", "flows kept; more evict the least recently used one"},
    {"idle_timeout_s", "integer 1..31536000", "15", "seconds without a packet after which a flow ends"},
    {"active_timeout_s", "integer 0..31536000", "1800",
     "seconds between exports of an active flow; 0: only at its end"},
    {"top", "integer 0..1000", "10", "top talkers in the report"},
    {"export",
     "list of {format: json | ipfix, file: PATH} or {format: ipfix, udp: HOST:PORT, template_refresh, "
     "template_refresh_s}",
     "none",
     "where flow records go; templates are sent again after template_refresh messages (20) or template_refresh_s "
     "seconds (600)"},
    {"observation_domain", "integer 0..4294967295", "1", "observation domain ID of IPFIX messages"},
}};

void prefetch_headers(packet::Batch const& batch, std::uint32_t first) {
  const std::uint32_t end = std::min(batch.size(), first + kChunkPackets);
  for (std::uint32_t i = first; i < end; ++i) {
    __builtin_prefetch(batch[i].l3());
  }
}

}  // namespace

Result<std::unique_ptr<nf::Nf>> Monitor::create(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::int64_t flows,
                          config.integer_or("max_flows", kDefaultFlows, 1, FlowTable::kMaxCapacity));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t idle, config.integer_or("idle_timeout_s", 15, 1, kMaxTimeoutSeconds));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t active,
                          config.integer_or("active_timeout_s", 1800, 0, kMaxTimeoutSeconds));
  CATENA_ASSIGN_OR_RETURN(const std::int64_t top, config.integer_or("top", 10, 0, kMaxTop));
  CATENA_ASSIGN_OR_RETURN(std::vector<NamedExporter> exporters, read_exporters(config));
  CATENA_RETURN_IF_ERROR(config.finish());
  const Settings settings{
      .max_flows = static_cast<std::uint64_t>(flows),
      .max_flows_place = config.position("max_flows"),
      .timeouts = {static_cast<std::uint64_t>(idle) * kNsPerSecond, static_cast<std::uint64_t>(active) * kNsPerSecond},
      .top = static_cast<std::size_t>(top),
      .text = config.canonical()};
  return make(settings, std::make_shared<Group>(std::move(exporters), config.shard().count), config.shard());
}

Result<std::unique_ptr<nf::Nf>> Monitor::make(Settings const& settings, std::shared_ptr<Group> group, nf::Shard shard) {
  auto table = FlowTable::create(static_cast<std::uint32_t>(shard.part_of(settings.max_flows)));
  if (!table.ok()) {
    return absl::ResourceExhaustedError(
        concat(settings.max_flows_place, ": ", std::string(table.status().message()), "; write a smaller 'max_flows'"));
  }
  return std::unique_ptr<nf::Nf>(new Monitor(std::move(table).value(), settings, std::move(group), shard));
}

Monitor::Monitor(FlowTable table, Settings settings, std::shared_ptr<Group> group, nf::Shard shard)
    : settings_(std::move(settings)),
      shard_(shard),
      group_(std::move(group)),
      meter_(std::move(table), settings_.timeouts, *this),
      talkers_(std::make_shared<TopTalkers>(kTalkerCounters)) {
  waiting_.reserve(kMaxWaiting);
  group_->add_talkers(talkers_);
}

Result<std::unique_ptr<nf::Nf>> Monitor::replicate(std::uint32_t shard) const {
  return make(settings_, group_, {shard, shard_.count});
}

// complete() takes keys from the headers on the host, of one packet per flow and group, and not from the kernel: those
// would be 13 bytes more of every result, whereas a header field moves back only where an NF on the device has written
// it, and then tx needs it on the host anyway. The same goes for what is counted, of packets that the kernel's sums are
// no help with.
nf::Hints Monitor::hints() const {
  nf::Hints hints;
  const packet::FieldSet key = packet::fields(packet::kIpv4Protocol, packet::kIpv4Src, packet::kIpv4Dst,
                                              packet::kL4Sport, packet::kL4Dport, packet::kIcmpHeader);
  const packet::FieldSet counted = packet::fields(packet::kIpv4Length, packet::kTcpFlags);
  hints.gr = key | counted;
  hints.complete_reads = key | counted | packet::fields(packet::kIpv4Tos, packet::kMetaLayers);
  if (shard_.count > 1) {
    hints.prepare_reads = key | packet::fields(packet::kMetaLayers);  // the sharder does
  }
  return hints;
}

Result<nf::KernelSide> Monitor::kernel_side() const {
  nf::KernelSide side;
  side.spec.source = catena_kernel_monitor();
  side.spec.name = "monitor";
  side.spec.group_size = kGroupPackets;
  side.spec.local_bytes = kGroupPackets * kLocalBytesPerPacket;
  return side;
}

Status Monitor::prepare_migration(std::span<nf::Nf const* const> before) {
  auto const& old = static_cast<Monitor const&>(*before.front());
  if (old.settings_.text != settings_.text) {
    return absl::FailedPreconditionError("its configuration has changed, and its exports keep the earlier one");
  }
  group_->divide_as(*old.group_);
  return absl::OkStatus();
}

void Monitor::migrate_state(std::span<nf::Nf* const> before, nf::FlowFilter const& /*is_mine*/) {
  if (before.size() != shard_.count) {
    take_flows(before);
    return;
  }
  auto& old = static_cast<Monitor&>(*before[shard_.index]);
  std::swap(meter_, old.meter_);
  meter_.export_to(*this);
  old.meter_.export_to(old);
  std::swap(group_, old.group_);
  std::swap(talkers_, old.talkers_);
  std::swap(waiting_, old.waiting_);
  lost_records_ += std::exchange(old.lost_records_, 0);
}

/// The flows of this shard. The first shard has the counts and top talkers of all, and continues the exports.
void Monitor::take_flows(std::span<nf::Nf* const> before) {
  std::vector<Meter const*> meters;
  std::ranges::transform(before, std::back_inserter(meters),
                         [](nf::Nf* each) { return &static_cast<Monitor&>(*each).meter_; });
  if (shard_.index == 0) {
    Group& old = *static_cast<Monitor&>(*before.front()).group_;
    group_->take_over(old);
    talkers_->fill(old.talkers());
  }
  meter_.take_over(meters,
                   [this](packet::Ipv4FlowKey const& flow) { return group_->monitor_of(flow) == shard_.index; });
  for (nf::Nf* const each : shard_.index == 0 ? before : std::span<nf::Nf* const>()) {
    auto& old = static_cast<Monitor&>(*each);
    meter_.add_counts(old.meter_);
    lost_records_ += std::exchange(old.lost_records_, 0);
  }
}

void Monitor::compute(packet::Batch const&, std::span<const std::byte>, std::span<std::byte>) {}

void Monitor::complete(nf::Completion const& completion) {
  packet::Batch const& batch = completion.batch();
  if (completion.from_device()) {
    meter_.observe(sums_.add_up(batch, completion.results<FlowResult>()),
                   [&batch](std::uint32_t i) { return observe(batch[i]); });
  } else {
    observe_headers(batch);
  }
  hand_over();
  group_->set_stamp(shard_.index, meter_.stamp_ns());
}

void Monitor::observe_headers(packet::Batch const& batch) {
  std::array<Observation, kChunkPackets> packets;
  prefetch_headers(batch, 0);
  for (std::uint32_t first = 0; first < batch.size(); first += kChunkPackets) {
    prefetch_headers(batch, first + kChunkPackets);
    const std::uint32_t count = std::min(kChunkPackets, batch.size() - first);
    for (std::uint32_t i = 0; i < count; ++i) {
      packets[i] = observe(batch[first + i]);
    }
    meter_.observe(std::span(packets).first(count));
  }
}

void Monitor::tick(std::uint64_t now_ns) {
  meter_.tick(now_ns);
  hand_over();
  group_->set_stamp(shard_.index, meter_.stamp_ns());
}

void Monitor::add(FlowRecord const& record, std::uint64_t clock_ns) {
  const packet::FlowKey key = record.key.whole();
  talkers_->add(key.source.v4(), key.destination.v4(), record.packets, record.bytes);
  if (!group_->exports()) {
    return;
  }
  waiting_.push_back({record, clock_ns});
  if (waiting_.size() == kMaxWaiting) {
    hand_over();
  }
}

void Monitor::hand_over() {
  if (!waiting_.empty()) {
    lost_records_ += group_->add(waiting_);
    waiting_.clear();
  }
}

void Monitor::second_passed(std::uint64_t clock_ns) {
  hand_over();
  lost_records_ += group_->flush_each_second(clock_ns);
}

Status Monitor::finish() {
  meter_.finish(group_->latest_stamp_ns());
  hand_over();
  Group::Finish end = group_->finish(meter_.clock_ns());
  lost_records_ += end.lost;
  return std::move(end.status);
}

std::vector<std::string> Monitor::start_report() const {
  std::vector<std::string> lines{concat("flow table of ", shard_.count * meter_.memory_bytes() >> 20, " MiB")};
  lines.insert(lines.end(), group_->names().begin(), group_->names().end());
  return lines;
}

std::vector<std::string> Monitor::end_report() const {
  std::vector<std::string> lines;
  if (shard_.index != 0) {
    return lines;
  }
  for (Talker const& talker : group_->top(settings_.top)) {
    const std::string excess =
        talker.excess_bytes == 0 ? "" : concat(" (at most ", talker.excess_bytes, " bytes too many)");
    lines.push_back(concat(to_string(packet::Address::of_v4(talker.src)), " -> ",
                           to_string(packet::Address::of_v4(talker.dst)), ": ", talker.bytes, " bytes, ",
                           talker.packets, " packets", excess));
  }
  return lines;
}

std::vector<nf::Statistic> Monitor::statistics() const {
  MeterCounts const& counts = meter_.counts();
  return {{"flows", counts.flows},
          {"flows_peak", counts.peak},
          {"flows_exported", counts.exported},
          {"flows_evicted", counts.evicted},
          {"export_errors", lost_records_},
          {"memory_bytes", meter_.memory_bytes() + talkers_->memory_bytes()}};
}

}  // namespace catena::monitor

catena::nf::Descriptor const& catena_nf_monitor() {
  static constexpr catena::nf::Descriptor kDescriptor{
      .type = "monitor",
      .help = "Counts IPv4 flows and exports their records as JSON and IPFIX",
      .needs = catena::packet::kIpv4,
      .refuses = 0,
      .drop_reasons = {},
      .config = catena::monitor::kConfig,
      .aux_bytes = 0,
      .result_bytes = sizeof(catena::monitor::FlowResult),
      .has_kernel = true,
      .sharding = catena::nf::Sharding::kOwn,
      .create = &catena::monitor::Monitor::create,
      .name_outputs = &catena::monitor::name_exports,
  };
  return kDescriptor;
}
