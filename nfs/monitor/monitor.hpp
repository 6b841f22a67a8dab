// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "flow_sums.hpp"
#include "group.hpp"
#include "meter.hpp"
#include "top_talkers.hpp"

#include <catena/nf/nf.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace catena::monitor {

/// Flow monitor: counts packets into unidirectional flows (RFC 7011) and exports a record of each. It never drops or
/// changes a packet.
///
/// Theory of operation. complete() processes packets in order and passes their header data to the Meter, which keeps
/// the flows and ends them. An ended flow's record goes to every exporter and into the top talkers, so these count each
/// packet once, at the end of its flow, and do no work per packet.
///
/// With several shards, each monitor has whole flows. A time-out is detected by packets of the same flow or at the end
/// of the run. Both use the same time as a single monitor would, so records are the same.
class Monitor final : public nf::Nf, private RecordSink {
 public:
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config);

  nf::Hints hints() const override;
  std::unique_ptr<nf::Sharder> sharder() const override { return std::make_unique<FlowSharder>(group_); }
  /// The replica has the same exporters. ResourceExhausted if the memory for its table is not available.
  Result<std::unique_ptr<nf::Nf>> replicate(std::uint32_t shard) const override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;
  Result<nf::KernelSide> kernel_side() const override;
  /// FailedPrecondition if the configuration differs: exports continue unchanged.
  Status prepare_migration(std::span<nf::Nf const* const> before) override;
  void migrate_state(std::span<nf::Nf* const> before, nf::FlowFilter const& is_mine) override;
  void tick(std::uint64_t now_ns) override;
  /// Exports the remaining flows. With several shards: call it after the last packet of all of them. DataLoss, from the
  /// last one, naming each file that could not be written.
  Status finish() override;
  std::vector<std::string> start_report() const override;
  /// The top talkers of all shards; only the first shard reports. Call it after all shards have finished.
  std::vector<std::string> end_report() const override;
  std::vector<nf::Statistic> statistics() const override;

 private:
  struct Settings {
    std::uint64_t max_flows;      ///< of all shards together
    std::string max_flows_place;  ///< position in the configuration, for errors
    Timeouts timeouts;
    std::size_t top;
    std::string text;  ///< of the whole configuration
  };
  Monitor(FlowTable table, Settings settings, std::shared_ptr<Group> group, nf::Shard shard);
  static Result<std::unique_ptr<nf::Nf>> make(Settings const& settings, std::shared_ptr<Group> group, nf::Shard shard);

  void add(FlowRecord const& record, std::uint64_t clock_ns) override;
  void second_passed(std::uint64_t clock_ns) override;

  void take_flows(std::span<nf::Nf* const> before);
  void observe_headers(packet::Batch const& batch);
  /// Passes waiting records to the exporters.
  void hand_over();

  Settings settings_;
  nf::Shard shard_;
  std::shared_ptr<Group> group_;
  Meter meter_;
  FlowSums sums_;
  std::shared_ptr<TopTalkers> talkers_;
  std::vector<EndedFlow> waiting_;  // for export, at most until the end of the batch
  std::uint64_t lost_records_ = 0;  // found at this monitor's calls of the group
};

}  // namespace catena::monitor

/// `type: monitor`.
catena::nf::Descriptor const& catena_nf_monitor();
