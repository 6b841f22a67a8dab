// SPDX-License-Identifier: Apache-2.0
#include "gpu/copy/methods.hpp"

namespace catena::copy {
namespace {

/// A kernel reads (to the device) or writes (to the host) the packet pool.
class Gather final : public BodyCopy {
 public:
  explicit Gather(Direction direction) : direction_(direction) {}

  TransferMethod method() const override { return TransferMethod::kGather; }
  bool supports(Bodies const& /*bodies*/) const override { return true; }
  std::uint64_t bytes() const override { return bytes_; }

  std::size_t prepare(Bodies const& bodies) override {
    bytes_ = 0;
    const bool whole_cache_lines = direction_ == Direction::kToHost && !bodies.payloads;
    for (const std::uint32_t slot : bodies.slots) {
      const MemoryPlace place = place_of(bodies, slot);
      bytes_ += whole_cache_lines ? packet::cache_line_end(place.end) - packet::cache_line_begin(place.begin)
                                  : place.end - place.begin;
    }
    return 0;
  }

 private:
  Direction direction_;
  std::uint64_t bytes_ = 0;
};

std::unique_ptr<BodyCopy> make_gather(Direction direction) { return std::make_unique<Gather>(direction); }

}  // namespace

constinit const MethodMover methods::kGather{.carries_payloads = true, .make = make_gather, .enqueue = nullptr};

}  // namespace catena::copy
