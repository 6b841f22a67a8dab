// SPDX-License-Identifier: Apache-2.0
#include "nat_testing.hpp"

#include <gtest/gtest.h>
#include <catena/core/text.hpp>
#include <catena/nf/testing/packet_store.hpp>

#include <algorithm>
#include <optional>

namespace catena::nat::testing {
namespace {

std::size_t header_bytes(Frame const& frame, std::size_t l3) { return (frame[l3] & 0x0FU) * 4U; }

/// Where the transport checksum is in its header.
std::size_t checksum_at(std::uint8_t protocol) {
  return protocol == kTcpProtocol ? 16 : protocol == kUdpProtocol ? 6 : 2;
}

/// The sum over the pseudo header (RFC 793, RFC 768); 0 for ICMP, which has none.
std::uint32_t pseudo_header(Frame const& frame, std::size_t l3, std::size_t l4_bytes) {
  if (frame[l3 + 9] == kIcmpProtocol) {
    return 0;
  }
  std::uint32_t sum = frame[l3 + 9] + static_cast<std::uint32_t>(l4_bytes);
  for (std::size_t at = l3 + 12; at < l3 + 20; at += 2) {
    sum += get16(frame, at);
  }
  return sum;
}

std::uint16_t transport_checksum(Frame const& frame, std::size_t l3) {
  const std::size_t l4 = l3 + header_bytes(frame, l3);
  const std::size_t bytes = get16(frame, l3 + 2) - header_bytes(frame, l3);
  return rfc1071(std::span(frame).subspan(l4, bytes), pseudo_header(frame, l3, bytes));
}

void expect_same(RunResult const& expected, RunResult const& actual) {
  ASSERT_EQ(expected.packets.size(), actual.packets.size());
  for (std::size_t i = 0; i < expected.packets.size(); ++i) {
    ASSERT_TRUE(expected.packets[i] == actual.packets[i]) << "packet " << i;
  }
  EXPECT_EQ(expected.records, actual.records);
  EXPECT_EQ(expected.drops, actual.drops);
  ASSERT_EQ(expected.statistics.size(), actual.statistics.size());
  for (std::size_t i = 0; i < expected.statistics.size(); ++i) {
    EXPECT_EQ(expected.statistics[i].value, actual.statistics[i].value) << expected.statistics[i].name;
  }
}

}  // namespace

std::uint16_t get16(Frame const& frame, std::size_t at) {
  return static_cast<std::uint16_t>(frame[at] << 8 | frame[at + 1]);
}
std::uint32_t get32(Frame const& frame, std::size_t at) {
  return std::uint32_t{get16(frame, at)} << 16 | get16(frame, at + 2);
}
void set16(Frame& frame, std::size_t at, std::uint16_t value) {
  frame[at] = static_cast<std::uint8_t>(value >> 8);
  frame[at + 1] = static_cast<std::uint8_t>(value);
}
void set32(Frame& frame, std::size_t at, std::uint32_t value) {
  set16(frame, at, static_cast<std::uint16_t>(value >> 16));
  set16(frame, at + 2, static_cast<std::uint16_t>(value));
}

std::uint16_t rfc1071(std::span<const std::uint8_t> bytes, std::uint32_t start) {
  std::uint64_t sum = start;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += i % 2 == 0 ? std::uint64_t{bytes[i]} << 8 : bytes[i];
  }
  while (sum > 0xFFFF) {
    sum = (sum & 0xFFFF) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(~sum);
}

void set_checksums(Frame& frame, std::size_t l3) {
  set16(frame, l3 + 10, 0);
  set16(frame, l3 + 10, rfc1071(std::span(frame).subspan(l3, header_bytes(frame, l3))));
  const std::uint8_t protocol = frame[l3 + 9];
  const std::size_t at = l3 + header_bytes(frame, l3) + checksum_at(protocol);
  set16(frame, at, 0);
  const std::uint16_t checksum = transport_checksum(frame, l3);
  set16(frame, at, protocol == kUdpProtocol && checksum == 0 ? std::uint16_t{0xFFFF} : checksum);
}

::testing::AssertionResult has_right_checksums(Frame const& frame) {
  if (rfc1071(std::span(frame).subspan(kL3, header_bytes(frame, kL3))) != 0) {
    return ::testing::AssertionFailure() << "IPv4 header checksum";
  }
  const std::uint8_t protocol = frame[kL3 + 9];
  const std::size_t l4 = kL3 + header_bytes(frame, kL3);
  const bool has_none = protocol == kUdpProtocol && get16(frame, l4 + 6) == 0;
  if (!has_none && transport_checksum(frame, kL3) != 0) {
    return ::testing::AssertionFailure() << "checksum of protocol " << int{protocol};
  }
  const std::uint8_t type = frame[l4];
  const bool is_error = protocol == kIcmpProtocol && (type == 3 || type == 4 || type == 11 || type == 12);
  if (is_error && rfc1071(std::span(frame).subspan(l4 + 8, header_bytes(frame, l4 + 8))) != 0) {
    return ::testing::AssertionFailure() << "header checksum of the quoted datagram";
  }
  return ::testing::AssertionSuccess();
}

Frame make_icmp(std::uint8_t type, std::uint8_t code, std::uint32_t source, std::uint32_t destination,
                std::uint32_t rest, std::span<const std::uint8_t> body) {
  // an 8-byte UDP datagram has headers of the same size
  Frame frame = make_frame(kUdpProtocol, source, destination, 0, 0, std::string(body.size(), '\0'));
  frame[kL3 + 9] = kIcmpProtocol;
  frame[kL4] = type;
  frame[kL4 + 1] = code;
  set32(frame, kL4 + 4, rest);
  std::copy(body.begin(), body.end(), frame.begin() + kL4 + 8);
  set_checksums(frame);
  return frame;
}

Frame make_echo(std::uint8_t type, std::uint32_t source, std::uint32_t destination, std::uint16_t identifier,
                std::uint16_t sequence) {
  const std::vector<std::uint8_t> body{'a', 'b', 'c', 'd', 'e'};
  return make_icmp(type, 0, source, destination, std::uint32_t{identifier} << 16 | sequence, body);
}

Frame make_error(std::uint8_t type, std::uint32_t from, Frame const& frame, std::size_t quoted_l4) {
  const std::size_t bytes = std::min(header_bytes(frame, kL3) + quoted_l4, frame.size() - kL3);
  return make_icmp(type, type == 3 ? 3 : 0, from, source_of(frame), 0, std::span(frame).subspan(kL3, bytes));
}

Frame make_segment(std::uint32_t source, std::uint32_t destination, std::uint16_t source_port,
                   std::uint16_t destination_port, std::uint8_t flags) {
  Frame frame = make_frame(kTcpProtocol, source, destination, source_port, destination_port, "");
  frame[kL4 + 13] = flags;
  set_checksums(frame);
  return frame;
}

Frame answer_to(Frame const& frame) {
  Frame answer = frame;
  if (frame[kL3 + 9] == kIcmpProtocol) {
    answer[kL4] = 0;
    return with_ends(std::move(answer), destination_of(frame), get16(frame, kL4 + 4), source_of(frame), 0);
  }
  return with_ends(std::move(answer), destination_of(frame), destination_port_of(frame), source_of(frame),
                   source_port_of(frame));
}

Frame with_ends(Frame frame, std::uint32_t source, std::uint16_t source_port, std::uint32_t destination,
                std::uint16_t destination_port) {
  const std::size_t l4 = kL3 + header_bytes(frame, kL3);
  const bool has_none = frame[kL3 + 9] == kUdpProtocol && get16(frame, l4 + 6) == 0;
  set32(frame, kL3 + 12, source);
  set32(frame, kL3 + 16, destination);
  if (frame[kL3 + 9] == kIcmpProtocol) {
    set16(frame, l4 + 4, source_port);
  } else {
    set16(frame, l4, source_port);
    set16(frame, l4 + 2, destination_port);
  }
  set_checksums(frame);
  if (has_none) {
    set16(frame, l4 + 6, 0);
  }
  return frame;
}

std::pair<Frame, Frame> in_two(Frame const& frame, std::uint16_t id, std::size_t first_bytes) {
  Frame first = frame;
  first.resize(kL4 + first_bytes);
  Frame second = frame;
  second.erase(second.begin() + kL4, second.begin() + static_cast<std::ptrdiff_t>(kL4 + first_bytes));
  for (Frame* part : {&first, &second}) {
    set16(*part, kL3 + 2, static_cast<std::uint16_t>(part->size() - kL3));
    set16(*part, kL3 + 4, id);
    set16(*part, kL3 + 6, part == &first ? std::uint16_t{0x2000} : static_cast<std::uint16_t>(first_bytes / 8));
    set16(*part, kL3 + 10, 0);
    set16(*part, kL3 + 10, rfc1071(std::span(*part).subspan(kL3, 20)));
  }
  return {first, second};
}

Result<std::unique_ptr<nf::Nf>> make(std::string_view yaml) {
  // room for a million mappings, which most tests do not say, is most of their time
  const bool says = yaml.find("max_mappings") != std::string_view::npos;
  return nf::testing::make_nf(catena_nf_nat(), says ? std::string(yaml) : concat(yaml, "\nmax_mappings: 20000\n"));
}

RunResult run_everywhere(std::vector<Frame> const& frames, std::string_view yaml,
                         std::vector<std::uint64_t> const& arrivals_ns) {
  std::vector<device::Device*> places{nullptr};
  places.insert(places.end(), nf::testing::devices().begin(), nf::testing::devices().end());
  std::optional<RunResult> first;
  for (device::Device* place : places) {
    for (const std::uint32_t unit_size : {256U, 33U, 1U}) {
      SCOPED_TRACE(concat(nf::testing::name_of(place), ", units of ", unit_size));
      auto nat = make(yaml);
      if (!nat.ok()) {
        ADD_FAILURE() << nat.status();
        return {};
      }
      nf::testing::RunOptions options;
      options.unit_size = unit_size;
      options.units_per_launch = unit_size == 1 ? 512 : 4;
      options.arrivals_ns = arrivals_ns;
      auto result = nf::testing::run(catena_nf_nat(), std::move(nat).value(), frames, place, options);
      if (!result.ok()) {
        ADD_FAILURE() << result.status();
        return {};
      }
      EXPECT_EQ(result->counters.kernel_faults, 0U);
      if (!first) {
        first = std::move(result).value();
      } else {
        expect_same(*first, *result);
      }
    }
  }
  return std::move(*first);
}

DividedNat::DividedNat(std::string_view yaml, std::uint32_t shards) {
  nf::Config config = nf::Config::parse(yaml, "test.yaml").value();
  config.set_shard({0, shards});
  std::unique_ptr<nf::Nf> first = Nat::create(config).value();
  divider_ = first->divider();
  std::vector<std::unique_ptr<nf::Nf>> others;
  for (std::uint32_t shard = 1; shard < shards; ++shard) {
    others.push_back(first->replicate(shard).value());
  }
  nats_.push_back(std::make_unique<nf::testing::CpuNf>(catena_nf_nat(), std::move(first)));
  for (std::unique_ptr<nf::Nf>& other : others) {
    nats_.push_back(std::make_unique<nf::testing::CpuNf>(catena_nf_nat(), std::move(other)));
  }
}

DividedNat::Sent DividedNat::send(Frame const& frame, std::uint64_t arrival_ns) {
  nf::testing::PacketStore store(std::span(&frame, 1), std::span(&arrival_ns, 1));
  const packet::Packet packet = store.all()[0];
  Sent sent;
  // what any shard may have goes to all in turn
  sent.shard = divider_->shard_of(packet).value_or(static_cast<std::uint32_t>(++sent_ % nats_.size()));
  nf::testing::CpuNf& nat = *nats_.at(sent.shard);
  const std::vector<std::uint64_t> before = drops(nat);
  nat.process(store.all());
  if (packet.verdict() == packet::Verdict::kDrop) {
    const std::vector<std::uint64_t> after = drops(nat);
    const auto at = std::mismatch(before.begin(), before.end(), after.begin()).first - before.begin();
    sent.drop_reason = catena_nf_nat().drop_reasons[static_cast<std::size_t>(at)].name;
  } else {
    sent.frame.assign(packet.frame(), packet.frame() + packet.length());
  }
  return sent;
}

std::vector<std::uint64_t> DividedNat::drops(nf::testing::CpuNf const& nat) {
  std::vector<std::uint64_t> counts;
  for (nf::DropReason const& reason : catena_nf_nat().drop_reasons) {
    counts.push_back(nat.dropped(reason.name));
  }
  return counts;
}

std::uint64_t DividedNat::statistic(std::string_view name) {
  std::uint64_t sum = 0;
  for (auto const& nat : nats_) {
    for (nf::Statistic const& entry : nat->nf().statistics()) {
      sum += entry.name == name ? entry.value : 0;
    }
  }
  return sum;
}

std::uint64_t statistic(RunResult const& result, std::string_view name) {
  const auto found = std::find_if(result.statistics.begin(), result.statistics.end(),
                                  [name](nf::Statistic const& entry) { return entry.name == name; });
  EXPECT_NE(found, result.statistics.end()) << name;
  return found == result.statistics.end() ? 0 : found->value;
}

}  // namespace catena::nat::testing
