// SPDX-License-Identifier: Apache-2.0
#include <catena/core/counter.hpp>
#include "io/dpdk/ethdev_port.hpp"
#include "io/interface.hpp"
#include "io/kernel_port.hpp"
#include "io/sink.hpp"
#include "io/source.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/ether_type.hpp>
#include <catena/packet/fragments.hpp>
#include <catena/packet/headers.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>

namespace catena::io {
namespace {

/// Frames taken from a port at once.
constexpr std::uint32_t kPortBurst = 256;
/// How long the sink waits for a port that takes nothing. It is stuck then, and not waited for until it takes
/// something. At a slow port that many chains share, this is more than it takes until it is a chain's turn again.
constexpr std::chrono::seconds kMaxTxWait{1};
/// Shorter frames stop the queue of some NICs (i40e: 17 bytes), and no Ethernet carries them.
constexpr std::uint32_t kMinTxBytes = 17;
/// How often an end looks whether the interfaces of its ports are still there.
constexpr std::chrono::milliseconds kInterfaceCheck{250};
/// What a NIC still has to send when the run ends.
constexpr std::chrono::milliseconds kMaxTxDrain{100};

std::string describe_all(std::span<const std::shared_ptr<Port>> ports) {
  std::string text;
  for (auto const& port : ports) {
    text += concat(text.empty() ? "" : " + ", port->describe());
  }
  return text;
}

/// Asks now and then what became of the interfaces of an end's ports. One thread at a time.
class InterfaceChecks {
 public:
  Status check(std::span<const std::shared_ptr<Port>> ports) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kInterfaceCheck) {
      return absl::OkStatus();
    }
    last_ = now;
    for (auto const& port : ports) {
      CATENA_RETURN_IF_ERROR(port->check_interface());
    }
    return absl::OkStatus();
  }

 private:
  std::chrono::steady_clock::time_point last_;
};

class PortSource final : public Source {
 public:
  PortSource(std::vector<std::shared_ptr<Port>> ports, LiveClock clock) : ports_(std::move(ports)), clock_(clock) {
    for (auto const& port : ports_) {
      watches_.emplace_back(port->interface());
    }
  }

  void start() override {
    for (auto const& port : ports_) {
      port->start_receiving();
    }
  }
  void stop() override {
    for (auto const& port : ports_) {
      port->stop_receiving();
    }
  }

  Status receive(memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index, bool& starved) override {
    CATENA_RETURN_IF_ERROR(checks_.check(ports_));
    for (std::size_t looked = 0; looked < ports_.size() && unit.count < pool.unit_packets(); ++looked) {
      receive_from(next_port_, pool, unit, next_index);
      next_port_ = (next_port_ + 1) % ports_.size();
    }
    starved = unit.count == 0 && pool.free_slots() == 0;
    return absl::OkStatus();
  }

  bool finished() const override { return false; }
  SourceCounts counts() const override {
    std::vector<NamedCount> drops{{"too_long", too_long_}, {"backlog_full", 0}, {"no_slot", 0}, {"rx_error", 0}};
    for (auto const& port : ports_) {
      const PortCounters counters = port->counters();
      drops[1].count += counters.missed;
      drops[2].count += counters.no_slot;
      drops[3].count += counters.rx_errors;
    }
    std::uint64_t seen = delivered_;
    for (NamedCount const& drop : drops) {
      seen += drop.count;
    }
    return {seen, std::move(drops)};
  }
  std::string describe() const override { return describe_all(ports_); }
  std::optional<LiveClock> live_clock() const override { return clock_; }
  std::vector<int> sockets() const override {
    std::vector<int> sockets;
    for (auto const& port : ports_) {
      sockets.push_back(port->readable_when_received());
    }
    const bool all = std::find(sockets.begin(), sockets.end(), -1) == sockets.end();
    return all ? sockets : std::vector<int>{};
  }

