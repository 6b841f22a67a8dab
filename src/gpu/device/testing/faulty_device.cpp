// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/testing/faulty_device.hpp"

#include <array>
#include <limits>
#include <mutex>
#include <vector>

namespace catena::device::testing {

/// What is to fail, and when. Any thread.
struct FaultyDevice::Faults {
  struct Plan {
    std::uint64_t calls = 0;
    std::uint64_t fails_at = 0;  ///< value of `calls` at which it fails; 0: never
    bool loses = false;
    Status status;
  };

  /// Counts a call; not OK if it is to fail.
  Status enter(Call call) {
    const std::scoped_lock lock(mutex);
    return enter_locked(call);
  }
  /// The same of stream number `stream`.
  Status enter(Call call, std::uint64_t stream) {
    const std::scoped_lock lock(mutex);
    return is_aimed_at(stream) ? enter_locked(call) : lost;
  }
  bool is_aimed_at(std::uint64_t stream) const { return stream >= first && stream < end; }
  /// Under the mutex.
  bool is_held() const { return held || plans[static_cast<std::size_t>(Call::kReady)].calls >= held_from; }
  Status enter_locked(Call call) {
    Plan& plan = plans[static_cast<std::size_t>(call)];
    ++plan.calls;
    if (!lost.ok()) {
      return lost;
    }
    if (plan.calls != plan.fails_at) {
      return absl::OkStatus();
    }
    if (plan.loses) {
      lost = plan.status;
    }
    return plan.status;
  }

  mutable std::mutex mutex;
  std::array<Plan, kCallCount> plans;
  Status lost;
  bool held = false;
  std::uint64_t held_from = std::numeric_limits<std::uint64_t>::max();  ///< calls of kReady
  std::uint64_t streams = 0;                                            ///< that are there
  std::uint64_t early_frees = 0;
  std::chrono::nanoseconds delay{0};
  std::uint64_t made_streams = 0;
  std::uint64_t first = 0;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
};

namespace {

class FaultyEvent final : public Event {
 public:
  FaultyEvent(FaultyDevice::Faults& faults, std::uint64_t stream, std::unique_ptr<Event> real)
      : FaultyEvent(faults, stream, *real) {
    owned_ = std::move(real);
  }
  FaultyEvent(FaultyDevice::Faults& faults, std::uint64_t stream, Event& real)
      : faults_(&faults), stream_(stream), real_(&real) {
    const std::scoped_lock lock(faults.mutex);
    if (faults.delay.count() > 0) {
      not_before_ = std::chrono::steady_clock::now() + faults.delay;
    }
  }
  Result<bool> ready() override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kReady, stream_));
    {
      const std::scoped_lock lock(faults_->mutex);
      if (faults_->is_held() && faults_->is_aimed_at(stream_)) {
        return false;
      }
    }
    if (std::chrono::steady_clock::now() < not_before_) {
      return false;
    }
    return real_->ready();
  }
  Result<std::chrono::nanoseconds> since(Event& earlier) override {
    return real_->since(*static_cast<FaultyEvent&>(earlier).real_);
  }
  Event& real() { return *real_; }

 private:
  FaultyDevice::Faults* faults_;
  std::uint64_t stream_;
  Event* real_;
  std::unique_ptr<Event> owned_;
  std::chrono::steady_clock::time_point not_before_;
};

class WatchedPinned final : public PinnedBuffer {
 public:
  WatchedPinned(FaultyDevice::Faults& faults, std::unique_ptr<PinnedBuffer> real)
      : faults_(&faults), real_(std::move(real)) {}
  ~WatchedPinned() override {
    const std::scoped_lock lock(faults_->mutex);
    faults_->early_frees += faults_->streams > 0 ? 1U : 0U;
  }
  std::span<std::byte> bytes() override { return real_->bytes(); }
  Buffer* window() override { return real_->window(); }

 private:
  FaultyDevice::Faults* faults_;
  std::unique_ptr<PinnedBuffer> real_;
};

