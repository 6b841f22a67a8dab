// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/transfer_methods.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// The costs of moving bytes between host and device.
namespace catena::plan {

inline constexpr std::size_t kMethodCount = kTransferMethods.size();

/// A set of methods: bit i is TransferMethod i.
using MethodSet = std::uint8_t;
constexpr MethodSet method_bit(TransferMethod method) {
  return static_cast<MethodSet>(1U << static_cast<unsigned>(method));
}
static_assert(kMethodCount <= 8);
inline constexpr MethodSet kAllMethods = static_cast<MethodSet>((1U << kMethodCount) - 1);

/// Measured coefficients of one method in one direction. A packet takes the longer of its least time and the time of
/// its bytes: rate limits and bandwidth limits do not add up.
struct MethodCost {
  double per_transfer_ns = 0;       ///< one copy command or kernel
  double per_packet_ns = 0;         ///< least time of a packet's frame or payload
  double per_packet_fields_ns = 0;  ///< least time of a packet's header fields
  double per_byte_ns = 0;
};

/// The bytes of one move across the bus, for an average packet.
struct TransferShape {
  enum class Kind : std::uint8_t {
    kLaunch,   ///< data of each launch besides packets: the NF's structs, rows, fault flags; written in place
    kColumns,  ///< fields of fixed size
    kBody,     ///< payloads or whole frames
  };
  Kind kind = Kind::kLaunch;
  double bytes = 0;
  double staged_bytes = 0;   ///< bytes in a staging buffer: `bytes` rounded up, with room for growth in the kernel
  double longest_bytes = 0;  ///< kBody: bytes if each packet were as long as the longest
  std::uint32_t columns = 0;
  bool touches_packet = false;    ///< kColumns: some column is in the packet, not in the metadata
  bool touches_metadata = false;  ///< kColumns: some column is metadata
  bool whole_frames = false;      ///< kBody: frames, not payloads
  bool between_slots = false;     ///< from a slot to its twin or back; else to or from a launch's own buffer
};

/// Of one packet of average size.
struct MoveCost {
  double bytes = 0;     ///< across the bus
  double total_ns = 0;  ///< bus, CPU and device added up, as in AdaptChain's C = C_P + C_H + C_D
  double cpu_ns = 0;    ///< the CPU's part
};

/// Coefficients of one machine. `catena profile` measures them; h200() has the coefficients of the machine used for
/// tuning Catena.
struct CostModel {
  std::array<std::array<MethodCost, 2>, kMethodCount> methods;  ///< [method][direction]
  MethodSet available = kAllMethods;                            ///< kStaged always counts as available
  double host_copy_ns_per_byte = 0;                             ///< one core batching payloads or frames
  double host_touch_ns = 0;                                     ///< one core reaching into a packet's headers
  double host_column_ns = 0;                                    ///< per column copied then
  double device_copy_ns_per_byte = 0;  ///< between a staging buffer and the shared buffer, on the device
  std::uint32_t packets_per_transfer = 4096;

  /// One NVIDIA H200, PCIe 5 x16, 16 cores of a Xeon; see cost_model.cpp and methods/ for the source of each figure.
  static CostModel h200();

  MethodCost const& of(TransferMethod method, Direction direction) const {
    return methods[static_cast<std::size_t>(method)][static_cast<std::size_t>(direction)];
  }
  /// Whether a method is available that needs the packet pool mapped on the device.
  bool has_pool_methods() const;
  /// Removes these methods from `available`, for a device that does not map the pool.
  void remove_pool_methods();
  /// Whether `method` can carry `shape`. Always staged are: metadata, all moves of direct steps, and the data of a
  /// launch besides packets.
  static bool can_carry(TransferMethod method, TransferShape const& shape);
  /// Precondition: can_carry(method, shape).
  MoveCost cost(TransferMethod method, Direction direction, TransferShape const& shape) const;
  /// The cheapest of the available methods; the first one if equal.
  TransferMethod cheapest(Direction direction, TransferShape const& shape, MoveCost& cost_of_it) const;
};

}  // namespace catena::plan
