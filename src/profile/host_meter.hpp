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

/// Times the work of one core for the staged method, between packets outside its caches and a staging buffer. Batches
/// are side by side in the slots, so that packets return to a cache only after the use of all others.
class HostMeter {
 public:
  static constexpr std::uint32_t kBatch = 4096;  ///< packets
  static constexpr std::uint32_t kMaxFields = 8;

  /// ResourceExhausted: no host memory for the packets. The staging buffer must outlive this and hold
  /// kBatch * packet::kMaxFrameBytes bytes.
  static Result<std::unique_ptr<HostMeter>> create(std::span<std::byte> staging);

  /// Median time per packet in ns for batching `bytes` bytes of its frame into staging, or bringing them back.
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
