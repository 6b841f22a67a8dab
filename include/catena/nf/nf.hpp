// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/kernel/fault.hpp>
#include <catena/kernel/spec.hpp>
#include <catena/nf/config.hpp>
#include <catena/nf/outcome.hpp>
#include <catena/packet/batch.hpp>
#include <catena/packet/fields.hpp>
#include <catena/packet/flow_key.hpp>
#include <catena/packet/hints.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The interface between an NF and the rest of Catena. An NF processes packets in three steps:
///
///     prepare   CPU, packet order   sequential state: ESP sequence numbers, NAT ports. Fills `aux`. May drop, reply.
///     compute   CPU or device       the work itself: (fields, aux) -> (fields, result)
///     complete  CPU, packet order   result -> verdict, drop reason, reply, record line, sequential state after compute
///
/// `aux` and `result` are structs of the NF, one of each per packet. `compute` is implemented twice, for the CPU and as
/// a kernel; both must give the same bytes. prepare() of a later batch may run before complete() of an earlier one, so
/// it must not read state written by complete(). The output of an NF must not depend on the sizes of batches.
namespace catena::nf {

using packet::Hints;

/// The device side of an instance, empty if the NF has no kernel.
struct KernelSide {
  kernel::KernelSpec spec;
  std::vector<std::byte> state = {};  ///< copied to the device once; see StateBuilder
};

/// Bytes to copy back from one row's spill area: device memory for results longer than the result struct.
struct SpillRequest {
  std::uint32_t row;  ///< position of the packet in its launch
  std::uint32_t bytes;
};
/// The copied spill bytes of each row of a launch; empty for rows without a request. Implemented by Catena.
class SpillRows {
 public:
  virtual ~SpillRows() = default;
  virtual std::span<const std::byte> row(std::uint32_t row) const = 0;
};

/// Typed access to aux and result arrays.
template <typename T>
std::span<T> array_of(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}
template <typename T>
std::span<const T> array_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// A finished batch, for complete(). Valid during that call.
class Completion {
 public:
  /// `spill`: null if compute() ran on the CPU. `first_row`: the batch's first row in its launch.
  Completion(packet::Batch const& batch, std::span<const std::byte> aux, std::span<const std::byte> results,
             Outcome& outcome, SpillRows const* spill = nullptr, std::uint32_t first_row = 0)
      : batch_(&batch), aux_(aux), results_(results), outcome_(&outcome), spill_(spill), first_row_(first_row) {}

  packet::Batch const& batch() const { return *batch_; }
  Outcome& outcome() const { return *outcome_; }
  /// The descriptor's structs, one per packet.
  template <typename T>
  std::span<const T> aux() const {
    return array_of<T>(aux_);
  }
  template <typename T>
  std::span<const T> results() const {
    return array_of<T>(results_);
  }
  /// Whether compute ran on a device; spill() has bytes only then.
  bool from_device() const { return spill_ != nullptr; }
  /// The spill bytes that spill_requests() requested for packet `i` of the batch; empty without a request.
  std::span<const std::byte> spill(std::uint32_t i) const {
    return spill_ == nullptr ? std::span<const std::byte>() : spill_->row(first_row_ + i);
  }

 private:
  packet::Batch const* batch_;
  std::span<const std::byte> aux_;
  std::span<const std::byte> results_;
  Outcome* outcome_;
  SpillRows const* spill_;
  std::uint32_t first_row_;
};

/// How packets may be divided among the shards of an NF: instances with the same configuration that run in parallel.
enum class Sharding : std::uint8_t {
  kNone,    ///< not at all: results depend on packets of other flows, so one instance has to process all packets
  kPacket,  ///< arbitrarily: the result for a packet depends on this packet only
  /// By flow: the result for a packet depends only on its flow, in both directions, and on ICMP errors about the flow.
  /// Fragments have no ports and form a flow of their own, identified by their two addresses.
  kFlow,
  kOwn,  ///< by the NF's sharder()
};

/// Selects the shard of a packet. May keep state of earlier packets, e.g. of the first fragment of a datagram. Used by
/// one thread at a time, while the NFs run in other threads: a Sharder may read only constant data of the NFs.
class Sharder {
 public:
  virtual ~Sharder() = default;
  /// The number of the shard, below Config::shard().count; nullopt: Catena selects it by flow. Called in packet order,
  /// for each packet that the NF can inspect. Reads the same fields as prepare().
  virtual std::optional<std::uint32_t> shard_of(packet::Packet const& packet) = 0;
};

/// A set of flows. The key of a flow has its ports, or for ICMP echoes the identifier as both ports; that of fragments
/// and other protocols has two addresses and protocol 0. A set has both directions of a flow, or neither.
using FlowFilter = std::function<bool(packet::FlowKey const&)>;

/// Prefix of a line of Nf::start_report() with a warning about a valid but perhaps unintended setting. These lines come
/// first at a start, with the NF's name, and `catena check` prints them, too.
inline constexpr std::string_view kWarning = "WARNING  ";

struct Statistic {
  std::string name;  ///< snake_case, stable: it is a metric name
  std::uint64_t value;
};

/// One configured NF. Called from one thread at a time. Packets dropped or replied to by prepare() are not in the batch
/// of compute() and complete(). `aux` and `results` are arrays with one struct per packet; the descriptor has their
/// sizes.
class Nf {
 public:
  virtual ~Nf() = default;

