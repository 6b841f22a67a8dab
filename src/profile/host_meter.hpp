// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/slot.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::profile {

/// Times what one core does for the staged method, between packets that are not in its caches and a staging buffer.
/// Batches are side by side in the slots, so that packets come back into a cache only after all others went through.
class HostMeter {
 public:
  static constexpr std::uint32_t kBatch = 4096;  ///< packets
  static constexpr std::uint32_t kMaxFields = 8;

  /// ResourceExhausted: no host memory for the packets. The staging buffer must outlive this and hold
  /// kBatch * packet::kMaxFrameBytes bytes.
  static Result<std::unique_ptr<HostMeter>> create(std::span<std::byte> staging);

  /// Median time of a packet in ns, in which `bytes` bytes of its frame are batched into staging, or brought back.
  double copy_frames(std::uint32_t bytes, bool in);
  /// The same for `fields` header fields as columns, 1 to kMaxFields.
  double copy_fields(std::uint32_t fields, bool in);

 private:
  struct Deleter {
    void operator()(std::byte* memory) const;
  };
  HostMeter() = default;
  template <typename Work>
  double median_ns(Work const& work);
  std::byte* frame(std::uint32_t slot) const;

  std::span<std::byte> staging_;
  std::unique_ptr<std::byte, Deleter> slots_;
  std::vector<packet::Layers> layers_;
  std::uint32_t batch_ = 0;  ///< the next one
};

}  // namespace catena::profile
