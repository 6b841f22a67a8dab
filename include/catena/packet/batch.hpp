// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/packet/fields.hpp>
#include <catena/packet/headers.hpp>
#include <catena/packet/slot.hpp>

#include <cstdint>
#include <span>

/// A batch is the packets for an NF to process: a view of slots and their metadata, independent of their owner.
namespace catena::packet {

/// The decision about a packet. kDrop and kReply end its processing: downstream NFs do not see it.
enum class Verdict : std::uint8_t {
  kPass = 0,
  kAlert = 1,  ///< forwarded, and reported
  kDrop = 2,
  kReply = 3,  ///< rewritten in place into a reply, which leaves through the packet's ingress port
};
/// Not 0 if `verdict`, as stored in MetaColumns, ends a packet's processing. Bits, so verdicts can be or-ed together.
constexpr unsigned ended(std::uint8_t verdict) { return verdict & 2U; }
static_assert(ended(static_cast<std::uint8_t>(Verdict::kDrop)) != 0 &&
              ended(static_cast<std::uint8_t>(Verdict::kReply)) != 0 &&
              ended(static_cast<std::uint8_t>(Verdict::kAlert)) == 0);

/// Least MTU for a frame: RFC 791 requires every link to carry datagrams of this size.
inline constexpr std::uint16_t kMinMtu = 68;

/// Metadata of the packet pool, one array per field, indexed by slot.
struct MetaColumns {
  std::uint16_t* offset;             ///< first byte of the frame in its slot
  std::uint16_t* length;             ///< bytes of the frame
  Layers* layers;                    ///< see parse()
  std::uint8_t* verdict;             ///< Verdict
  std::uint16_t* port;               ///< output port
  std::uint64_t* index;              ///< position in arrival order, from 0
  std::uint64_t* arrival_ns;         ///< arrival time: the capture's stamp, else when rx took it; ns since 1970
  std::uint8_t* rewritten;           ///< 1: the device's copy of the payload is outdated; see Packet::mark_rewritten()
  std::uint16_t* ingress = nullptr;  ///< number of its rx port; 0 if rx is no port
  std::uint16_t* mtu = nullptr;      ///< see Packet::set_mtu(); 0: no bound
  std::uint16_t* output = nullptr;   ///< see Packet::set_output(); null if unused; 0: no NF has set it
};

/// One packet of a batch: cheap to copy, valid as long as the batch.
class Packet {
 public:
  Packet(std::uint8_t* slot_bytes, MetaColumns const& meta, std::uint32_t slot)
      : slot_bytes_(slot_bytes), meta_(&meta), slot_(slot) {}

  std::uint8_t* frame() const { return slot_bytes_ + meta_->offset[slot_]; }
  std::uint32_t slot() const { return slot_; }
  std::uint16_t length() const { return meta_->length[slot_]; }
  Layers const& layers() const { return meta_->layers[slot_]; }
  std::uint8_t* l3() const { return frame() + layers().l3; }
  std::uint8_t* l4() const { return frame() + layers().l4; }
  /// See packet::l3_length(). Precondition: is(kIpv4).
  std::uint32_t l3_length() const { return packet::l3_length(frame(), length(), layers()); }
  std::span<std::uint8_t> payload() const { return {frame() + layers().payload, layers().payload_length}; }
  bool is(std::uint16_t layer_flags) const { return (layers().flags & layer_flags) == layer_flags; }
  std::uint64_t index() const { return meta_->index[slot_]; }
  /// The only clock for an NF: a live one would make its output depend on its speed. Stamps in captures may go back or
  /// jump.
  std::uint64_t arrival_ns() const { return meta_->arrival_ns[slot_]; }
  Verdict verdict() const { return static_cast<Verdict>(meta_->verdict[slot_]); }