 private:
  void receive_from(std::size_t number, memory::PacketPool& pool, memory::Unit& unit, std::uint64_t& next_index) {
    std::array<SlotFrame, kPortBurst> frames;
    const std::uint32_t first = unit.count;
    // many drivers give no more than 32 at once: take what is there
    while (unit.count < pool.unit_packets()) {
      const std::size_t received =
          ports_[number]->receive(std::span(frames).first(std::min(kPortBurst, pool.unit_packets() - unit.count)));
      if (received == 0) {
        break;
      }
      const std::uint64_t arrival_ns = clock_.now_ns();
      for (SlotFrame const& frame : std::span(frames).first(received)) {
        enter(number, frame, pool, unit, next_index++, arrival_ns);
      }
    }
    if (watches_[number].is_watching()) {
      watch(number, pool.batch(unit), first);
    }
    delivered_ += unit.count - first;
  }

  void enter(std::size_t number, SlotFrame const& frame, memory::PacketPool& pool, memory::Unit& unit,
             std::uint64_t index, std::uint64_t arrival_ns) {
    if (frame.slot == kTooLong) {
      ++too_long_;
      watches_[number].saw_too_long();
      return;
    }
    unit.slots()[unit.count++] = frame.slot;
    pool.set_arrived_at(frame.offset, frame.slot, frame.length, index, arrival_ns);
    pool.meta().port[frame.slot] = static_cast<std::uint16_t>((number + 1) % ports_.size());
    pool.meta().ingress[frame.slot] = static_cast<std::uint16_t>(number);
  }

  /// Looks at the packets of `batch` from `first` on, which came in at port `number`.
  void watch(std::size_t number, packet::Batch const& batch, std::uint32_t first) {
    for (std::uint32_t i = first; i < batch.size(); ++i) {
      watches_[number].saw(batch[i].frame(), batch[i].length());
    }
  }

  std::vector<std::shared_ptr<Port>> ports_;
  LiveClock clock_;
  std::vector<OffloadWatch> watches_;  ///< one for each port
  InterfaceChecks checks_;
  std::size_t next_port_ = 0;
  Counter delivered_;
  Counter too_long_;
};

/// One port as the sink uses it: packets of the unit that are to leave there, and what became of earlier ones.
class TxPort {
 public:
  explicit TxPort(std::shared_ptr<Port> port) : port_(std::move(port)) {}

  Port const& port() const { return *port_; }
  void add(SlotFrame const& frame) { waiting_[waiting_count_++] = frame; }
  /// Adds the fragments of one packet, which counts as sent with the last of them.
  void add_fragments(memory::PacketPool& pool, std::span<const SlotFrame> fragments) {
    if (waiting_count_ + fragments.size() > memory::kMaxUnitPackets) {
      transmit(pool);
    }
    for (SlotFrame const& fragment : fragments) {
      earlier_parts_.push_back(waiting_count_);
      add(fragment);
    }
    earlier_parts_.pop_back();
    fragments_ += fragments.size();
  }

  /// Hands what was added to the port; what that does not take goes back to `pool`.
  void transmit(memory::PacketPool& pool) {
    const std::span<const SlotFrame> frames = std::span(waiting_).first(std::exchange(waiting_count_, 0));
    std::size_t taken = 0;
    while (taken < frames.size()) {
      const std::size_t step = port_->send(frames.subspan(taken));
      taken += step;
      if (step != 0) {
        idle_since_.reset();
      } else if (!may_wait()) {
        break;
      }
    }
    const auto parts_taken = static_cast<std::size_t>(
        std::lower_bound(earlier_parts_.begin(), earlier_parts_.end(), taken) - earlier_parts_.begin());
    accepted_ += taken;
    accepted_parts_ += parts_taken;
    tx_full_ += frames.size() - taken - (earlier_parts_.size() - parts_taken);
    earlier_parts_.clear();
    for (SlotFrame const& frame : frames.subspan(taken)) {
      pool.release_slots(std::span(&frame.slot, 1));
    }
  }

  /// Whether the driver has said of every packet what became of it.
  bool is_drained() const {
    const PortCounters counters = port_->counters();
    return counters.sent + counters.tx_errors >= accepted_;
  }
  /// Packets, of which the last frame was taken.
  std::uint64_t accepted() const {
    const std::uint64_t parts = accepted_parts_;  // never more than the frames, which are counted first
    return accepted_ - parts;
  }
  std::uint64_t fragments() const { return fragments_; }
  std::uint64_t tx_full() const { return tx_full_; }
  /// Packets that the driver took and did not send.
  std::uint64_t errors() const { return std::min(accepted(), port_->counters().tx_errors); }