/// Its timestamps are FaultyEvents of no stream, so that those of streams can be compared with them.
class FaultyCommandBuffer final : public CommandBuffer {
 public:
  FaultyCommandBuffer(FaultyDevice::Faults& faults, std::unique_ptr<CommandBuffer> real)
      : faults_(&faults), real_(std::move(real)) {}
  Status launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) override {
    return real_->launch(kernel, shape, arguments);
  }
  Result<Event*> record_timestamp() override {
    CATENA_ASSIGN_OR_RETURN(Event * event, real_->record_timestamp());
    timestamps_.push_back(std::make_unique<FaultyEvent>(*faults_, kNoStream, *event));
    return timestamps_.back().get();
  }
  CommandBuffer& real() { return *real_; }

 private:
  static constexpr std::uint64_t kNoStream = std::numeric_limits<std::uint64_t>::max();
  FaultyDevice::Faults* faults_;
  std::unique_ptr<CommandBuffer> real_;
  std::vector<std::unique_ptr<FaultyEvent>> timestamps_;
};

class FaultyStream final : public Stream {
 public:
  FaultyStream(FaultyDevice::Faults& faults, std::unique_ptr<Stream> real) : faults_(&faults), real_(std::move(real)) {
    const std::scoped_lock lock(faults_->mutex);
    ++faults_->streams;
    number_ = faults_->made_streams++;
  }
  ~FaultyStream() override {
    real_.reset();
    const std::scoped_lock lock(faults_->mutex);
    --faults_->streams;
  }

  Status copy_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source) override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kCopyToDevice, number_));
    return real_->copy_to_device(target, target_offset, source);
  }
  Status copy_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset) override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kCopyToHost, number_));
    return real_->copy_to_host(target, source, source_offset);
  }
  Status copy_rows_to_device(Buffer& target, std::size_t target_offset, std::span<const std::byte> source,
                             RowShape const& shape) override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kCopyRowsToDevice, number_));
    return real_->copy_rows_to_device(target, target_offset, source, shape);
  }
  Status copy_rows_to_host(std::span<std::byte> target, Buffer& source, std::size_t source_offset,
                           RowShape const& shape) override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kCopyRowsToHost, number_));
    return real_->copy_rows_to_host(target, source, source_offset, shape);
  }
  Status fill(Buffer& target, std::size_t offset, std::size_t bytes, std::uint8_t value) override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kFill, number_));
    return real_->fill(target, offset, bytes, value);
  }
  Status launch(Kernel& kernel, LaunchShape const& shape, std::span<const KernelArgument> arguments) override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kLaunch, number_));
    return real_->launch(kernel, shape, arguments);
  }
  Status enqueue(CommandBuffer& commands) override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kEnqueue, number_));
    return real_->enqueue(static_cast<FaultyCommandBuffer&>(commands).real());
  }
  Status finalize(CommandBuffer& commands) override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kFinalize, number_));
    return real_->finalize(static_cast<FaultyCommandBuffer&>(commands).real());
  }
  Result<std::unique_ptr<Event>> record() override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kRecord, number_));
    CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Event> event, real_->record());
    return std::make_unique<FaultyEvent>(*faults_, number_, std::move(event));
  }
  Result<std::unique_ptr<Event>> record_timestamp() override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kRecordTimestamp, number_));
    CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Event> event, real_->record_timestamp());
    return std::make_unique<FaultyEvent>(*faults_, number_, std::move(event));
  }
  Status wait_for(Event& event) override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kWaitFor, number_));
    return real_->wait_for(static_cast<FaultyEvent&>(event).real());
  }
  Status flush() override {
    CATENA_RETURN_IF_ERROR(faults_->enter(Call::kFlush, number_));
    return real_->flush();
  }

 private:
  FaultyDevice::Faults* faults_;
  std::uint64_t number_ = 0;
  std::unique_ptr<Stream> real_;
};

}  // namespace

FaultyDevice::FaultyDevice(Device& real) : real_(&real), info_(real.info()), faults_(std::make_unique<Faults>()) {
  info_.backend = "faulty";
  info_.name = "faulty " + info_.name;
}

FaultyDevice::~FaultyDevice() = default;

void FaultyDevice::fail(Call call, std::uint64_t nth, Status status) {
  const std::scoped_lock lock(faults_->mutex);
  Faults::Plan& plan = faults_->plans[static_cast<std::size_t>(call)];
  plan = {plan.calls, plan.calls + nth, false, std::move(status)};
}

