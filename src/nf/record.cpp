// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/record.hpp>

#include <catena/core/text.hpp>

#include <ctime>

namespace catena::nf {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

std::string format_arrival(Arrival const& arrival) {
  std::string text = concat(R"(,"ts":")", utc_of(arrival.time_ns), "\"");
  if ((arrival.flags & packet::kIpv4) != 0) {
    text += concat(R"(,"src":")", dotted_of(arrival.source), R"(","dst":")", dotted_of(arrival.destination),
                   R"(","proto":)", arrival.protocol);
  }
  if ((arrival.flags & packet::kPorts) != 0) {
    text += concat(R"(,"sport":)", arrival.source_port, R"(,"dport":)", arrival.destination_port);
  }
  return text;
}

}  // namespace

Arrival arrival_of(packet::Packet const& packet) {
  Arrival arrival;
  arrival.packet = packet.index();
  arrival.time_ns = packet.arrival_ns();
  arrival.flags = packet.layers().flags;
  if (!packet.is(packet::kIpv4)) {
    return arrival;
  }
  const std::uint8_t* l3 = packet.l3();
  const std::uint8_t* l4 = packet.l4();
  arrival.protocol = l3[9];
  arrival.source = packet::load_be32(l3 + 12);
  arrival.destination = packet::load_be32(l3 + 16);
  if (packet.is(packet::kPorts)) {
    arrival.source_port = packet::load_be16(l4);
    arrival.destination_port = packet::load_be16(l4 + 2);
  } else if (packet.is(packet::kIcmp)) {
    arrival.icmp_type = l4[0];
    arrival.icmp_code = l4[1];
  }
  return arrival;
}

std::string utc_of(std::uint64_t time_ns) {
  const auto seconds = static_cast<std::time_t>(time_ns / kNsPerSecond);
  std::tm parts{};
  gmtime_r(&seconds, &parts);  // 64 bits of nanoseconds end in the year 2554: it cannot fail
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, time_ns % kNsPerSecond);
}

std::string dotted_of(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, address >> 16 & 0xFFU, address >> 8 & 0xFFU, address & 0xFFU);
}

std::string format_record(Instance const& instance, RecordLine const& line, Arrival const* arrival) {
  const std::string_view verdict = line.verdict == packet::Verdict::kDrop    ? "drop"
                                   : line.verdict == packet::Verdict::kAlert ? "alert"
                                   : line.verdict == packet::Verdict::kReply ? "reply"
                                                                             : "pass";
  // the name comes from the chain file, which allows only letters, digits, '-', '_' and '.': nothing to escape
  std::string text = concat(R"({"packet":)", line.packet, arrival != nullptr ? format_arrival(*arrival) : std::string(),
                            R"(,"nf":")", instance.name(), R"(","verdict":")", verdict, "\"");
  if (line.reason >= 0) {
    text += concat(R"(,"reason":")", instance.reason_name(static_cast<std::uint32_t>(line.reason)), "\"");
  }
  if (!line.fields.empty()) {
    text += concat(",", line.fields);
  }
  text += '}';
  return text;
}

}  // namespace catena::nf