  /// The packet fields that compute(), the kernel, prepare() and complete() read and write. Must not change. If a field
  /// is missing here, an NF may read an outdated value of it.
  virtual Hints hints() const = 0;

  /// Average growth of a frame in bytes, for planning; negative if frames shrink. Must not change.
  virtual double grows_by() const { return 0; }

  /// Creates the NF of shard `shard`. It may share the constant data of this NF, which outlives it. Called on the NF of
  /// shard 0, before the first packet. Null: Catena calls the descriptor's create() for each shard instead.
  /// Errors: as create().
  virtual Result<std::unique_ptr<Nf>> replicate(std::uint32_t shard) const;
  /// The sharder of Sharding::kOwn, else null. The NF outlives it.
  virtual std::unique_ptr<Sharder> sharder() const { return nullptr; }

  /// Handles a packet that this NF cannot inspect. Called only if the descriptor sets `takes_unsupported`. May drop or
  /// answer the packet through `outcome`; otherwise the chain's on_unsupported applies. Reads the same fields as
  /// prepare(). Called in packet order, before prepare() for the other packets of the same unit.
  virtual void take_unsupported(packet::Packet const& /*packet*/, Outcome& /*outcome*/) {}
  /// Fills `aux` (batch.size() * aux_bytes). Packets dropped or replied to through `outcome` do not reach the later
  /// steps.
  virtual void prepare(packet::Batch const& batch, std::span<std::byte> aux, Outcome& outcome);
  /// CPU implementation. Writes one result per packet, and the packet fields in Hints::cw.
  virtual void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) = 0;
  /// Turns results into verdicts and records.
  virtual void complete(Completion const& completion);

  /// Prepares migrate_state(): this NF is about to replace `before`, the NFs of the same type in all shards of a
  /// running chain, in the order of the shards. This NF may have more or fewer shards. Of an unchanged NF, which
  /// continues, only hints() and sharder() are called. Called on the NF of each shard while `before` process
  /// packets. Reads only constant data of `before`. Not called for Sharding::kPacket. With as many shards, a sharder()
  /// made after this call divides packets as that of `before`: a source may have divided its packets for good.
  /// FailedPrecondition, with the reason for the operator: this NF cannot take over the state, but could start without
  /// it. InvalidArgument: this NF cannot start either way.
  virtual Status prepare_migration(std::span<Nf const* const> before);
  /// Takes over the state of the packets of this shard from `before`, which get no more packets: flows, mappings,
  /// sequence numbers, replay windows. State that does not fit this configuration is discarded. Called on the NF of
  /// each shard in order, by one thread, before packets are divided among them: a sharder() made earlier divides by the
  /// final state. `is_mine`: whether Catena sends a flow's packets to this shard. For Sharding::kOwn the sharder()
  /// decides. Called between two packets, after prepare_migration() and kernel_side(). Must return soon, because
  /// packets wait.
  virtual void migrate_state(std::span<Nf* const> /*before*/, FlowFilter const& /*is_mine*/) {}

  /// The device side; called once per device. InvalidArgument if this configuration cannot run there.
  virtual Result<KernelSide> kernel_side() const;
  /// Requests spill bytes of the rows whose results are incomplete; called after a launch, before complete().
  virtual void spill_requests(std::span<const std::byte> results, std::vector<SpillRequest>& requests) const;

  /// Timer, for work without a packet: expiry and export of state. Called on live links, about four times per second
  /// even without traffic, by the thread of the other steps. No batch is between prepare() and complete() then.
  /// `now_ns` is from the clock that stamps packets (Packet::arrival_ns()). Packets in flight may have an earlier stamp
  /// and come after the call. Captures and generators have no timer, so that the same input gives the same output. Must
  /// return soon, because packets wait.
  virtual void tick(std::uint64_t /*now_ns*/) {}

