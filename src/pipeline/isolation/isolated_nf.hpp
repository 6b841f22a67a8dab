// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/isolation/process.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/nf.hpp>
#include <catena/nf/persistent.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace catena::nf_process {

/// Represents, in a chain, an NF that runs in another process, alone or with neighbours. It decides no packet: units go
/// to the process (runtime::ProcessStage). In its chain's plan it reads and writes all fields, since the hints of the
/// process may differ after a restart.
class IsolatedNf final : public nf::Nf, public nf::Persistent {
 public:
  /// NF `number` of `process`, which has just reported `described`.
  IsolatedNf(std::shared_ptr<NfProcess> process, std::size_t number, NfInfo const& described);

  /// The NF's descriptor, as its process reported it. Valid as long as this.
  nf::Descriptor const& descriptor() const { return descriptor_; }
  NfProcess& process() const { return *process_; }
  /// Kills the process unless it has another owner. The descriptor stays valid; no other function may be called any
  /// more.
  void end_process() { process_.reset(); }
  /// "in a process of its own, number 4711, on cpu"; after start().
  std::string where() const;
  /// The NF's number within its process.
  std::size_t number() const { return number_; }
  /// Whether the NF keeps state of packets, as its process reported.
  bool has_state() const { return own_sharding_ != nf::Sharding::kPacket; }
  /// Overrides the reported sharding.
  void set_sharding(nf::Sharding sharding) { descriptor_.sharding = sharding; }
  /// Sets the input for creating the process's NFs; before start(), and for number 0 alone.
  void prepare(Setup setup) { setup_ = std::move(setup); }

  /// Has the process create its NFs if this is number 0. Errors: the NFs' own.
  Status start(nf::RunContext const& context) override;
  nf::Hints hints() const override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  Status finish() override { return process_->ended(number_); }
  std::vector<std::string> start_report() const override;
  std::vector<std::string> end_report() const override { return process_->end_lines(number_); }
  std::vector<nf::Statistic> statistics() const override { return process_->statistics(number_); }

 private:
  std::shared_ptr<NfProcess> process_;
  std::size_t number_;
  std::vector<std::pair<std::string, std::string>> reason_texts_;  ///< strings of reasons_
  std::vector<nf::DropReason> reasons_;
  std::vector<std::pair<std::string, std::string>> output_texts_;  ///< strings of outputs_
  std::vector<nf::PacketOutput> outputs_;
  std::string type_;
  std::string help_;
  nf::Sharding own_sharding_;
  nf::Descriptor descriptor_;
  Setup setup_;
};

}  // namespace catena::nf_process
