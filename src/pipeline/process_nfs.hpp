// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/instance.hpp"
#include "pipeline/isolation/channel.hpp"
#include "pipeline/process_part.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace catena::runtime {

/// The NFs of another process, in packet order: exchanges their counts and GPU partitions with it. One thread, unless
/// stated otherwise. Call order: begin() for each incarnation, or continue_from() -> the functions with a channel.
class ProcessNfs {
 public:
  /// `instances`: at least one; they outlive this.
  explicit ProcessNfs(std::vector<nf::Instance*> const& instances);

  std::size_t size() const { return nfs_.size(); }
  nf::Instance& operator[](std::size_t nf) const { return *nfs_[nf].instance; }
  nf::Instance& first() const { return *nfs_.front().instance; }
  nf::Instance& last() const { return *nfs_.back().instance; }
  /// Valid as long as this. Any thread.
  ProcessPart& part_of(std::size_t nf) { return *nfs_[nf].part; }

  /// The next calls are about a new incarnation of the process.
  void begin();
  /// Continues with the incarnation of `before`, which has the same NFs of another chain.
  void continue_from(ProcessNfs& before);
  /// Sends assigned partitions to the process, after changes only, and records the reported ones.
  void exchange_parts(nf_process::Channel const& channel);
  /// Adds the counts of the process since the last call. As add_counts() of process_counts.hpp.
  void take_counts(nf_process::Channel const& channel);

 private:
  struct OfNf {
    nf::Instance* instance;
    std::unique_ptr<ProcessPart> part;
    nf_process::GpuPart given_part;   ///< in this incarnation
    std::vector<std::uint64_t> seen;  ///< of its counts, in this incarnation
  };
  std::vector<OfNf> nfs_;
};

}  // namespace catena::runtime
