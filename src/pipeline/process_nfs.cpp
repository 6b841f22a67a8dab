// SPDX-License-Identifier: Apache-2.0
#include "pipeline/process_nfs.hpp"

#include "pipeline/process_counts.hpp"

#include <utility>

namespace catena::runtime {

ProcessNfs::ProcessNfs(std::vector<nf::Instance*> const& instances) {
  for (nf::Instance* const instance : instances) {
    nfs_.push_back({instance, std::make_unique<ProcessPart>(), {}, {}});
  }
}

void ProcessNfs::begin() {
  for (OfNf& nf : nfs_) {
    nf.given_part = {};
    nf.seen.clear();
  }
}

void ProcessNfs::continue_from(ProcessNfs& before) {
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    nfs_[i].given_part = before.nfs_[i].given_part;
    nfs_[i].seen = std::move(before.nfs_[i].seen);
  }
}

void ProcessNfs::exchange_parts(nf_process::Channel const& channel) {
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    OfNf& nf = nfs_[i];
    if (const nf_process::GpuPart part = nf.part->given(); part != nf.given_part) {
      channel.give_part(i, part);
      nf.given_part = part;
    }
    nf.part->take(channel.taken_part(i));
  }
}

void ProcessNfs::take_counts(nf_process::Channel const& channel) {
  for (std::size_t i = 0; i < nfs_.size(); ++i) {
    add_counts(channel.counts(i), nfs_[i].seen, nfs_[i].instance->counters());
  }
}

}  // namespace catena::runtime
