// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/fields.hpp>

namespace catena::packet {

/// The fields read and written by an NF (AdaptChain, section IV-A): by compute() on the CPU (cr, cw), by its kernel
/// (gr, gw), and by prepare() and complete(), which run on the CPU in either case. A plan uses the sets of the
/// processor that the NF is placed on.
///
/// An NF need not write a field of every packet, because it passes packets that it cannot inspect. Plans allow for
/// this: such a field need not be among the reads.
struct Hints {
  FieldSet cr = 0;             ///< CPU reads: compute() on the CPU
  FieldSet cw = 0;             ///< CPU writes
  FieldSet gr = 0;             ///< GPU reads: the kernel
  FieldSet gw = 0;             ///< GPU writes
  FieldSet prepare_reads = 0;  ///< prepare(), on the CPU before the work
  FieldSet prepare_writes = 0;
  /// The subset of prepare_writes that prepare() writes in few packets. It must mark these packets
  /// (Packet::mark_rewritten()): the next shared step moves the field for marked packets only, and the values of the
  /// other packets stay valid on the device. Only `payload` is allowed.
  FieldSet prepare_writes_few = 0;
  FieldSet complete_reads = 0;  ///< complete(), on the CPU after the work
  FieldSet complete_writes = 0;

  friend bool operator==(Hints const&, Hints const&) = default;
};

}  // namespace catena::packet