 private:
  /// After the port took nothing: yields once, or says that it is stuck.
  bool may_wait() {
    const auto now = std::chrono::steady_clock::now();
    if (now - idle_since_.value_or(now) >= kMaxTxWait) {
      return false;
    }
    idle_since_ = idle_since_.value_or(now);
    std::this_thread::yield();
    return true;
  }

  std::shared_ptr<Port> port_;
  std::optional<std::chrono::steady_clock::time_point> idle_since_;  ///< none: it took something when last asked
  /// A unit, and what fragments of its packets add (add_fragments() leaves room for the rest of the unit).
  std::array<SlotFrame, 2 * memory::kMaxUnitPackets> waiting_{};
  std::size_t waiting_count_ = 0;
  std::vector<std::size_t> earlier_parts_;  ///< of waiting_: fragments that are not their packet's last
  Counter accepted_;                        ///< frames that the driver took
  Counter accepted_parts_;                  ///< of those, fragments that are not their packet's last
  Counter fragments_;
  Counter tx_full_;
};

class PortSink final : public Sink {
 public:
  /// `ports`: those that packets are sent to by number, and after them others that only replies leave through.
  /// `reply_ports`: by number of the rx port that a packet came in on, the position in `ports`; none: 0.
  PortSink(std::vector<std::shared_ptr<Port>> ports, std::size_t numbered, std::vector<std::size_t> reply_ports)
      : handles_(std::move(ports)), numbered_(numbered), reply_ports_(std::move(reply_ports)) {
    for (auto const& port : handles_) {
      ports_.emplace_back(port);
    }
  }

  Status send(memory::PacketPool& pool, memory::Unit& unit) override {
    Status present = checks_.check(handles_);
    std::uint32_t kept = 0;  // packets from here to i are not sent and still hold their slots
    const packet::Batch batch = pool.batch(unit);
    for (std::uint32_t i = 0; i < batch.size(); ++i) {
      const packet::Packet packet = batch[i];
      TxPort* port = port_for(packet);
      if (port == nullptr) {
        continue;
      }
      if (const std::uint32_t frames = packet::leaves_in(packet); frames == 1) {
        if (is_too_long(packet, packet.length(), *port)) {
          continue;
        }
        port->add(frame_of(unit.slots()[i], packet));
      } else if (!add_fragments(pool, unit.slots()[i], packet, frames, *port)) {
        continue;
      }
      pool.release_slots(unit, kept, i - kept);
      kept = i + 1;
    }
    pool.release_slots(unit, kept, unit.count - kept);
    for (TxPort& port : ports_) {
      port.transmit(pool);
    }
    return present;
  }

  Status finish() override {
    const auto deadline = std::chrono::steady_clock::now() + kMaxTxDrain;
    while (std::chrono::steady_clock::now() < deadline &&
           !std::all_of(ports_.begin(), ports_.end(), [](TxPort const& port) { return port.is_drained(); })) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (auto const& port : handles_) {
      port->stop_sending();
    }
    return absl::OkStatus();
  }

  SinkCounts counts() const override {
    const std::uint64_t errors = total(&TxPort::errors);  // before the packets that they are of, as those grow
    return {total(&TxPort::accepted) - errors,
            {{"tx_full", total(&TxPort::tx_full)},
             {"too_short", too_short_},
             {"too_long", too_long_},
             {"df_set", df_set_},
             {"no_slot", no_slot_},
             {"no_such_port", no_such_port_},
             {"tx_error", errors}},
            total(&TxPort::fragments)};
  }
  std::string describe() const override { return describe_all(std::span(handles_).first(numbered_)); }