  /// Called after the last packet of a run; writes out the remaining data. DataLoss, with the file, if this fails; the
  /// run then ends with this error.
  virtual Status finish() { return absl::OkStatus(); }

  /// Lines for the start-up report, e.g. "188 rules, 3 refused: pcre 2, flowbits 1"; see kWarning. Also called on NFs
  /// that never start.
  virtual std::vector<std::string> start_report() const { return {}; }
  /// Lines for the final report, called after finish(): data known to this NF alone, e.g. top talkers.
  virtual std::vector<std::string> end_report() const { return {}; }
  /// The NF's own counts and sizes, for the report and its JSON; called after finish().
  virtual std::vector<Statistic> statistics() const { return {}; }
};

struct DropReason {
  std::string_view name;  ///< snake_case, stable: it is a metric label
  std::string_view help;
};

/// An output of an NF besides `pass` and `alert`, for rows of `graph` in a chain file.
struct PacketOutput {
  std::string_view name;  ///< snake_case, stable: used in chain files
  std::string_view help;
};

/// A configuration key, for `catena show nfs` and the docs; create() reads it.
struct ConfigKey {
  std::string_view name;
  std::string_view type;      ///< "file", "integer 1..65535", "encrypt | decrypt"
  std::string_view fallback;  ///< empty if the key is required
  std::string_view help;
};

/// Declares an NF type; in static storage.
struct Descriptor {
  std::string_view type;  ///< the `type:` of a chain file
  std::string_view help;  ///< one line
  /// The NF gets packets with all LayerFlags of `needs` and without those of `refuses`. The chain file sets the
  /// treatment of other packets. Use `refuses = 0` to get truncated packets too, if the NF reads only headers.
  std::uint16_t needs = packet::kIpv4;
  std::uint16_t refuses = packet::kTruncated;
  /// Treatment of packets without inspection, if the chain file does not set on_unsupported. A security NF, e.g. a
  /// firewall, should drop them.
  OnUnsupported on_unsupported_default = OnUnsupported::kPass;
  bool takes_unsupported = false;  ///< see Nf::take_unsupported()
  /// Its verdict is about what packets carry: packets of a tunnel (packet::tunnel_of()) count as not inspected, because
  /// it inspects the headers outside only.
  bool is_inspector = false;
  std::span<const DropReason> drop_reasons;  ///< Outcome::drop() takes the position in this list
  std::span<const ConfigKey> config;
  std::uint32_t aux_bytes = 0;
  std::uint32_t result_bytes = 0;
  bool has_kernel = false;
  /// How packets may be divided among the shards of this NF.
  Sharding sharding = Sharding::kNone;
  /// Reads `config` and calls config.finish(). Errors carry their position in the file.
  Result<std::unique_ptr<Nf>> (*create)(Config& config) = nullptr;
  /// Declares the outputs and encryption keys of the NF, by the same calls as create(): Config::output_path(),
  /// output_folder(), receiver() and encrypts_with(). Opens nothing.
  /// An NF in its own process may write to these outputs only. Null if the NF neither writes nor encrypts.
  /// Errors: as create().
  Status (*name_outputs)(Config& config) = nullptr;
  std::span<const PacketOutput> packet_outputs =
      {};  ///< Outcome::leave_by() takes the position in this list; at most 64
};

/// Builds the bytes of KernelSide::state: a header struct, followed by arrays at offsets stored in the header.
///     StateBuilder state(sizeof(RouterState));
///     RouterState header{.tbl24 = state.add(std::span(tbl24)), ...};
///     return state.finish(header);
class StateBuilder {
 public:
  explicit StateBuilder(std::size_t header_bytes) : bytes_(header_bytes) {}

  template <typename T>
  kernel::StateArray<std::remove_const_t<T>> add(std::span<T> values) {
    bytes_.resize((bytes_.size() + kAlign - 1) / kAlign * kAlign);
    const kernel::StateArray<std::remove_const_t<T>> where{bytes_.size(), values.size()};
    const auto source = std::as_bytes(values);
    bytes_.insert(bytes_.end(), source.begin(), source.end());
    return where;
  }
  template <typename Header>
  std::vector<std::byte> finish(Header const& header) {
    std::memcpy(bytes_.data(), &header, sizeof header);
    return std::move(bytes_);
  }

 private:
  static constexpr std::size_t kAlign = 64;
  std::vector<std::byte> bytes_;
};

}  // namespace catena::nf
