// SPDX-License-Identifier: Apache-2.0
#include "io/test_support.hpp"

#include "io/eal/eal.hpp"

#include <pcap/pcap.h>
#include <unistd.h>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

namespace catena::io::testing {

std::unique_ptr<memory::PacketPool> make_pool(std::uint32_t slots) {
  if (const Status started = eal::start(); !started.ok()) {
    throw std::runtime_error(started.ToString());
  }
  Result<std::unique_ptr<memory::PacketPool>> pool = memory::PacketPool::create(slots);
  if (!pool.ok()) {
    throw std::runtime_error(pool.status().ToString());
  }
  return std::move(pool).value();
}

void write_file(std::string const& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

Frame read_file(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool have_program(std::string const& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

std::string run_command(std::string const& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> chunk;
  std::size_t got = 0;
  while (pipe != nullptr && (got = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0) {
    output.append(chunk.data(), got);
  }
  if (pipe == nullptr || pclose(pipe) != 0) {
    throw std::runtime_error("failed: " + command);
  }
  return output;
}

Captured read_with_libpcap(std::string const& path) {
  Captured captured;
  char error[PCAP_ERRBUF_SIZE] = "";
  pcap_t* pcap = pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
  if (pcap == nullptr) {
    captured.error = error;
    return captured;
  }
  captured.link_type = pcap_datalink(pcap);
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  int got = 0;
  while ((got = pcap_next_ex(pcap, &header, &bytes)) == 1) {
    captured.frames.emplace_back(bytes, bytes + header->caplen);
    captured.stamps_ns.push_back(static_cast<std::uint64_t>(header->ts.tv_sec) * 1'000'000'000U +
                                 static_cast<std::uint64_t>(header->ts.tv_usec));
  }
  if (got != PCAP_ERROR_BREAK) {
    captured.error = pcap_geterr(pcap);
  }
  pcap_close(pcap);
  return captured;
}

void write_with_libpcap(std::string const& path, std::vector<Frame> const& frames, bool nanoseconds, int link_type) {
  pcap_t* dead = pcap_open_dead_with_tstamp_precision(
      link_type, 262144, nanoseconds ? PCAP_TSTAMP_PRECISION_NANO : PCAP_TSTAMP_PRECISION_MICRO);
  pcap_dumper_t* dumper = pcap_dump_open(dead, path.c_str());
  if (dumper == nullptr) {
    const std::string error = pcap_geterr(dead);
    pcap_close(dead);
    throw std::runtime_error(error);
  }
  pcap_pkthdr header{};
  for (Frame const& frame : frames) {
    header.ts.tv_sec += 1;
    header.ts.tv_usec = nanoseconds ? 987'654'321 : 654'321;
    header.caplen = static_cast<bpf_u_int32>(frame.size());
    header.len = header.caplen;
    pcap_dump(reinterpret_cast<u_char*>(dumper), &header, frame.data());
  }
  pcap_dump_close(dumper);
  pcap_close(dead);
}

std::vector<Frame> make_frames(std::size_t count, std::uint32_t min_bytes, std::uint32_t max_bytes,
                               std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Frame> frames(count);
  for (Frame& frame : frames) {
    frame.resize(min_bytes + random() % (max_bytes - min_bytes + 1));
    std::generate(frame.begin(), frame.end(), [&] { return static_cast<std::uint8_t>(random()); });
    if (frame.size() >= 14) {  // local experimental EtherType (IEEE 802), so that nothing on the way acts on it
      frame[0] = 0x02;
      frame[12] = 0x88;
      frame[13] = 0xB5;
    }
  }
  return frames;
}

void set_checksums(Frame& segment) {
  packet::store_be16(&segment[24], 0);
  packet::store_be16(&segment[24], packet::checksum_finish(packet::checksum_add(&segment[14], 20)));
  packet::store_be16(&segment[50], 0);
  const std::size_t tcp_bytes = segment.size() - 34;
  const std::uint64_t pseudo = packet::checksum_add(&segment[26], 8) + packet::kProtocolTcp + tcp_bytes;
  packet::store_be16(&segment[50], packet::checksum_finish(packet::checksum_add(&segment[34], tcp_bytes, pseudo)));
}

Frame make_segment(std::uint32_t sequence, std::uint16_t identification, std::uint32_t payload, std::uint8_t flags,
                   std::uint16_t source_port) {
  constexpr std::uint32_t kTcpBytes = 32;
  Frame frame{0x02, 0, 0, 0,    0, 2,  0x02, 0, 0, 0,  0, 1, 0x08, 0x00, 0x45, 0,   0,
              0,    0, 0, 0x40, 0, 64, 6,    0, 0, 10, 9, 0, 2,    198,  51,   100, 2};
  frame.resize(34 + kTcpBytes + payload);
  packet::store_be16(&frame[16], static_cast<std::uint16_t>(20 + kTcpBytes + payload));
  packet::store_be16(&frame[18], identification);
  packet::store_be16(&frame[34], source_port);
  packet::store_be16(&frame[36], 80);
  packet::store_be32(&frame[38], sequence);
  packet::store_be32(&frame[42], 7);
  frame[46] = kTcpBytes / 4 << 4;
  frame[47] = flags;
  packet::store_be16(&frame[48], 500);
  constexpr std::array<std::uint8_t, 12> kTimeStamps{1, 1, 8, 10, 0, 0, 1, 0, 0, 0, 2, 0};
  std::copy(kTimeStamps.begin(), kTimeStamps.end(), frame.begin() + 54);
  for (std::uint32_t i = 0; i < payload; ++i) {
    frame[34 + kTcpBytes + i] = static_cast<std::uint8_t>(sequence + i * 7 + i / 251);
  }
  set_checksums(frame);
  return frame;
}

::testing::AssertionResult same_frames(std::vector<Frame> const& got, std::vector<Frame> const& expected) {
  const std::size_t common = std::min(got.size(), expected.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (got[i] != expected[i]) {
      return ::testing::AssertionFailure() << "frame " << i << " is " << ::testing::PrintToString(got[i])
                                           << ", expected " << ::testing::PrintToString(expected[i]);
    }
  }
  if (got.size() != expected.size()) {
    return ::testing::AssertionFailure() << got.size() << " frames, expected " << expected.size();
  }
  return ::testing::AssertionSuccess();
}

std::vector<Frame> frames_of(memory::PacketPool& pool, memory::Unit const& unit) {
  std::vector<Frame> frames;
  const packet::Batch batch = pool.batch(unit);
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    if (batch[i].verdict() != packet::Verdict::kDrop) {
      frames.emplace_back(batch[i].frame(), batch[i].frame() + batch[i].length());
    }
  }
  return frames;
}

Received receive_all(Source& source, memory::PacketPool& pool, std::uint32_t idle_limit) {
  Received received;
  std::uint64_t next_index = 0;
  std::uint32_t idle = 0;
  while (!source.finished() && idle < idle_limit) {
    memory::Unit* unit = pool.acquire_unit();
    bool starved = false;
    received.status = source.receive(pool, *unit, next_index, starved);
    if (!received.status.ok()) {
      EXPECT_EQ(unit->count, 0U) << "a failing source delivers nothing";
      pool.release_unit(unit);
      break;
    }
    received.starved += starved ? 1 : 0;
    idle = unit->count == 0 ? idle + 1 : 0;
    for (const std::uint32_t slot : unit->used_slots()) {
      received.indices.push_back(pool.meta().index[slot]);
    }
    std::vector<Frame> frames = frames_of(pool, *unit);
    std::move(frames.begin(), frames.end(), std::back_inserter(received.frames));
    pool.release_slots(*unit, 0, unit->count);
    pool.release_unit(unit);
  }
  return received;
}

Status pump(Source& source, Sink& sink, memory::PacketPool& pool, std::uint32_t idle_limit) {
  std::uint64_t index = 0;
  std::uint32_t idle = 0;
  while (!source.finished() && idle < idle_limit) {
    memory::Unit* unit = pool.acquire_unit();
    bool starved = false;
    Status status = source.receive(pool, *unit, index, starved);
    idle = unit->count == 0 ? idle + 1 : 0;
    if (status.ok()) {
      status = sink.send(pool, *unit);
    }
    pool.release_unit(unit);
    CATENA_RETURN_IF_ERROR(status);
  }
  return sink.finish();
}

Status send_frames(Sink& sink, memory::PacketPool& pool, std::vector<Frame> const& frames, std::uint32_t unit_packets) {
  for (std::size_t first = 0; first < frames.size(); first += unit_packets) {
    memory::Unit* unit = pool.acquire_unit();
    const auto packets = static_cast<std::uint32_t>(std::min<std::size_t>(unit_packets, frames.size() - first));
    if (unit == nullptr || !pool.acquire_slots(*unit, packets)) {
      return absl::ResourceExhaustedError("the test's pool is too small");
    }
    for (std::uint32_t i = 0; i < packets; ++i) {
      Frame const& frame = frames[first + i];
      std::copy(frame.begin(), frame.end(), pool.slot(unit->slots()[i]) + packet::kSlotHeadroom);
      pool.set_arrived(unit->slots()[i], static_cast<std::uint32_t>(frame.size()), first + i, 0);
    }
    unit->count = packets;
    const Status status = sink.send(pool, *unit);
    pool.release_unit(unit);
    CATENA_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

std::uint64_t count_of(std::vector<NamedCount> const& counts, std::string_view name) {
  const auto found =
      std::find_if(counts.begin(), counts.end(), [name](NamedCount const& count) { return count.name == name; });
  if (found == counts.end()) {
    throw std::runtime_error("no count named " + std::string(name));
  }
  return found->count;
}

}  // namespace catena::io::testing
