// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "flow_sums.hpp"
#include "group.hpp"
#include "meter.hpp"
#include "top_talkers.hpp"

#include <catena/nf/nf.hpp>

#include <memory>
#include <string>
#include <vector>

namespace catena::monitor {

/// Flow monitor: counts packets into unidirectional flows (RFC 7011) and exports a record of each. It never drops or
/// changes a packet.
///
/// Theory of operation. complete() sees the packets in their order and gives what it needs of each to the Meter, which
/// keeps the flows and decides when one has ended. Its record then goes to every exporter and into the top talkers, so
/// that these count each packet once, when its flow ends, not on the way of every packet.
///
/// Of several monitors that divide the packets among them each has whole flows. A time-out is noticed by packets of the
/// same flow or the end of the run, and both know the time as one monitor would, so records are the same.
class Monitor final : public nf::Nf, private RecordSink {
 public:
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config);

  nf::Hints hints() const override;
  std::unique_ptr<nf::Divider> divider() const override { return std::make_unique<FlowDivider>(group_); }
  /// With the same exporters. ResourceExhausted if there is no memory for its table.
  Result<std::unique_ptr<nf::Nf>> replicate(std::uint32_t shard) const override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;
  Result<nf::KernelSide> kernel_side() const override;
  /// FailedPrecondition with another configuration: what is exported goes on as it began.
  Status prepare_to_adopt(nf::Nf const& before) override;
  void adopt(nf::Nf& before) override;
  void tick(std::uint64_t now_ns) override;
  /// Exports what is left. Where several divide the packets: after the last packet of all of them. DataLoss, of the
  /// last one, naming each file that could not be written.
  Status finish() override;
  std::vector<std::string> start_report() const override;
  /// The top talkers of all shards, by the first. To be asked when all of them have finished.
  std::vector<std::string> end_report() const override;
  std::vector<nf::Statistic> statistics() const override;

 private:
  struct Settings {
    std::uint64_t max_flows;      ///< of all shards together
    std::string max_flows_place;  ///< in the configuration, for errors
    Timeouts timeouts;
    std::size_t top;
    std::string text;  ///< of the whole configuration
  };
  Monitor(FlowTable table, Settings settings, std::shared_ptr<Group> group, nf::Shard shard);
  static Result<std::unique_ptr<nf::Nf>> make(Settings const& settings, std::shared_ptr<Group> group, nf::Shard shard);

  void add(FlowRecord const& record, std::uint64_t clock_ns) override;
  void second_passed(std::uint64_t clock_ns) override;

  void observe_headers(packet::Batch const& batch);
  /// Gives the exporters what waits for them.
  void hand_over();

  Settings settings_;
  nf::Shard shard_;
  std::shared_ptr<Group> group_;
  Meter meter_;
  FlowSums sums_;
  std::shared_ptr<TopTalkers> talkers_;
  std::vector<EndedFlow> waiting_;  // for export, until the end of the batch at most
  std::uint64_t lost_records_ = 0;  // found at our calls of the group
};

}  // namespace catena::monitor

/// `type: monitor`.
catena::nf::Descriptor const& catena_nf_monitor();
