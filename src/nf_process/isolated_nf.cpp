// SPDX-License-Identifier: Apache-2.0
#include "nf_process/isolated_nf.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/fields.hpp>

#include <utility>

namespace catena::nf_process {

Result<std::unique_ptr<IsolatedNf>> IsolatedNf::create(ProcessOptions options) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<NfProcess> process, NfProcess::create(std::move(options)));
  return std::unique_ptr<IsolatedNf>(new IsolatedNf(std::move(process)));
}

IsolatedNf::IsolatedNf(std::unique_ptr<NfProcess> process) : process_(std::move(process)) {
  Described const& described = process_->described();
  for (auto const& [name, help] : described.drop_reasons) {
    reasons_.push_back({name, help});
  }
  descriptor_.type = described.type;
  descriptor_.help = described.help;
  descriptor_.drop_reasons = reasons_;
  descriptor_.needs = 0;
  descriptor_.refuses = 0;
  descriptor_.takes_unsupported = true;  // the process says what it does not inspect
  descriptor_.has_kernel = described.has_kernel;
}

Status IsolatedNf::start(nf::RunContext const& context) {
  setup_.context = context;
  return process_->start(setup_);
}

nf::Hints IsolatedNf::hints() const { return {.cr = packet::kAllFields, .cw = packet::kAllFields}; }

void IsolatedNf::compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
                         std::span<std::byte> /*results*/) {}

std::vector<std::string> IsolatedNf::start_report() const {
  std::vector<std::string> lines{
      concat("in a process of its own, number ", process_->pid(), setup_.on_gpu ? ", on gpu" : ", on cpu")};
  const std::vector<std::string> own = process_->start_lines();
  lines.insert(lines.end(), own.begin(), own.end());
  return lines;
}

}  // namespace catena::nf_process
