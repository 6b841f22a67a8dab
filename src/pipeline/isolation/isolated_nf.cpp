// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/isolated_nf.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/fields.hpp>

#include <utility>

namespace catena::nf_process {

IsolatedNf::IsolatedNf(std::shared_ptr<NfProcess> process, std::size_t number, NfInfo const& described)
    : process_(std::move(process)),
      number_(number),
      reason_texts_(described.drop_reasons),
      output_texts_(described.packet_outputs),
      type_(described.type),
      help_(described.help),
      own_sharding_(described.sharding) {
  for (auto const& [name, help] : reason_texts_) {
    reasons_.push_back({name, help});
  }
  for (auto const& [name, help] : output_texts_) {
    outputs_.push_back({name, help});
  }
  descriptor_.type = type_;
  descriptor_.help = help_;
  descriptor_.drop_reasons = reasons_;
  descriptor_.packet_outputs = outputs_;
  descriptor_.needs = 0;
  descriptor_.refuses = 0;
  descriptor_.takes_unsupported = true;  // the process says what it does not inspect
  descriptor_.has_kernel = described.has_kernel;
  // one that names shards of its own cannot be asked for each packet
  descriptor_.sharding = described.sharding == nf::Sharding::kOwn ? nf::Sharding::kNone : described.sharding;
}

Status IsolatedNf::start(nf::RunContext const& context) {
  if (number_ != 0) {
    return absl::OkStatus();
  }
  setup_.context = context;
  return process_->start(setup_);
}

nf::Hints IsolatedNf::hints() const { return {.cr = packet::kAllFields, .cw = packet::kAllFields}; }

void IsolatedNf::compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
                         std::span<std::byte> /*results*/) {}

std::string IsolatedNf::where() const {
  return concat(process_->group().empty() ? "in a process of its own"
                                          : concat("in the process of group '", process_->group(), "'"),
                ", number ", process_->pid(), process_->setup().nfs[number_].on_gpu ? ", on gpu" : ", on cpu");
}

std::vector<std::string> IsolatedNf::start_report() const {
  std::vector<std::string> lines{where()};
  const std::vector<std::string> own = process_->start_lines(number_);
  lines.insert(lines.end(), own.begin(), own.end());
  return lines;
}

}  // namespace catena::nf_process
