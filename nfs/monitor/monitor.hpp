// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "export_config.hpp"
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
class Monitor final : public nf::Nf, private RecordSink {
 public:
  static Result<std::unique_ptr<nf::Nf>> create(nf::Config& config);

  nf::Hints hints() const override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;
  void tick(std::uint64_t now_ns) override { meter_.tick(now_ns); }
  /// Exports what is left. DataLoss, naming each file that could not be written.
  Status finish() override;
  std::vector<std::string> start_report() const override;
  std::vector<std::string> end_report() const override;
  std::vector<nf::Statistic> statistics() const override;

 private:
  Monitor(FlowTable table, Timeouts timeouts, std::size_t top, std::vector<NamedExporter> exporters);

  void add(FlowRecord const& record, std::uint64_t clock_ns) override;
  void second_passed(std::uint64_t clock_ns) override;

  Meter meter_;
  TopTalkers talkers_;
  std::size_t top_;
  std::vector<NamedExporter> exporters_;
};

}  // namespace catena::monitor

/// `type: monitor`.
catena::nf::Descriptor const& catena_nf_monitor();
