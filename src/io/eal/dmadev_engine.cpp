// SPDX-License-Identifier: Apache-2.0
#include "io/eal/dmadev_engine.hpp"

#include <catena/core/text.hpp>

#include <rte_bus_vdev.h>
#include <rte_dmadev.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <rte_vfio.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <deque>
#include <mutex>
#include <set>
#include <string>

#include "io/eal/eal.hpp"

namespace catena::eal {
namespace {

using hostcopy::Engine;
using hostcopy::Move;

constexpr std::uint16_t kChannel = 0;
constexpr std::uint16_t kCompletionsAtOnce = 64;

/// The dmadevs that engines of this process have.
class Taken {
 public:
  static Taken& instance() {
    static Taken taken;
    return taken;
  }
  /// Precondition: nobody has `device`.
  bool take(std::int16_t device) {
    const std::lock_guard lock(mutex_);
    return devices_.insert(device).second;
  }
  void release(std::int16_t device) {
    const std::lock_guard lock(mutex_);
    devices_.erase(device);
  }

 private:
  std::mutex mutex_;
  std::set<std::int16_t> devices_;
};

Status failed(std::string_view what, int code) {
  return absl::UnavailableError(concat("dmadev: ", what, ": ", rte_strerror(-code)));
}

class DmadevEngine final : public Engine {
 public:
  /// Precondition: `device` is in Taken, for this engine.
  DmadevEngine(std::int16_t device, std::string_view name) : device_(device), name_(name) {
    rte_dma_info_get(device_, &info_);
  }
  ~DmadevEngine() override {
    stop();
    Taken::instance().release(device_);
  }

  std::string name() const override { return name_; }
  Capabilities capabilities() const override {
    return {
        .is_ordered = true, .needs_registration = (info_.dev_capa & RTE_DMA_CAPA_SVA) == 0, .node = info_.numa_node};
  }

  Status configure(Limits const& limits) override {
    limits_ = limits;
    stop();
    const rte_dma_conf device{.nb_vchans = 1, .enable_silent = false};
    if (const int code = rte_dma_configure(device_, &device); code != 0) {
      return failed("configure", code);
    }
    rte_dma_vchan_conf channel{};
    channel.direction = RTE_DMA_DIR_MEM_TO_MEM;
    const std::uint64_t wanted = std::bit_ceil(std::uint64_t{limits.jobs} * limits.moves);
    channel.nb_desc = static_cast<std::uint16_t>(std::clamp<std::uint64_t>(wanted, info_.min_desc, info_.max_desc));
    if (const int code = rte_dma_vchan_setup(device_, kChannel, &channel); code != 0) {
      return failed("set up a channel", code);
    }
    if (const int code = rte_dma_start(device_); code != 0) {
      return failed("start", code);
    }
    is_started_ = true;
    return absl::OkStatus();
  }

  Status register_memory(std::span<std::byte> memory) override {
    if ((info_.dev_capa & RTE_DMA_CAPA_SVA) != 0) {
      return absl::OkStatus();
    }
    const auto address = reinterpret_cast<std::uint64_t>(memory.data());
    const int code = rte_vfio_container_dma_map(RTE_VFIO_DEFAULT_CONTAINER_FD, address, address, memory.size());
    return code == 0 ? absl::OkStatus() : failed("map memory", -rte_errno);
  }

  Status unregister_memory(std::span<std::byte> memory) override {
    if ((info_.dev_capa & RTE_DMA_CAPA_SVA) != 0) {
      return absl::OkStatus();
    }
    const auto address = reinterpret_cast<std::uint64_t>(memory.data());
    const int code = rte_vfio_container_dma_unmap(RTE_VFIO_DEFAULT_CONTAINER_FD, address, address, memory.size());
    return code == 0 || rte_errno == ENOENT ? absl::OkStatus() : failed("unmap memory", -rte_errno);
  }

  Status enqueue_copy(Job job, std::span<const Move> moves) override {
    const auto moved =
        static_cast<std::size_t>(std::ranges::count_if(moves, [](Move const& move) { return move.bytes > 0; }));
    if (moves.size() > limits_.moves) {
      return absl::InvalidArgumentError("a job of more moves than were configured");
    }
    if (jobs_.size() == limits_.jobs || rte_dma_burst_capacity(device_, kChannel) < moved) {
      return absl::ResourceExhaustedError("all descriptors are in use");
    }
    for (Move const& move : moves) {
      if (move.bytes == 0) {  // drivers refuse a copy of nothing
        continue;
      }
      const int index = rte_dma_copy(device_, kChannel, reinterpret_cast<rte_iova_t>(move.from),
                                     reinterpret_cast<rte_iova_t>(move.to), move.bytes, 0);
      if (index < 0) {
        return failed("enqueue a copy", index);
      }
    }
    if (const int code = rte_dma_submit(device_, kChannel); code != 0) {
      return failed("submit", code);
    }
    jobs_.push_back({job, moved, true});
    return absl::OkStatus();
  }

