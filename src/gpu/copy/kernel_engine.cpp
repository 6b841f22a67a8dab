// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/kernel_engine.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <utility>
#include <vector>

#include "catena_kernel_move.hpp"
#include "gpu/copy/move_params.hpp"
#include "gpu/program/program.hpp"

namespace catena::copy {
namespace {

using hostcopy::Engine;
using hostcopy::Move;

constexpr std::string_view kMoveKernel = "catena_move";
constexpr std::uint32_t kBatchJobs = 32;  ///< of a launch at most
constexpr std::size_t kBatches = 8;       ///< in flight
constexpr std::uint32_t kGroupSize = 256;
constexpr std::uint32_t kPartBytes = 16 * 1024;
constexpr std::uint32_t kLargestMove = 1U << 20U;
constexpr std::chrono::seconds kFirstLaunch{30};

/// A job of a launch: the parts from that of the job before on.
struct BatchJob {
  Engine::Job job;
  std::uint32_t end_part;
};

/// Jobs of one launch.
struct MoveBatch {
  std::unique_ptr<device::PinnedBuffer> memory;  ///< a MoveTable
  std::vector<BatchJob> jobs;
  std::uint32_t parts = 0;
  std::uint32_t launch = 0;  ///< its number
  std::size_t completed_jobs = 0;
  std::uint32_t copied_parts = 0;

  MoveTable& table() { return *reinterpret_cast<MoveTable*>(memory->bytes().data()); }
  bool is_copied(std::uint32_t part) {
    return std::atomic_ref(table().copied[part]).load(std::memory_order_acquire) == launch;
  }
};

class KernelEngine final : public Engine {
 public:
  KernelEngine(std::shared_ptr<device::Device> device, std::unique_ptr<device::Program> program, device::Kernel* kernel)
      : device_(std::move(device)), program_(std::move(program)), kernel_(kernel) {}

  std::string name() const override { return device_->info().backend; }
  Capabilities capabilities() const override {
    return {.is_ordered = true, .needs_registration = true, .largest_move = kLargestMove};
  }

  Status configure(Limits const& limits) override {
    limits_ = limits;
    CATENA_ASSIGN_OR_RETURN(stream_, device_->create_stream());
    batches_.clear();
    for (std::size_t i = 0; i < kBatches; ++i) {
      MoveBatch& batch = batches_.emplace_back();
      CATENA_ASSIGN_OR_RETURN(batch.memory, device_->allocate_pinned(sizeof(MoveTable)));
      if (batch.memory->window() == nullptr) {
        return absl::UnavailableError(concat(device_->info().name, " cannot access host memory"));
      }
      std::ranges::fill(batch.table().copied, launches_);
      batch.jobs.reserve(kBatchJobs);
    }
    // a driver may compile a kernel at its first launch: no job waits for that
    CATENA_RETURN_IF_ERROR(run(batches_.front(), {.parts = 0, .launch = launches_}));
    CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<device::Event> first, stream_->record());
    return first->wait(kFirstLaunch, "the first launch of a copy engine");
  }

  Status register_memory(std::span<std::byte> memory) override {
    if (windows_.size() == kMoveWindows) {
      return absl::ResourceExhaustedError(concat("a copy engine reaches ", kMoveWindows, " memories"));
    }
    CATENA_ASSIGN_OR_RETURN(std::unique_ptr<device::Buffer> buffer, device_->map_host(memory));
    windows_.push_back({memory, std::move(buffer)});
    return absl::OkStatus();
  }