 private:
  /// Where the packet leaves; null for one that an NF dropped and for one that no port carries, which is counted.
  TxPort* port_for(packet::Packet const& packet) {
    if (packet.verdict() == packet::Verdict::kDrop) {
      return nullptr;
    }
    const std::size_t number = packet.verdict() == packet::Verdict::kReply ? reply_port(packet) : next_port(packet);
    if (number >= ports_.size()) {
      ++no_such_port_;
      return nullptr;
    }
    if (packet.length() < kMinTxBytes) {
      ++too_short_;
      return nullptr;
    }
    return &ports_[number];
  }
  std::size_t next_port(packet::Packet const& packet) const {
    // with one port there is nothing to choose
    const std::size_t number = numbered_ == 1 ? 0 : packet.port();
    return number < numbered_ ? number : ports_.size();
  }
  std::size_t reply_port(packet::Packet const& packet) const {
    if (reply_ports_.empty()) {
      return 0;
    }
    return packet.ingress() < reply_ports_.size() ? reply_ports_[packet.ingress()] : ports_.size();
  }

  /// Whether the port does not carry a frame of `bytes` with the packet's tags, which is counted.
  bool is_too_long(packet::Packet const& packet, std::uint32_t bytes, TxPort const& port) {
    // of the types of tags, Linux lets this one alone exceed the MTU
    const bool tagged = packet::load_be16(packet.frame() + packet::kEtherTypeAt) == packet::kVlanTag;
    const bool too_long = bytes > port.port().max_tx_bytes() + (tagged ? packet::kTagBytes : 0);
    too_long_ += too_long ? 1 : 0;
    return too_long;
  }

  /// Hands the packet to the port as `frames` fragments, the first of them in its own slot. False if it cannot leave,
  /// which is counted; its slot then stays as it is.
  bool add_fragments(memory::PacketPool& pool, std::uint32_t slot, packet::Packet const& packet, std::uint32_t frames,
                     TxPort& port) {
    if (frames == 0) {
      ++df_set_;
      return false;
    }
    const packet::Fragments fragments(packet);
    if (is_too_long(packet, fragments.max_bytes(), port)) {
      return false;
    }
    later_slots_.resize(frames - 1);
    if (!pool.acquire_slots(later_slots_)) {
      ++no_slot_;
      return false;
    }
    fragments_.resize(frames);
    for (std::uint32_t i = 1; i < frames; ++i) {
      const std::uint32_t later = later_slots_[i - 1];
      const std::uint32_t bytes = fragments.write(i, pool.slot(later) + packet::kSlotHeadroom);
      fragments_[i] = {later, packet::kSlotHeadroom, static_cast<std::uint16_t>(bytes)};
    }
    packet.set_extent(packet.offset(), fragments.write(0, packet.frame()));
    fragments_[0] = frame_of(slot, packet);
    port.add_fragments(pool, fragments_);
    return true;
  }

  static SlotFrame frame_of(std::uint32_t slot, packet::Packet const& packet) {
    return {slot, packet.offset(), packet.length()};
  }

  std::uint64_t total(std::uint64_t (TxPort::*count)() const) const {
    std::uint64_t sum = 0;
    for (TxPort const& port : ports_) {
      sum += (port.*count)();
    }
    return sum;
  }

  std::vector<std::shared_ptr<Port>> handles_;
  std::size_t numbered_;
  std::vector<std::size_t> reply_ports_;
  std::deque<TxPort> ports_;
  std::vector<SlotFrame> fragments_;  ///< of the packet at hand
  std::vector<std::uint32_t> later_slots_;
  InterfaceChecks checks_;
  Counter too_short_;
  Counter too_long_;
  Counter df_set_;
  Counter no_slot_;
  Counter no_such_port_;
};

/// An interface of the kernel through sockets of our own, unless the device string wants something of DPDK's driver.
bool is_kernel_port(std::string const& device) {
  return !interface_of(device).empty() && std::count(device.begin(), device.end(), ',') == 1;
}

/// A port for each of `pools`.
Result<std::vector<std::shared_ptr<Port>>> open_port(std::string const& device,
                                                     std::span<memory::PacketPool* const> pools) {
  if (!is_kernel_port(device)) {
    return EthdevPort::open(device, pools);
  }
  if (pools.size() > 1) {
    return absl::InvalidArgumentError(concat("dpdk ", device, ": an interface of the kernel has one queue"));
  }
  CATENA_ASSIGN_OR_RETURN(std::shared_ptr<Port> port, KernelPort::open(device, *pools.front()));
  return std::vector{std::move(port)};
}

