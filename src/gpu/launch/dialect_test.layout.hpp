// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/kernel/fault.hpp>
#include <catena/kernel/launch_params.hpp>
#include <catena/kernel/shared_layout.hpp>
#include <catena/packet/fields.hpp>
#include <catena/packet/layers.hpp>

#include "gpu/copy/staging_extent.hpp"
#include "gpu/copy/transfer_params.hpp"

/// Shared by dialect_test.cpp and its kernels.
namespace catena::kernel::dialect_test {

/// The fields that the test kernels read and write.
inline constexpr packet::FieldSet kReads =
    packet::kMetaFields | packet::fields(packet::kEthDst, packet::kIpv4Version, packet::kIpv4Length, packet::kIpv4Src,
                                         packet::kL4Sport, packet::kTcpSeq, packet::kIpv6Dst, packet::kPayload);
inline constexpr packet::FieldSet kWrites =
    packet::fields(packet::kEthSrc, packet::kIpv4Ttl, packet::kIpv4Id, packet::kIpv4Dst, packet::kIpv6Src,
                   packet::kL4Dport, packet::kPayload, packet::kMetaVerdict, packet::kMetaPort, packet::kMetaLength);

struct Aux {
  u32 first;
  u16 second;
  u8 third;
  u8 fourth;
};
struct Output {
  u32 words[8];
};

/// One out-of-bounds access.
enum Access : u32 {
  kNone = 0,
  kArrayRead,
  kArrayLookUp,
  kArrayWrite,
  kArrayAdd,
  kArraySub,
  kArrayElsewhere,
  kArrayUnaligned,
  kPayloadBe16,
  kPayloadSetBe16,
  kPayloadRead,
  kPayloadWrite,
  kPayloadBefore,
  kPayloadBe32,
  kPayloadSetBe32,
  kPayloadSetBe32Before,
  kPayloadFetch,
  kPayloadPut,
  kResult,
  kSpill,
  kLocal,
  kLocalElsewhere,
  kBigState,
  kAccessCount,
};

struct State {
  StateArray<u64> wide;
  StateArray<u32> words;
  StateArray<u32> elsewhere;  ///< extends beyond the state
  StateArray<u32> unaligned;
  u32 access;  ///< Access
  u32 row;     ///< the packet with the out-of-bounds access
};
struct BigState {
  u64 values[32];
};

/// Sizes and offsets of all structs shared by host and devices, as seen by this compiler.
#define CATENA_TEST_OFFSET(object, member) \
  static_cast<u64>(reinterpret_cast<const u8*>(&object.member) - reinterpret_cast<const u8*>(&object))
inline constexpr u32 kLayoutCount = 66;
template <typename Put>
inline void put_layouts(Put put) {
  {
    packet::Layers object = {};
    put(sizeof(object));
    put(alignof(packet::Layers));
    put(CATENA_TEST_OFFSET(object, l3));
    put(CATENA_TEST_OFFSET(object, l4));
    put(CATENA_TEST_OFFSET(object, payload));
    put(CATENA_TEST_OFFSET(object, family));
    put(CATENA_TEST_OFFSET(object, flags));
    put(CATENA_TEST_OFFSET(object, payload_length));
  }
  {
    LaunchParams object = {};
    put(sizeof(object));
    put(alignof(LaunchParams));
    put(CATENA_TEST_OFFSET(object, count));
    put(CATENA_TEST_OFFSET(object, padded));
    put(CATENA_TEST_OFFSET(object, frames_offset));
    put(CATENA_TEST_OFFSET(object, frames_bytes));
    put(CATENA_TEST_OFFSET(object, out_offset));
    put(CATENA_TEST_OFFSET(object, batch_offset));
    put(CATENA_TEST_OFFSET(object, state_bytes));
    put(CATENA_TEST_OFFSET(object, spill_bytes));
    put(CATENA_TEST_OFFSET(object, spill_row_bytes));
    put(CATENA_TEST_OFFSET(object, local_bytes));
    put(CATENA_TEST_OFFSET(object, slots));
  }
  {
    copy::TransferParams object = {};
    put(sizeof(object));
    put(alignof(copy::TransferParams));
    put(CATENA_TEST_OFFSET(object, head_offset));
    put(CATENA_TEST_OFFSET(object, slots_offset));
    put(CATENA_TEST_OFFSET(object, extents_offset));
    put(CATENA_TEST_OFFSET(object, frames_offset));
    put(CATENA_TEST_OFFSET(object, frames_bytes));
    put(CATENA_TEST_OFFSET(object, flags_offset));
    put(CATENA_TEST_OFFSET(object, slots_row_bytes));
    put(CATENA_TEST_OFFSET(object, slots));
    put(CATENA_TEST_OFFSET(object, body));
    put(CATENA_TEST_OFFSET(object, fused_upload));
    put(CATENA_TEST_OFFSET(object, lane_bits));
  }
  {
    LaunchHeader object = {};
    put(sizeof(object));
    put(alignof(LaunchHeader));
    put(CATENA_TEST_OFFSET(object, rows));
    put(CATENA_TEST_OFFSET(object, processed));
    put(CATENA_TEST_OFFSET(object, upload_blocks));
  }
  {
    copy::StagingExtent object = {};
    put(sizeof(object));
    put(alignof(copy::StagingExtent));
    put(CATENA_TEST_OFFSET(object, begin));
    put(CATENA_TEST_OFFSET(object, slot_begin));
    put(CATENA_TEST_OFFSET(object, bytes));
  }
  {
    FaultReport object = {};
    put(sizeof(object));
    put(alignof(FaultReport));
    put(CATENA_TEST_OFFSET(object, count));
    put(CATENA_TEST_OFFSET(object, packet));
    put(CATENA_TEST_OFFSET(object, address_space));
    put(CATENA_TEST_OFFSET(object, reserved));
    put(CATENA_TEST_OFFSET(object, offset));
    put(CATENA_TEST_OFFSET(object, size));
  }
  {
    Extent object = {};
    put(sizeof(object));
    put(alignof(Extent));
    put(CATENA_TEST_OFFSET(object, begin));
    put(CATENA_TEST_OFFSET(object, length));
    put(CATENA_TEST_OFFSET(object, reserved));
  }
  {
    StateArray<u64> object = {};
    put(sizeof(object));
    put(alignof(StateArray<u64>));
    put(CATENA_TEST_OFFSET(object, offset));
    put(CATENA_TEST_OFFSET(object, count));
  }
  put(sizeof(u8));
  put(sizeof(u16));
  put(sizeof(u32));
  put(sizeof(u64));
  put(sizeof(i64));
}
#undef CATENA_TEST_OFFSET

}  // namespace catena::kernel::dialect_test
