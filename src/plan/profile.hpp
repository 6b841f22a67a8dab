// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <span>
#include <vector>

/// The traffic assumed for a plan: the sizes of the fields of variable length.
namespace catena::plan {

/// Frames of one size, without FCS.
struct FrameSize {
  std::uint32_t bytes;
  double share;  ///< of all packets; any scale
};

/// Averages over all packets, which give the bytes before the payload.
struct HeaderMix {
  double vlan_tags = 0;          ///< tags per packet
  double ipv4_option_bytes = 0;  ///< per packet
  double tcp_share = 0;          ///< 0..1; the rest counts as UDP
  double tcp_option_bytes = 0;   ///< per TCP packet
};

/// A histogram of frame sizes, from a capture or from a generator's settings. A value; never empty.
class PacketProfile {
 public:
  /// Every frame has `bytes` bytes, clamped to 1..65535.
  static PacketProfile fixed(std::uint32_t bytes, HeaderMix const& headers = {});
  /// Simple IMIX: 7 frames of 60, 4 of 590 and 1 of 1514 bytes.
  static PacketProfile imix(HeaderMix const& headers = {});
  /// InvalidArgument: no frame has a share, a share is negative or not a number, or a size is 0 or above 65535.
  static Result<PacketProfile> from_histogram(std::span<const FrameSize> sizes, HeaderMix const& headers = {});

  /// Shares add up to 1; sizes may be in any order.
  std::span<const FrameSize> sizes() const { return sizes_; }
  double average_bytes() const;
  std::uint32_t longest_bytes() const;
  /// Bytes before the payload in an average packet.
  double header_bytes() const { return header_bytes_; }

 private:
  PacketProfile(std::vector<FrameSize> sizes, HeaderMix const& headers);

  std::vector<FrameSize> sizes_;
  double header_bytes_;
};

/// Bytes of a frame and of its payload at one NF, averaged over a profile.
struct Body {
  double frame;           ///< average frame
  double longest_frame;   ///< bytes per packet in a 2-D copy with rows of equal length
  double payload;         ///< average payload
  double staged_frame;    ///< average bytes of a frame in a launch buffer
  double staged_payload;  ///< the same for a payload
};

/// `grown`: growth of the frames in bytes since their arrival (negative: shrunk). `growth`: bytes that the NF keeps
/// free around a frame in the launch's own buffer.
Body body_of(PacketProfile const& profile, double grown, std::uint32_t growth);

}  // namespace catena::plan
