// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf_process/process.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/nf.hpp>
#include <catena/nf/persistent.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace catena::nf_process {

/// What stands in a chain for an NF that runs in a process of its own. It decides no packet: units go to the process
/// (runtime::ProcessStage). In its chain's plan it reads and writes everything, as
/// what it claims of itself may be another thing in its next life.
class IsolatedNf final : public nf::Nf, public nf::Persistent {
 public:
  /// Starts the process and asks it what its NF is. Errors: as NfProcess::create().
  static Result<std::unique_ptr<IsolatedNf>> create(ProcessOptions options);

  /// Of this NF: what the process said of it. Lives as long as this.
  nf::Descriptor const& descriptor() const { return descriptor_; }
  /// What the process is to make its NF of; before start().
  void prepare(Setup setup) { setup_ = std::move(setup); }
  NfProcess& process() { return *process_; }

  /// The process makes the NF. Errors: the NF's own.
  Status start(nf::RunContext const& context) override;
  nf::Hints hints() const override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  Status finish() override { return process_->ended(); }
  std::vector<std::string> start_report() const override;
  std::vector<std::string> end_report() const override { return process_->end_lines(); }
  std::vector<nf::Statistic> statistics() const override { return process_->statistics(); }

 private:
  explicit IsolatedNf(std::unique_ptr<NfProcess> process);

  std::unique_ptr<NfProcess> process_;
  std::vector<nf::DropReason> reasons_;
  nf::Descriptor descriptor_;
  Setup setup_;
};

}  // namespace catena::nf_process