/// Opens or attaches the port of a device that is at the ends that say so.
Result<std::vector<std::shared_ptr<Port>>> open_end(std::string const& device, bool is_rx, bool is_tx,
                                                    std::span<memory::PacketPool* const> pools,
                                                    SharedEnds const& shared) {
  if (!(is_rx && shared.rx) && !(is_tx && shared.tx)) {
    return open_port(device, pools);
  }
  PortMember member{shared.chain, is_rx ? shared.matches : std::vector<TrafficMatch>()};
  CATENA_ASSIGN_OR_RETURN(std::shared_ptr<Port> port,
                          shared.switches->attach(device, std::move(member), *pools.front()));
  return std::vector{std::move(port)};
}

using Ports = std::vector<std::shared_ptr<Port>>;

bool is_among(std::string const& device, std::vector<std::string> const& devices) {
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

std::unique_ptr<Sink> make_sink(Ports const& rx, Ports tx) {
  const std::size_t numbered = tx.size();
  std::vector<std::size_t> reply_ports;
  for (auto const& port : rx) {
    const auto found = std::find(tx.begin(), tx.end(), port);
    reply_ports.push_back(static_cast<std::size_t>(found - tx.begin()));
    if (found == tx.end()) {
      tx.push_back(port);
    }
  }
  return std::make_unique<PortSink>(std::move(tx), numbered, std::move(reply_ports));
}

}  // namespace

std::shared_ptr<SharedPortRegistry> make_shared_port_registry() {
  return std::make_shared<SharedPortRegistry>(
      [](std::string const& device, memory::PacketPool& pool) -> Result<std::shared_ptr<Port>> {
        memory::PacketPool* const only = &pool;
        CATENA_ASSIGN_OR_RETURN(const std::vector<std::shared_ptr<Port>> ports, open_port(device, std::span(&only, 1)));
        return ports.front();
      });
}

Result<bool> can_divide(std::vector<std::string> const& rx, std::vector<std::string> const& tx, std::uint32_t parts) {
  for (std::vector<std::string> const* devices : {&rx, &tx}) {
    for (std::string const& device : *devices) {
      if (is_kernel_port(device)) {
        return false;
      }
      CATENA_ASSIGN_OR_RETURN(const bool can, EthdevPort::can_divide(device, parts));
      if (!can) {
        return false;
      }
    }
  }
  return !rx.empty();
}

Result<std::vector<DpdkPort>> open_dpdk_ports(std::vector<std::string> const& rx, std::vector<std::string> const& tx,
                                              std::span<memory::PacketPool* const> pools, SharedEnds const& shared) {
  std::map<std::string, Ports> opened;
  for (std::vector<std::string> const* devices : {&rx, &tx}) {
    for (std::string const& device : *devices) {
      if (Ports& ports = opened[device]; ports.empty()) {
        CATENA_ASSIGN_OR_RETURN(ports, open_end(device, is_among(device, rx), is_among(device, tx), pools, shared));
      }
    }
  }
  const LiveClock clock;
  std::vector<DpdkPort> ends(pools.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto ports_of = [&](std::vector<std::string> const& devices) {
      Ports ports;
      for (std::string const& device : devices) {
        ports.push_back(opened[device][i]);
      }
      return ports;
    };
    const Ports rx_ports = ports_of(rx);
    if (!tx.empty()) {
      ends[i].sink = make_sink(rx_ports, ports_of(tx));
    }
    if (!rx.empty()) {
      ends[i].source = std::make_unique<PortSource>(rx_ports, clock);
    }
  }
  return ends;
}

Result<DpdkPort> open_dpdk_ports(std::vector<std::string> const& rx, std::vector<std::string> const& tx,
                                 memory::PacketPool& pool) {
  memory::PacketPool* const only = &pool;
  CATENA_ASSIGN_OR_RETURN(std::vector<DpdkPort> ends, open_dpdk_ports(rx, tx, std::span(&only, 1)));
  return std::move(ends.front());
}

Result<DpdkPort> open_dpdk_port(std::string const& device, memory::PacketPool& pool) {
  return open_dpdk_ports({device}, {device}, pool);
}

}  // namespace catena::io
