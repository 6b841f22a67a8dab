// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/nf.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nf/testing/packet_image.hpp"

/// An NF beside a twin that can read only the fields named by the hints.
namespace catena::nf::testing {

/// The framework's calls on the host. take_unsupported() has the hints of prepare().
enum class Step : std::uint8_t { kTakeUnsupported, kPrepare, kCompute, kComplete };
inline constexpr Step kSteps[] = {Step::kTakeUnsupported, Step::kPrepare, Step::kCompute, Step::kComplete};

/// "complete()", and its members of Hints.
std::string name_of(Step step);
std::string reads_of(Step step);
std::string writes_of(Step step);

/// The parts overwritten for the twin: all parts that its hints do not let it read, or one part in one step. `round`
/// selects the values. In four rounds a packet gets zeros, ones, its own bits inverted, and random bytes.
struct Poison {
  std::uint32_t round = 0;
  std::optional<Step> step = {};
  std::optional<std::uint32_t> part = {};
};

/// A field that a step wrote without a hint.
struct UndeclaredWrite {
  Step step;
  std::uint32_t part;
  std::string packet;  ///< the first packet with this write
  bool is_unmarked;    ///< declared as rare, but not marked
};

/// Gives each call first to the twin, with its unreadable parts overwritten, and then to the NF, with the original
/// packets. Both must return and write the same, except for overwritten bytes left alone by the twin. As long as this
/// holds, two NFs created alike are in the same state at each call. `all`: the packets of the run, by index. One
/// thread; works on any device.
class TwinNf final : public Nf {
 public:
  TwinNf(Descriptor const& descriptor, std::unique_ptr<Nf> nf, std::unique_ptr<Nf> twin, packet::Batch const& all,
         Poison poison);

  /// The first difference of the twin; empty without a difference.
  std::string const& difference() const { return difference_; }
  std::vector<UndeclaredWrite> const& undeclared_writes() const { return writes_; }

  Hints hints() const override { return nf_->hints(); }
  void take_unsupported(packet::Packet const& packet, Outcome& outcome) override;
  void prepare(packet::Batch const& batch, std::span<std::byte> aux, Outcome& outcome) override;
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(Completion const& completion) override;
  Result<KernelSide> kernel_side() const override { return nf_->kernel_side(); }
  void spill_requests(std::span<const std::byte> results, std::vector<SpillRequest>& requests) const override {
    nf_->spill_requests(results, requests);
  }
  Status finish() override;

 private:
  /// One call; `outcome` is null for compute(), which has no outcome.
  struct Call {
    Step step;
    packet::Batch const& batch;
    Outcome* outcome;
  };
  /// A packet before a call, as given to the twin, after the twin, and after the NF.
  struct Seen {
    packet::Packet packet;
    PacketImage const& before;
    PacketImage const& given;
    PacketImage const& by_twin;
    PacketImage const& by_nf;
  };
  void call(Call const& call, std::function<void(Nf&, Outcome&)> const& of);
  std::vector<PacketImage> poisoned(Call const& call, std::vector<PacketImage> images);
  void judge(Step step, Seen const& seen);
  void judge(Step step, Part const& part, Seen const& seen);
  void find_writes(Step step, Part const& part, Seen const& seen);
  void note_write(UndeclaredWrite const& write);
  void compare_words(std::size_t first_line, std::size_t first_line_of_twin, Outcome& outcome);
  void compare_structs(std::string_view what, packet::Batch const& batch, std::span<const std::byte> by_nf,
                       std::span<const std::byte> by_twin);
  void differs(std::string text);

  std::unique_ptr<Nf> nf_;
  std::unique_ptr<Nf> twin_;
  Hints hints_;
  packet::Batch all_;
  Poison poison_;
  Outcome said_by_twin_;
  std::string difference_;
  std::vector<UndeclaredWrite> writes_;
};

}  // namespace catena::nf::testing
