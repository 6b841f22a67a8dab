// SPDX-License-Identifier: Apache-2.0
#include "copy/ways.hpp"

namespace catena::copy {
namespace {

class Mapped final : public BodyCopy {
 public:
  explicit Mapped(Way way) : way_(way) {}

  Route route() const override { return Route::kMapped; }
  bool suits(Bodies const& /*bodies*/) const override { return true; }
  std::uint64_t bytes() const override { return bytes_; }

  std::size_t prepare(Bodies const& bodies) override {
    bytes_ = 0;
    const bool whole_lines = way_ == Way::kToHost && !bodies.payloads;
    for (const std::uint32_t slot : bodies.slots) {
      const Place place = place_of(bodies, slot);
      bytes_ += whole_lines ? packet::line_end(place.end) - packet::line_begin(place.begin) : place.end - place.begin;
    }
    return 0;
  }

 private:
  Way way_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<BodyCopy> make_mapped(Way way) { return std::make_unique<Mapped>(way); }

}  // namespace catena::copy
