// SPDX-License-Identifier: Apache-2.0
#include "profile/copy_measure.hpp"

#include <catena/core/text.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>

namespace catena::profile {
namespace {

using hostcopy::Engine;
using hostcopy::Move;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kInFlight = 256;
constexpr std::chrono::seconds kPatience{5};

double thread_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// Sources and targets, each of the same size.
class CopyMemory {
 public:
  explicit CopyMemory(std::size_t bytes) : bytes_(bytes) {
    void* const mapped = ::mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base_ = mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
    if (base_ != nullptr) {
      for (std::size_t i = 0; i < bytes; ++i) {
        base_[i] = static_cast<std::byte>(i * 131 + i / 4096 * 7);
      }
      std::memset(base_ + bytes, 0, bytes);
    }
  }
  ~CopyMemory() {
    if (base_ != nullptr) {
      ::munmap(base_, 2 * bytes_);
    }
  }
  CopyMemory(CopyMemory const&) = delete;
  CopyMemory& operator=(CopyMemory const&) = delete;
  bool is_ok() const { return base_ != nullptr; }
  std::span<std::byte> all() const { return {base_, 2 * bytes_}; }
  /// Copy number `i` of copies of `size` bytes: their places are apart.
  Move move(std::uint64_t i, std::uint32_t size) const {
    const std::size_t at = i % (bytes_ / size) * size;
    return {base_ + at, base_ + bytes_ + at, size};
  }
  void clear_targets() const { std::memset(base_ + bytes_, 0, bytes_); }
  bool are_copied(std::uint64_t copies, std::uint32_t size) const {
    return std::memcmp(base_, base_ + bytes_, std::min<std::size_t>(copies, bytes_ / size) * size) == 0;
  }

 private:
  std::byte* base_ = nullptr;
  std::size_t bytes_;
};

/// Copies until `until` (and for `least` copies); the number of copies.
Result<std::uint64_t> run(Engine& engine, CopyMemory const& memory, std::uint32_t size, std::uint64_t least,
                          Clock::time_point until, std::uint32_t poll_at) {
  std::vector<Move> moves(kInFlight);
  std::vector<std::uint32_t> free(kInFlight);
  for (std::uint32_t i = 0; i < kInFlight; ++i) {
    free[i] = i;
  }
  std::uint64_t started = 0;
  std::uint64_t done = 0;
  const Clock::time_point deadline = until + kPatience;
  while (done < started || started < least || Clock::now() < until) {
    const bool goes_on = started < least || Clock::now() < until;
    bool is_full = !goes_on || free.empty();
    for (std::uint32_t i = 0; i < poll_at && goes_on && !is_full && !free.empty(); ++i) {
      const std::uint32_t entry = free.back();
      moves[entry] = memory.move(started, size);
      const Status enqueued = engine.enqueue_copy(entry, std::span(&moves[entry], 1));
      is_full = absl::IsResourceExhausted(enqueued);
      if (!is_full) {
        CATENA_RETURN_IF_ERROR(enqueued);
        free.pop_back();
        ++started;
      }
    }
    if (started - done > poll_at || is_full) {
      for (;;) {
        CATENA_ASSIGN_OR_RETURN(const std::optional<Engine::Completion> completion, engine.dequeue_copy());
        if (!completion) {
          break;
        }
        free.push_back(static_cast<std::uint32_t>(completion->job));
        ++done;
      }
    }
    if (Clock::now() > deadline) {
      return absl::DeadlineExceededError("it does not complete its jobs");
    }
  }
  return done;
}

Status measure(EngineCopies& result, CopyMemory const& memory, CopyMeasureOptions const& options) {
  CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, result.kind.open());
  CATENA_RETURN_IF_ERROR(engine->configure({kInFlight, 1}));
  CATENA_RETURN_IF_ERROR(engine->register_memory(memory.all()));
  for (const std::uint32_t size : options.sizes) {
    memory.clear_targets();
    CATENA_ASSIGN_OR_RETURN(const std::uint64_t warm,
                            run(*engine, memory, size, kInFlight, Clock::now(), options.poll_at));
    if (!memory.are_copied(warm, size)) {
      return absl::DataLossError(concat("copies of ", size, " bytes have other bytes than their sources"));
    }
    const Clock::time_point begin = Clock::now();
    const double cpu_begin = thread_ns();
    CATENA_ASSIGN_OR_RETURN(
        const std::uint64_t copies,
        run(*engine, memory, size, 1,
            begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds)),
            options.poll_at));
    const double cpu_ns = thread_ns() - cpu_begin;
    const double wall_ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    const auto count = static_cast<double>(copies);
    result.points.push_back({size, cpu_ns / count, count * size * 8 / wall_ns});
  }
  return absl::OkStatus();
}

}  // namespace

Result<std::vector<EngineCopies>> measure_copies(std::span<const hostcopy::EngineKind> kinds,
                                                 CopyMeasureOptions const& options,
                                                 std::function<void(std::string_view engine)> const& begins) {
  const CopyMemory memory(options.memory_bytes);
  if (!memory.is_ok()) {
    return absl::UnavailableError(concat("no ", 2 * options.memory_bytes, " bytes of memory for copies"));
  }
  std::vector<EngineCopies> results;
  for (hostcopy::EngineKind const& kind : kinds) {
    begins(kind.name);
    EngineCopies& result = results.emplace_back(EngineCopies{kind, absl::OkStatus(), {}});
    result.status = measure(result, memory, options);
  }
  return results;
}

std::optional<ProposedThreshold> propose_threshold(std::span<const EngineCopies> engines) {
  const auto is_cpu = [](EngineCopies const& engine) { return engine.kind.name.starts_with(hostcopy::kCpuEngine); };
  std::vector<chain::CopyPoint> best_of_cpu;
  for (EngineCopies const& engine : engines) {
    for (std::size_t i = 0; is_cpu(engine) && i < engine.points.size(); ++i) {
      if (i == best_of_cpu.size()) {
        best_of_cpu.push_back(engine.points[i]);
      }
      best_of_cpu[i].cpu_ns = std::min(best_of_cpu[i].cpu_ns, engine.points[i].cpu_ns);
    }
  }
  std::optional<ProposedThreshold> threshold;
  for (EngineCopies const& engine : engines) {
    if (is_cpu(engine) || engine.kind.is_for_tests || !engine.status.ok()) {
      continue;
    }
    const std::optional<std::uint32_t> bytes = chain::least_paying_bytes(engine.points, best_of_cpu);
    if (bytes && (!threshold || *bytes < threshold->bytes)) {
      threshold = ProposedThreshold{std::string(engine.kind.name), *bytes};
    }
  }
  return threshold;
}

}  // namespace catena::profile
