// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/fields.hpp>

namespace catena::packet {

/// The fields read and written by an NF, per processor (AdaptChain, section IV-A), and by the two host steps before and
/// after its work on either processor. An NF on the CPU uses cr, cw and the host steps; one on the GPU uses gr, gw and
/// the host steps.
///
/// A write may omit packets, as an NF passes packets that it cannot inspect. Plans allow for it, so a field written in
/// only some packets need not be among the reads.
struct Hints {
  FieldSet cr = 0;             ///< CPU reads: compute() on the CPU
  FieldSet cw = 0;             ///< CPU writes
  FieldSet gr = 0;             ///< GPU reads: the kernel
  FieldSet gw = 0;             ///< GPU writes
  FieldSet prepare_reads = 0;  ///< prepare(), on the CPU before the work
  FieldSet prepare_writes = 0;
  /// The subset of prepare_writes that few packets get. prepare() marks these packets (Packet::mark_rewritten()), and
  /// the next shared step moves the field for the marked packets; the values of the others stay valid on the device.
  /// Only `payload` is allowed.
  FieldSet prepare_writes_few = 0;
  FieldSet complete_reads = 0;  ///< complete(), on the CPU after the work
  FieldSet complete_writes = 0;

  friend bool operator==(Hints const&, Hints const&) = default;
};

}  // namespace catena::packet
