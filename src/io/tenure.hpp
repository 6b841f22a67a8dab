// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/sink.hpp"
#include "io/source.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

/// Ends that chains have one after another: what comes next counts from 0, begins where the one before ended, and
/// nothing is closed or lost in between. Thread rule: as Source and Sink; pass_on(), take_over() and has_ended() any
/// thread.
namespace catena::io {

/// A source for one of them.
class SourceTenure final : public Source {
 public:
  /// Of the first one.
  explicit SourceTenure(std::shared_ptr<Source> source) : source_(std::move(source)), base_(SourceCounts()) {}
  /// Of who comes after `before`, and has nothing of it before take_over().
  static std::unique_ptr<SourceTenure> after(SourceTenure const& before);

  /// From here on stop() leaves the source as it is for the next one. False, and nothing done, where it was stopped.
  bool pass_on();
  /// Precondition: `before`, of which this one was made, has ended.
  void take_over(SourceTenure const& before);
  /// Whether stop() was called.
  bool has_ended() const;

  void start() override { source_->start(); }
  void stop() override;
  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    return source_->receive(pool, unit, next_index, starved);
  }
  bool finished() const override { return source_->finished(); }
  SourceCounts counts() const override;
  double offered_per_second() const override { return source_->offered_per_second(); }
  double part_done() const override { return source_->part_done(); }
  std::string describe() const override { return source_->describe(); }
  std::optional<LiveClock> live_clock() const override { return source_->live_clock(); }
  std::vector<int> sockets() const override { return source_->sockets(); }

 private:
  SourceTenure() = default;

  std::shared_ptr<Source> source_;
  mutable std::mutex mutex_;  ///< of what follows
  bool is_passed_on_ = false;
  bool has_ended_ = false;
  std::optional<SourceCounts> base_;   ///< of those before; none: this one has not begun
  std::optional<SourceCounts> final_;  ///< with those before, where the next one counts on; none: it does not yet
};

/// A sink for one of them.
class SinkTenure final : public Sink {
 public:
  /// As those of SourceTenure; what has to be called at the end is finish().
  explicit SinkTenure(std::shared_ptr<Sink> sink) : sink_(std::move(sink)), base_(SinkCounts()) {}
  static std::unique_ptr<SinkTenure> after(SinkTenure const& before);
  void pass_on();
  void take_over(SinkTenure const& before);

  Status send(memory::PacketPool& pool, memory::Unit& unit) override { return sink_->send(pool, unit); }
  Status finish() override;
  SinkCounts counts() const override;
  std::string describe() const override { return sink_->describe(); }

 private:
  SinkTenure() = default;

  std::shared_ptr<Sink> sink_;
  mutable std::mutex mutex_;  ///< of what follows
  bool is_passed_on_ = false;
  std::optional<SinkCounts> base_;  ///< as those of SourceTenure
  std::optional<SinkCounts> final_;
};

}  // namespace catena::io
