// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/kernel_engine.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
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

/// A registered memory.
struct MoveWindow {
  std::span<std::byte> memory;
  std::unique_ptr<device::Buffer> buffer;
};

/// Jobs of one launch.
struct MoveBatch {
  std::unique_ptr<device::PinnedBuffer> memory;  ///< a MoveTable
  std::vector<BatchJob> jobs;
  std::vector<MoveWindow const*> windows;  ///< of the parts, up to kMoveWindows; used until the launch
  std::uint32_t parts = 0;
  std::uint32_t launch = 0;  ///< its number
  std::size_t completed_jobs = 0;
  std::uint32_t copied_parts = 0;

  MoveTable& table() { return *reinterpret_cast<MoveTable*>(memory->bytes().data()); }
  bool is_copied(std::uint32_t part) {
    return std::atomic_ref(table().copied[part]).load(std::memory_order_acquire) == launch;
  }
  /// The place of `window` in `windows`, where it is added.
  std::uint16_t place_of(MoveWindow const& window) {
    const auto place = std::ranges::find(windows, &window);
    const auto number = static_cast<std::uint16_t>(place - windows.begin());
    if (place == windows.end()) {
      windows.push_back(&window);
    }
    return number;
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
      batch.windows.reserve(kMoveWindows);
    }
    // a driver may compile a kernel at its first launch: no job waits for that
    CATENA_RETURN_IF_ERROR(run(batches_.front(), {.parts = 0, .launch = launches_}));
    CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<device::Event> first, stream_->record());
    return first->wait(kFirstLaunch, "the first launch of a copy engine");
  }

  Status register_memory(std::span<std::byte> memory) override {
    CATENA_ASSIGN_OR_RETURN(std::unique_ptr<device::Buffer> buffer, device_->map_host(memory));
    windows_[memory.data()] = {memory, std::move(buffer)};
    return absl::OkStatus();
  }

  Status unregister_memory(std::span<std::byte> memory) override {
    windows_.erase(memory.data());
    return absl::OkStatus();
  }

  Status enqueue_copy(Job job, std::span<const Move> moves) override {
    std::uint32_t parts = 0;
    for (Move const& move : moves) {
      if (move.bytes > kLargestMove || window_of(move.from, move.bytes) == nullptr ||
          window_of(move.to, move.bytes) == nullptr) {
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
    if (launched_ < kBatches && !has_room(batches_[launched_], parts, moves)) {
      CATENA_RETURN_IF_ERROR(launch());
    }
    if (launched_ == kBatches) {
      return absl::ResourceExhaustedError("all launches are in flight");
    }
    MoveBatch& batch = batches_[launched_];
    if (batch.jobs.empty() && !has_room(batch, parts, moves)) {
      return absl::InvalidArgumentError(concat("a job with more than ", kMoveWindows, " memories"));
    }
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
  /// The registered memory with these bytes; null: none has them.
  MoveWindow const* window_of(const std::byte* at, std::size_t bytes) const {
    const auto after = windows_.upper_bound(at);
    if (after == windows_.begin()) {
      return nullptr;
    }
    MoveWindow const& window = std::prev(after)->second;
    const auto offset = static_cast<std::size_t>(at - window.memory.data());
    return offset <= window.memory.size() && bytes <= window.memory.size() - offset ? &window : nullptr;
  }

  /// Whether a launch has space for a job of registered memories beside the jobs it has.
  bool has_room(MoveBatch const& batch, std::uint32_t parts, std::span<const Move> moves) const {
    if (batch.parts + parts > kMoveParts) {
      return false;
    }
    std::array<MoveWindow const*, kMoveWindows> added{};
    std::size_t count = 0;
    for (Move const& move : moves) {
      for (MoveWindow const* const window : {window_of(move.from, move.bytes), window_of(move.to, move.bytes)}) {
        const std::span<MoveWindow const*> others = std::span(added).first(count);
        if (std::ranges::find(batch.windows, window) != batch.windows.end() ||
            std::ranges::find(others, window) != others.end()) {
          continue;
        }
        if (batch.windows.size() + count == kMoveWindows) {
          return false;
        }
        added[count++] = window;
      }
    }
    return true;
  }

  void add(MoveBatch& batch, Move const& move) const {
    MoveWindow const& from = *window_of(move.from, move.bytes);
    MoveWindow const& to = *window_of(move.to, move.bytes);
    const auto from_at = static_cast<u64>(move.from - from.memory.data());
    const auto to_at = static_cast<u64>(move.to - to.memory.data());
    const std::uint16_t from_place = batch.place_of(from);
    const std::uint16_t to_place = batch.place_of(to);
    for (std::uint32_t begin = 0; begin < move.bytes; begin += kPartBytes) {
      batch.table().parts[batch.parts++] = {from_at + begin, to_at + begin, std::min(kPartBytes, move.bytes - begin),
                                            from_place, to_place};
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
    batch.windows.clear();
    ++launched_;
    return stream_->flush();
  }

  /// Enqueues the kernel for the parts of a batch.
  Status run(MoveBatch& batch, MoveParams const& params) {
    std::array<device::KernelArgument, kMoveWindows + 3> arguments;
    arguments[0] = batch.memory->window();
    for (std::size_t i = 0; i < kMoveWindows; ++i) {
      arguments[1 + i] =
          i < batch.windows.size() ? batch.windows[i]->buffer.get() : static_cast<device::Buffer*>(nullptr);
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
  std::map<const std::byte*, MoveWindow> windows_;  ///< by their begin
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
