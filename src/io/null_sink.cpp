// SPDX-License-Identifier: Apache-2.0
#include <catena/core/counter.hpp>
#include "io/sink.hpp"

#include <catena/packet/fragments.hpp>

namespace catena::io {
namespace {

class NullSink final : public Sink {
 public:
  Status send(memory::PacketPool& pool, memory::Unit& unit) override {
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      if (batch[i].verdict() == packet::Verdict::kDrop) {
        continue;
      }
      const std::uint32_t frames = packet::leaves_in(batch[i]);
      sent_ += frames != 0 ? 1 : 0;
      df_set_ += frames == 0 ? 1 : 0;
      fragments_ += frames > 1 ? frames : 0;
    }
    pool.release_slots(unit, 0, unit.count);
    return absl::OkStatus();
  }
  Status finish() override { return absl::OkStatus(); }
  SinkCounts counts() const override { return {sent_, {{"df_set", df_set_}}, fragments_}; }
  std::string describe() const override { return "null"; }

 private:
  Counter sent_;
  Counter df_set_;
  Counter fragments_;
};

}  // namespace

std::unique_ptr<Sink> make_null_sink() { return std::make_unique<NullSink>(); }

}  // namespace catena::io
