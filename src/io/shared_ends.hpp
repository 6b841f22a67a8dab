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

/// Lets consecutive pipelines share a source or sink. Each starts its counters at 0 and continues where the previous
/// one ended. The source or sink stays open and loses no packet. Thread rule: as Source and Sink; transfer(),
/// take_over() and has_ended() any thread.
namespace catena::io {

/// A shared source, for one pipeline.
class SharedSource final : public Source {
 public:
  /// For the first pipeline.
  explicit SharedSource(std::shared_ptr<Source> source) : source_(std::move(source)), base_(SourceCounts()) {}
  /// For the pipeline after `before`; it counts nothing before take_over().
  static std::unique_ptr<SharedSource> after(SharedSource const& before);

  /// From now on stop() leaves the source open for the next pipeline. False, with no effect, if it was already stopped.
  bool transfer();
  /// Precondition: `before`, the argument of after(), has ended.
  void take_over(SharedSource const& before);
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
  SharedSource() = default;

  std::shared_ptr<Source> source_;
  mutable std::mutex mutex_;  ///< protects the members below
  bool is_passed_on_ = false;
  bool has_ended_ = false;
  std::optional<SourceCounts> base_;   ///< total at the end of the previous pipeline; nullopt: not taken over yet
  std::optional<SourceCounts> final_;  ///< total at this one's end, where the next one continues; nullopt: not yet
};

/// A shared sink, for one pipeline.
class SharedSink final : public Sink {
 public:
  /// As in SharedSource; finish() takes the place of stop().
  explicit SharedSink(std::shared_ptr<Sink> sink) : sink_(std::move(sink)), base_(SinkCounts()) {}
  static std::unique_ptr<SharedSink> after(SharedSink const& before);
  void transfer();
  void take_over(SharedSink const& before);

  Status send(memory::PacketPool& pool, memory::Unit& unit) override { return sink_->send(pool, unit); }
  Status finish() override;
  SinkCounts counts() const override;
  std::string describe() const override { return sink_->describe(); }

 private:
  SharedSink() = default;

  std::shared_ptr<Sink> sink_;
  mutable std::mutex mutex_;  ///< protects the members below
  bool is_passed_on_ = false;
  std::optional<SinkCounts> base_;  ///< as in SharedSource
  std::optional<SinkCounts> final_;
};

}  // namespace catena::io