void FaultyDevice::lose(Call call, std::uint64_t nth, Status status) {
  const std::scoped_lock lock(faults_->mutex);
  Faults::Plan& plan = faults_->plans[static_cast<std::size_t>(call)];
  plan = {plan.calls, plan.calls + nth, true, std::move(status)};
}

void FaultyDevice::hold_events(bool hold) {
  const std::scoped_lock lock(faults_->mutex);
  faults_->held = hold;
}

void FaultyDevice::hold_events_from(std::uint64_t nth) {
  const std::scoped_lock lock(faults_->mutex);
  faults_->held_from = faults_->plans[static_cast<std::size_t>(Call::kReady)].calls + nth;
}

void FaultyDevice::delay_events(std::chrono::nanoseconds delay) {
  const std::scoped_lock lock(faults_->mutex);
  faults_->delay = delay;
}

void FaultyDevice::aim(std::uint64_t first, std::uint64_t end) {
  const std::scoped_lock lock(faults_->mutex);
  faults_->first = first;
  faults_->end = end;
}

std::uint64_t FaultyDevice::streams() const {
  const std::scoped_lock lock(faults_->mutex);
  return faults_->made_streams;
}

std::uint64_t FaultyDevice::calls(Call call) const {
  const std::scoped_lock lock(faults_->mutex);
  return faults_->plans[static_cast<std::size_t>(call)].calls;
}

std::uint64_t FaultyDevice::early_frees() const {
  const std::scoped_lock lock(faults_->mutex);
  return faults_->early_frees;
}

DeviceInfo const& FaultyDevice::info() const { return info_; }

Result<std::unique_ptr<Buffer>> FaultyDevice::allocate(std::size_t bytes) {
  CATENA_RETURN_IF_ERROR(faults_->enter(Call::kAllocate));
  return real_->allocate(bytes);
}

Result<std::unique_ptr<PinnedBuffer>> FaultyDevice::allocate_pinned(std::size_t bytes) {
  CATENA_RETURN_IF_ERROR(faults_->enter(Call::kAllocatePinned));
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<PinnedBuffer> buffer, real_->allocate_pinned(bytes));
  return std::make_unique<WatchedPinned>(*faults_, std::move(buffer));
}

Result<std::unique_ptr<Buffer>> FaultyDevice::map_host(HostMemory const& memory) {
  CATENA_RETURN_IF_ERROR(faults_->enter(Call::kMapHost));
  return real_->map_host(memory);
}

Result<std::unique_ptr<Stream>> FaultyDevice::create_stream(StreamOptions const& options) {
  CATENA_RETURN_IF_ERROR(faults_->enter(Call::kCreateStream));
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, real_->create_stream(options));
  return std::make_unique<FaultyStream>(*faults_, std::move(stream));
}

Result<std::unique_ptr<CommandBuffer>> FaultyDevice::create_command_buffer(Partition* partition) {
  CATENA_RETURN_IF_ERROR(faults_->enter(Call::kCreateCommandBuffer));
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<CommandBuffer> commands, real_->create_command_buffer(partition));
  return std::make_unique<FaultyCommandBuffer>(*faults_, std::move(commands));
}

Result<std::vector<std::unique_ptr<Partition>>> FaultyDevice::divide(std::span<const std::uint32_t> compute_units) {
  CATENA_RETURN_IF_ERROR(faults_->enter(Call::kDivide));
  return real_->divide(compute_units);
}

Result<Binary> FaultyDevice::compile(ProgramSource const& source) {
  CATENA_RETURN_IF_ERROR(faults_->enter(Call::kCompile));
  return real_->compile(source);
}

Result<std::unique_ptr<Program>> FaultyDevice::load(std::span<const std::byte> binary) {
  CATENA_RETURN_IF_ERROR(faults_->enter(Call::kLoad));
  return real_->load(binary);
}

Status FaultyDevice::failed() const {
  {
    const std::scoped_lock lock(faults_->mutex);
    if (!faults_->lost.ok()) {
      return faults_->lost;
    }
  }
  return real_->failed();
}

void FaultyDevice::abandon(Status const& reason) {
  const std::scoped_lock lock(faults_->mutex);
  if (faults_->lost.ok()) {
    faults_->lost = reason;
  }
}

}  // namespace catena::device::testing
