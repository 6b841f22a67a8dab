// SPDX-License-Identifier: Apache-2.0
#include "bench/chains/unit_source.hpp"

#include <catena/core/text.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace catena::bench {
namespace {

/// Another source, which is asked when it is time.
class UnitSource : public io::Source {
 public:
  UnitSource(std::unique_ptr<io::Source> source, const char* how) : source_(std::move(source)), how_(how) {}

  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    if (!is_due(pool)) {
      return absl::OkStatus();
    }
    CATENA_RETURN_IF_ERROR(source_->receive(pool, unit, next_index, starved));
    if (unit.count > 0) {
      received(unit);
    }
    return absl::OkStatus();
  }
  bool finished() const override { return source_->finished(); }
  io::SourceCounts counts() const override { return source_->counts(); }
  double part_done() const override { return source_->part_done(); }
  std::string describe() const override { return concat(source_->describe(), how_); }

 private:
  virtual bool is_due(memory::PacketPool const& pool) const = 0;
  virtual void received(memory::Unit& /*unit*/) {}

  std::unique_ptr<io::Source> source_;
  const char* how_;
};

class OneAtATime final : public UnitSource {
 public:
  explicit OneAtATime(std::unique_ptr<io::Source> source) : UnitSource(std::move(source), ", one unit at a time") {}

 private:
  bool is_due(memory::PacketPool const& pool) const override { return pool.free_slots() == pool.slots(); }
};

class WholeUnits final : public UnitSource {
 public:
  WholeUnits(std::unique_ptr<io::Source> source, std::uint64_t packets_per_s)
      : UnitSource(std::move(source), ", in full units"), packets_per_s_(packets_per_s) {}
  double offered_per_second() const override { return static_cast<double>(packets_per_s_); }

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due(memory::PacketPool const& /*pool*/) const override { return !next_ || Clock::now() >= *next_; }
  void received(memory::Unit& unit) override {
    const Clock::time_point due = next_.value_or(Clock::now());
    unit.arrival_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(due.time_since_epoch()).count());
    unit.last_arrival_ns = unit.arrival_ns;
    const std::chrono::duration<double> period(static_cast<double>(unit.count) / static_cast<double>(packets_per_s_));
    next_ = due + std::chrono::duration_cast<Clock::duration>(period);
  }

  std::uint64_t packets_per_s_;
  std::optional<Clock::time_point> next_;  ///< none before the first unit
};

}  // namespace

std::unique_ptr<io::Source> make_one_at_a_time(std::unique_ptr<io::Source> source) {
  return std::make_unique<OneAtATime>(std::move(source));
}

std::unique_ptr<io::Source> make_whole_units(std::unique_ptr<io::Source> source, std::uint64_t packets_per_s) {
  return std::make_unique<WholeUnits>(std::move(source), packets_per_s);
}

}  // namespace catena::bench
