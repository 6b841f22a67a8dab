// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pipeline/isolation/channel.hpp"

#include <atomic>

namespace catena::runtime {

/// GPU partition of an NF in another process. Any thread.
class ProcessPart {
 public:
  /// Assigns the partition, in this incarnation of the process and the next ones.
  void give(nf_process::GpuPart part) { given_.store(part); }
  nf_process::GpuPart given() const { return given_.load(std::memory_order_relaxed); }
  /// Records the partition reported by the NF.
  void take(nf_process::GpuPart part) { taken_.store(part, std::memory_order_relaxed); }
  nf_process::GpuPart taken() const { return taken_.load(); }

 private:
  std::atomic<nf_process::GpuPart> given_{};
  std::atomic<nf_process::GpuPart> taken_{};
};

}  // namespace catena::runtime