  Status enqueue_copy(Job job, std::span<const Move> moves) override {
    std::uint32_t parts = 0;
    for (Move const& move : moves) {
      if (move.bytes > kLargestMove || !window_of(move.from, move.bytes) || !window_of(move.to, move.bytes)) {
        return absl::InvalidArgumentError("a move of unregistered memory, or of more than 1 MiB");
      }
      parts += (move.bytes + kPartBytes - 1) / kPartBytes;
    }
    if (parts > kMoveParts || moves.size() > limits_.moves) {
      return absl::InvalidArgumentError("a job of more moves than were configured");
    }
    if (jobs_ == limits_.jobs) {
      return absl::ResourceExhaustedError("as many jobs as configured are in flight");
    }
    if (launched_ < kBatches && batches_[launched_].parts + parts > kMoveParts) {
      CATENA_RETURN_IF_ERROR(launch());
    }
    if (launched_ == kBatches) {
      return absl::ResourceExhaustedError("all launches are in flight");
    }
    MoveBatch& batch = batches_[launched_];
    for (Move const& move : moves) {
      add(batch, move);
    }
    batch.jobs.push_back({job, batch.parts});
    ++jobs_;
    has_come_since_poll_ = true;
    return batch.jobs.size() == kBatchJobs ? launch() : absl::OkStatus();
  }

  Result<std::optional<Completion>> dequeue_copy() override {
    Result<std::optional<Completion>> first = peek_copy();
    if (first.ok() && *first) {
      completed_.pop_front();
      --jobs_;
    }
    return first;
  }

  Result<std::optional<Completion>> peek_copy() override {
    if (completed_.empty()) {
      collect();
    }
    // jobs wait for more as long as some come between two fruitless polls: a launch costs the same for one and for many
    if (completed_.empty() && !std::exchange(has_come_since_poll_, false)) {
      CATENA_RETURN_IF_ERROR(launch());
    }
    return completed_.empty() ? std::nullopt : std::optional(Completion{completed_.front(), true});
  }

  bool stop() override {
    // a launch that does not end cannot be stopped, one that failed is over: the driver tells when asked
    return launched_ == 0 || !stream_->record().ok() || device_->is_gone();
  }

 private:
  struct Window {
    std::span<std::byte> memory;
    std::unique_ptr<device::Buffer> buffer;
  };

  std::optional<std::uint16_t> window_of(const std::byte* at, std::size_t bytes) const {
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      std::span<std::byte> const& memory = windows_[i].memory;
      if (at >= memory.data() && at <= memory.data() + memory.size() &&
          bytes <= static_cast<std::size_t>(memory.data() + memory.size() - at)) {
        return static_cast<std::uint16_t>(i);
      }
    }
    return std::nullopt;
  }

  void add(MoveBatch& batch, Move const& move) {
    const std::uint16_t from = *window_of(move.from, move.bytes);
    const std::uint16_t to = *window_of(move.to, move.bytes);
    const auto from_at = static_cast<u64>(move.from - windows_[from].memory.data());
    const auto to_at = static_cast<u64>(move.to - windows_[to].memory.data());
    for (std::uint32_t begin = 0; begin < move.bytes; begin += kPartBytes) {
      batch.table().parts[batch.parts++] = {from_at + begin, to_at + begin, std::min(kPartBytes, move.bytes - begin),
                                            from, to};
    }
  }

  /// Launches the batch that is being filled, if it has jobs.
  Status launch() {
    if (launched_ == kBatches || batches_[launched_].jobs.empty()) {
      return absl::OkStatus();
    }
    MoveBatch& batch = batches_[launched_];
    batch.launch = ++launches_;
    if (batch.parts > 0) {
      CATENA_RETURN_IF_ERROR(run(batch, {.parts = batch.parts, .launch = batch.launch}));
    }
    ++launched_;
    return stream_->flush();
  }

  /// Enqueues the kernel for the parts of a batch.
  Status run(MoveBatch& batch, MoveParams const& params) {
    std::array<device::KernelArgument, kMoveWindows + 3> arguments;
    arguments[0] = batch.memory->window();
    for (std::size_t i = 0; i < kMoveWindows; ++i) {
      arguments[1 + i] = i < windows_.size() ? windows_[i].buffer.get() : static_cast<device::Buffer*>(nullptr);
    }
    arguments[1 + kMoveWindows] = std::as_bytes(std::span(&params, 1));
    arguments[2 + kMoveWindows] = device::BufferSizes{};
    const std::uint32_t groups = std::max(params.parts, 1U);
    return stream_->launch(*kernel_, {.groups = groups, .group_size = kGroupSize}, arguments);
  }

