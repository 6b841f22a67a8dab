// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/fields.hpp>

namespace catena::packet {

/// Fields that an NF reads and writes, per processor (AdaptChain, section IV-A), and those of the two host steps that
/// are around its work wherever that is done. An NF on the CPU uses cr, cw and the host steps; one on the GPU uses
/// gr, gw and the host steps.
///
/// A write may leave out packets: an NF passes over those that it cannot inspect. Plans allow for it, so a field that
/// is written for some packets only needs no place among the reads.
struct Hints {
  FieldSet cr = 0;             ///< CPU reads: compute() on the CPU
  FieldSet cw = 0;             ///< CPU writes
  FieldSet gr = 0;             ///< GPU reads: the kernel
  FieldSet gw = 0;             ///< GPU writes
  FieldSet prepare_reads = 0;  ///< prepare(), on the CPU before the work
  FieldSet prepare_writes = 0;
  /// Of prepare_writes, those that few packets get. prepare() marks each of these (Packet::mark_rewritten()), and the
  /// next shared step moves the field for the marked packets; the others' values stay valid on the device. Only
  /// `payload` may be among them.
  FieldSet prepare_writes_few = 0;
  FieldSet complete_reads = 0;  ///< complete(), on the CPU after the work
  FieldSet complete_writes = 0;

  friend bool operator==(Hints const&, Hints const&) = default;
};

}  // namespace catena::packet
