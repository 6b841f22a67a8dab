// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu/device/remote/device.hpp"

namespace catena::device::remote {

class StreamState;

/// The time of a timestamp.
class RemoteTime {
 public:
  RemoteTime(std::shared_ptr<Connection> connection, std::uint32_t slot)
      : connection_(std::move(connection)), slot_(slot) {}
  RemoteTime(RemoteTime const&) = delete;
  RemoteTime& operator=(RemoteTime const&) = delete;
  ~RemoteTime() { connection_->give_time_slot(slot_); }
  std::uint32_t slot() const { return slot_; }
  /// kNotReached: not reached yet.
  std::int64_t value() const { return connection_->time(slot_).load(std::memory_order_acquire); }
  Status failed() const { return connection_->failed(); }

 private:
  std::shared_ptr<Connection> connection_;
  std::uint32_t slot_;
};

/// A time that is not reached. ResourceExhausted: too many times.
Result<std::shared_ptr<RemoteTime>> take_time(std::shared_ptr<Connection> connection);

class RemoteEvent final : public Event {
 public:
  /// `stream` null: a timestamp of a command buffer, reached again in each run. `time` null: has no time.
  RemoteEvent(std::shared_ptr<StreamState> stream, std::uint64_t sequence, std::shared_ptr<RemoteTime> time)
      : stream_(std::move(stream)), sequence_(sequence), time_(std::move(time)) {}
  Result<bool> ready() override;
  Result<std::chrono::nanoseconds> since(Event& earlier) override;

 private:
  std::shared_ptr<StreamState> stream_;
  std::uint64_t sequence_;
  std::shared_ptr<RemoteTime> time_;
};

}  // namespace catena::device::remote