  /// Takes the jobs whose parts are in place, in order.
  void collect() {
    while (launched_ > 0) {
      MoveBatch& oldest = batches_.front();
      while (oldest.copied_parts < oldest.parts && oldest.is_copied(oldest.copied_parts)) {
        ++oldest.copied_parts;
      }
      while (oldest.completed_jobs < oldest.jobs.size() &&
             oldest.jobs[oldest.completed_jobs].end_part <= oldest.copied_parts) {
        completed_.push_back(oldest.jobs[oldest.completed_jobs++].job);
      }
      if (oldest.completed_jobs < oldest.jobs.size()) {
        break;
      }
      oldest.jobs.clear();
      oldest.parts = oldest.copied_parts = 0;
      oldest.completed_jobs = 0;
      std::rotate(batches_.begin(), batches_.begin() + 1, batches_.end());
      --launched_;
    }
  }

  std::shared_ptr<device::Device> device_;
  std::unique_ptr<device::Program> program_;
  device::Kernel* kernel_;
  std::vector<Window> windows_;
  std::vector<MoveBatch> batches_;  ///< the launched ones, oldest first; then the one being filled; then empty ones
  std::size_t launched_ = 0;
  std::deque<Job> completed_;
  std::uint32_t jobs_ = 0;  ///< enqueued and not dequeued
  std::uint32_t launches_ = 0;
  bool has_come_since_poll_ = false;  ///< a job, since the last poll that found none complete
  Limits limits_{};
  std::unique_ptr<device::Stream> stream_;  ///< last member: waits for launches
};

Result<device::Backend const*> find_backend(std::string_view name) {
  for (device::Backend const& backend : device::backends()) {
    if (backend.name == name) {
      return &backend;
    }
  }
  return absl::UnavailableError(concat("this build has no backend '", name, "'"));
}

Status probe_backend(std::string_view name) {
  CATENA_ASSIGN_OR_RETURN(device::Backend const* backend, find_backend(name));
  return backend->probe().status;
}

Result<std::unique_ptr<Engine>> open_backend(std::string_view name) {
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<device::Device> device, device::open(device::DevicePreference::of(name)));
  return make_kernel_engine(std::move(device));
}

Result<ProcessNeeds> needs_of_backend(std::string_view name) {
  CATENA_ASSIGN_OR_RETURN(device::Backend const* backend, find_backend(name));
  return backend->needs();
}

constexpr std::array kKinds{
    hostcopy::EngineKind{"cuda", [] { return probe_backend("cuda"); }, [] { return open_backend("cuda"); },
                         "a kernel on an NVIDIA GPU, which reads and writes host memory", false,
                         [] { return needs_of_backend("cuda"); }},
    hostcopy::EngineKind{"opencl", [] { return probe_backend("opencl"); }, [] { return open_backend("opencl"); },
                         "the same kernel on cores of the CPU", true, [] { return needs_of_backend("opencl"); }},
};

}  // namespace

Result<std::unique_ptr<Engine>> make_kernel_engine(std::shared_ptr<device::Device> device) {
  CATENA_ASSIGN_OR_RETURN(
      std::unique_ptr<device::Program> program,
      program::build(*device, program::with_sdk(catena_kernel_move()), "the kernel of the copy engine"));
  CATENA_ASSIGN_OR_RETURN(device::Kernel * kernel, program->kernel(kMoveKernel));
  return std::make_unique<KernelEngine>(std::move(device), std::move(program), kernel);
}

std::span<const hostcopy::EngineKind> kernel_engine_kinds() { return kKinds; }

}  // namespace catena::copy
