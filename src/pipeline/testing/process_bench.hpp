// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/core/file_descriptor.hpp"
#include "base/ipc/socket_pair.hpp"
#include "packet/memory/packet_pool.hpp"
#include "pipeline/isolation/connection.hpp"

#include <catena/packet/testing/frames.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime::testing {

/// A pool, a connection to an NF process, and the other end of the connection, played by the test. One thread.
class ProcessBench {
 public:
  static constexpr std::uint32_t kUnitPackets = 1024;
  explicit ProcessBench(bool has_lines = false) {
    const auto shape = nf_process::ChannelShape::of(kUnitPackets, has_lines);
    connection_ = std::make_shared<nf_process::Connection>(
        nf_process::Channel::create(shape).value(),
        ipc::Mapping::create("test", std::size_t{shape.slots()} * packet::kSlotBytes).value());
    theirs_.emplace(
        nf_process::Channel::map(FileDescriptor(::fcntl(connection_->channel.fd(), F_DUPFD_CLOEXEC, 0)), shape)
            .value());
    units_.emplace(theirs_->reader_of_nf(notifiers_.second.get()));
    replies_.emplace(theirs_->writer_to_host(notifiers_.second.get()));
  }

  memory::PacketPool& pool() { return *pool_; }
  std::shared_ptr<nf_process::Connection> connection() const { return connection_; }
  int notifier() const { return notifiers_.first.get(); }
  /// A unit of UDP packets to ports 0, 1, .. with 100 bytes of payload; their numbers start at 0, in this and the next
  /// units.
  memory::Unit& unit_of(std::uint32_t packets) {
    memory::Unit& unit = *pool_->acquire_unit();
    static_cast<void>(pool_->acquire_slots(unit, packets));
    unit.count = packets;
    for (const std::uint32_t slot : unit.used_slots()) {
      const auto frame = packet::testing::make_frame(packet::kProtocolUdp, 0x0A000001, 0x0A000002, 99,
                                                     static_cast<std::uint16_t>(index_), std::string(100, 'x'));
      std::copy(frame.begin(), frame.end(), pool_->slot(slot) + packet::kSlotHeadroom);
      pool_->set_arrived(slot, static_cast<std::uint32_t>(frame.size()), index_++, 7);
    }
    return unit;
  }

  // The end of the process.
  nf_process::Channel const& theirs() const { return *theirs_; }
  nf_process::RingReader& units() { return *units_; }
  nf_process::RingWriter& replies() { return *replies_; }
  /// Takes the next unit; empty if no unit has come.
  std::vector<nf_process::PacketEntry> receive() {
    const std::optional<std::span<const nf_process::PacketEntry>> unit = units_->poll().value();
    if (!unit) {
      return {};
    }
    std::vector<nf_process::PacketEntry> entries(unit->begin(), unit->end());
    units_->take();
    return entries;
  }
  void reply(std::span<const nf_process::PacketEntry> entries) {
    std::copy(entries.begin(), entries.end(), replies_->next().begin());
    replies_->push(static_cast<std::uint32_t>(entries.size()));
  }

 private:
  std::unique_ptr<memory::PacketPool> pool_ = memory::PacketPool::create(4096, kUnitPackets).value();
  std::pair<FileDescriptor, FileDescriptor> notifiers_ = ipc::make_socket_pair().value();
  std::shared_ptr<nf_process::Connection> connection_;
  std::optional<nf_process::Channel> theirs_;
  std::optional<nf_process::RingReader> units_;
  std::optional<nf_process::RingWriter> replies_;
  std::uint64_t index_ = 0;
};

}  // namespace catena::runtime::testing
