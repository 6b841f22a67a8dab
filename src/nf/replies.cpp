// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/replies.hpp>

#include <catena/core/text.hpp>
#include <catena/packet/icmp.hpp>

namespace catena::nf {

void note_reply(packet::Packet const& packet, std::string_view kind, Outcome& outcome) {
  if (outcome.recording()) {
    outcome.record(packet, packet::Verdict::kReply, -1, concat("\"reply\":\"", kind, "\""));
  }
}

bool may_answer_echo(packet::Packet const& packet) {
  constexpr std::uint8_t kEchoRequest = 8;
  const std::uint8_t* icmp = packet.l4();
  return packet.is(packet::kIcmp) && !packet.is(packet::kFragment) && icmp[0] == kEchoRequest && icmp[1] == 0 &&
         packet::may_report(packet) && packet::has_right_icmp_checksum(packet);
}

void answer_echo(packet::Packet const& packet, Outcome& outcome) {
  note_reply(packet, "echo", outcome);
  packet::make_echo_reply(packet);
  outcome.reply(packet);
}

}  // namespace catena::nf
