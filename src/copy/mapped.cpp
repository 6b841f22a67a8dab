// SPDX-License-Identifier: Apache-2.0
#include "copy/ways.hpp"

namespace catena::copy {
namespace {

class Mapped final : public BodyCopy {
 public:
  Route route() const override { return Route::kMapped; }
  bool suits(Bodies const& /*bodies*/) const override { return true; }
  std::uint64_t bytes() const override { return bytes_; }

  std::size_t prepare(Bodies const& bodies) override {
    bytes_ = 0;
    for (const std::uint32_t slot : bodies.slots) {
      bytes_ += bodies.payloads ? bodies.meta->layers[slot].payload_length : bodies.meta->length[slot];
    }
    return 0;
  }

 private:
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::unique_ptr<BodyCopy> make_mapped() { return std::make_unique<Mapped>(); }

}  // namespace catena::copy
