// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/outcome.hpp>
#include <catena/packet/batch.hpp>

#include <string_view>

/// Answers of NFs that have an address of their own. Pure functions of the packet; any thread.
namespace catena::nf {

/// Records that the packet is about to become the reply `kind` ("echo"). The line is about the packet as it came.
void note_reply(packet::Packet const& packet, std::string_view kind, Outcome& outcome);

/// Whether the packet is an ICMP echo request to a single host that may be answered (RFC 1122, section 3.2.2.6): whole,
/// from a single host, and with a right checksum.
bool may_answer_echo(packet::Packet const& packet);

/// Turns the echo request into its reply, with a record. The step that calls it reads packet::kIcmpErrorReads.
/// Precondition: the conditions of may_answer_echo().
void answer_echo(packet::Packet const& packet, Outcome& outcome);

}  // namespace catena::nf
