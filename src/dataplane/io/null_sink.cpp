// SPDX-License-Identifier: Apache-2.0
#include "dataplane/io/sink.hpp"

namespace catena::dataplane {
namespace {

class NullSink final : public Sink {
 public:
  Status send(PacketPool& pool, Unit& unit) override {
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      sent_ += batch[i].verdict() != packet::Verdict::kDrop ? 1 : 0;
    }
    pool.release_slots(unit, 0, unit.count);
    return absl::OkStatus();
  }
  Status finish() override { return absl::OkStatus(); }
  std::uint64_t sent() const override { return sent_; }
  std::vector<NamedCount> drops() const override { return {}; }
  std::string describe() const override { return "null"; }

 private:
  std::uint64_t sent_ = 0;
};

}  // namespace

std::unique_ptr<Sink> make_null_sink() { return std::make_unique<NullSink>(); }

}  // namespace catena::dataplane