  Result<std::optional<Completion>> dequeue_copy() override {
    Result<std::optional<Completion>> first = peek_copy();
    if (*first) {
      jobs_.pop_front();
      --completed_;
    }
    return first;
  }

  Result<std::optional<Completion>> peek_copy() override {
    if (completed_ == 0) {
      collect();
    }
    return completed_ == 0 ? std::nullopt : std::optional(Completion{jobs_.front().job, jobs_.front().is_moved});
  }

  bool stop() override {
    jobs_.clear();
    completed_ = 0;
    if (is_started_) {
      is_started_ = rte_dma_stop(device_) != 0;
    }
    return !is_started_;
  }

 private:
  struct Entry {
    Job job;
    std::size_t moves;  ///< not yet completed
    bool is_moved;
  };

  /// Copies complete in the order of their descriptors.
  void collect() {
    std::array<rte_dma_status_code, kCompletionsAtOnce> states{};
    std::uint16_t last = 0;
    const std::uint16_t count = rte_dma_completed_status(device_, kChannel, kCompletionsAtOnce, &last, states.data());
    std::size_t state = 0;
    while (completed_ < jobs_.size()) {
      Entry& entry = jobs_[completed_];
      while (entry.moves > 0 && state < count) {
        entry.is_moved = entry.is_moved && states[state] == RTE_DMA_STATUS_SUCCESSFUL;
        --entry.moves;
        ++state;
      }
      if (entry.moves > 0) {
        return;
      }
      ++completed_;
    }
  }

  std::int16_t device_;
  std::string name_;
  rte_dma_info info_{};
  Limits limits_{};
  bool is_started_ = false;
  std::deque<Entry> jobs_;     ///< not dequeued, oldest first
  std::size_t completed_ = 0;  ///< of jobs_, from its begin
};

bool is_skeleton(std::int16_t device) {
  rte_dma_info info{};
  return rte_dma_info_get(device, &info) == 0 && std::string_view(info.dev_name).starts_with("dma_skeleton");
}

Status probe_dmadev() {
  for (std::int16_t device = rte_dma_next_dev(0); device != -1;
       device = rte_dma_next_dev(static_cast<std::int16_t>(device + 1))) {
    if (!is_skeleton(device)) {
      return absl::OkStatus();
    }
  }
  return absl::UnavailableError(
      "no DMA device: bind one (Intel CBDMA or DSA) to vfio-pci and name it in `eal: [-a ADDRESS]`");
}

Result<ProcessNeeds> need_vfio() {
  return absl::UnimplementedError(
      "copy engine 'dmadev' needs VFIO and hugepages, which a sandbox does not have; use 'cuda' or 'cpu-stream'");
}

Result<std::unique_ptr<Engine>> open_dmadev() {
  CATENA_RETURN_IF_ERROR(start());
  for (std::int16_t device = rte_dma_next_dev(0); device != -1;
       device = rte_dma_next_dev(static_cast<std::int16_t>(device + 1))) {
    if (!is_skeleton(device) && Taken::instance().take(device)) {
      return std::make_unique<DmadevEngine>(device, "dmadev");
    }
  }
  CATENA_RETURN_IF_ERROR(probe_dmadev());
  return absl::UnavailableError("all DMA devices are in use");
}

Status probe_skeleton() { return absl::OkStatus(); }

/// DPDK makes one skeleton device in a process.
Result<std::unique_ptr<Engine>> open_skeleton() {
  constexpr const char* kName = "dma_skeleton";
  CATENA_RETURN_IF_ERROR(start());
  if (rte_dma_get_dev_id_by_name(kName) < 0) {
    if (const int code = rte_vdev_init(kName, ""); code != 0) {
      return failed("make the skeleton device", code);
    }
  }
  const auto device = static_cast<std::int16_t>(rte_dma_get_dev_id_by_name(kName));
  if (device < 0 || !Taken::instance().take(device)) {
    return absl::UnavailableError("the skeleton device is in use");
  }
  return std::make_unique<DmadevEngine>(device, "dmadev-skeleton");
}

constexpr std::array kKinds{
    hostcopy::EngineKind{"dmadev", &probe_dmadev, &open_dmadev, "a DMA device by DPDK: Intel CBDMA (ioat), DSA (idxd)",
                         false, &need_vfio},
    hostcopy::EngineKind{"dmadev-skeleton", &probe_skeleton, &open_skeleton, "a thread of DPDK's", true,
                         [] { return Result<ProcessNeeds>(needs()); }},
};

}  // namespace

std::span<const hostcopy::EngineKind> dmadev_engine_kinds() { return kKinds; }

}  // namespace catena::eal