  /// Free bytes before and after the frame in its slot.
  std::uint32_t headroom() const { return meta_->offset[slot_]; }
  std::uint32_t tailroom() const { return kSlotBytes - meta_->offset[slot_] - meta_->length[slot_]; }

  /// Marks the payload as written by prepare(). Required if the NF's hints call such writes rare (prepare_writes_few).
  /// The next shared step moves the payload to the device, regardless of the rest of its plan, and clears the mark.
  void mark_rewritten() const { meta_->rewritten[slot_] = 1; }
  bool is_rewritten() const { return meta_->rewritten[slot_] != 0; }

  void set_verdict(Verdict verdict) const { meta_->verdict[slot_] = static_cast<std::uint8_t>(verdict); }
  void set_port(std::uint16_t port) const { meta_->port[slot_] = port; }
  std::uint16_t port() const { return meta_->port[slot_]; }
  std::uint16_t ingress() const { return meta_->ingress[slot_]; }
  /// Bounds the size of the packet's IPv4 datagrams at tx: tx sends a longer one as fragments (RFC 791, section 3.2),
  /// or drops it if its DF bit is set (`df_set`). `mtu`: bytes of a datagram, at least kMinMtu; 0: no bound.
  void set_mtu(std::uint16_t mtu) const { meta_->mtu[slot_] = mtu; }
  std::uint16_t mtu() const { return meta_->mtu[slot_]; }
  /// Sets the output by which NF number `nf` of the chain, at most 254, sends the packet (Outcome). Replaces the output
  /// set by another NF.
  void set_output(std::uint8_t nf, std::uint8_t output) const {
    if (meta_->output != nullptr) {
      meta_->output[slot_] = static_cast<std::uint16_t>((nf + 1U) << 8U | output);
    }
  }
  /// The output set by NF number `nf`; 0 if it has set no output.
  std::uint8_t output_of(std::uint8_t nf) const {
    const std::uint16_t said = meta_->output == nullptr ? 0 : meta_->output[slot_];
    return said >> 8U == nf + 1U ? static_cast<std::uint8_t>(said) : 0;
  }
  std::uint16_t offset() const { return meta_->offset[slot_]; }
  /// Moves the frame's bounds in its slot without touching bytes. offset + length <= kSlotBytes.
  void set_extent(std::uint32_t offset, std::uint32_t length) const {
    meta_->offset[slot_] = static_cast<std::uint16_t>(offset);
    meta_->length[slot_] = static_cast<std::uint16_t>(length);
  }
  /// Parses the frame again after its headers moved.
  void reparse() const { meta_->layers[slot_] = parse(frame(), length()); }

 private:
  std::uint8_t* slot_bytes_;
  MetaColumns const* meta_;
  std::uint32_t slot_;
};

/// The packets for an NF to process, in arrival order. Not thread safe; owns nothing.
class Batch {
 public:
  Batch(std::uint8_t* memory, MetaColumns const& meta, std::span<const std::uint32_t> slots)
      : memory_(memory), meta_(&meta), slots_(slots) {}

  std::uint32_t size() const { return static_cast<std::uint32_t>(slots_.size()); }
  Packet operator[](std::uint32_t i) const {
    const std::uint32_t slot = slots_[i];
    return {memory_ + std::size_t{slot} * kSlotBytes, *meta_, slot};
  }
  std::span<const std::uint32_t> slots() const { return slots_; }
  /// Whether the slots are consecutive, as in most units. True without packets.
  bool is_run() const {
    std::uint32_t differences = 0;
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      differences |= slots_[i] ^ (slots_[0] + i);
    }
    return differences == 0;
  }
  std::uint8_t* memory() const { return memory_; }
  MetaColumns const& meta() const { return *meta_; }
  Batch subset(std::span<const std::uint32_t> slots) const { return {memory_, *meta_, slots}; }

 private:
  std::uint8_t* memory_;
  MetaColumns const* meta_;
  std::span<const std::uint32_t> slots_;
};

}  // namespace catena::packet
