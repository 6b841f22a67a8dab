// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/kernel/fault.hpp>
#include <catena/kernel/spec.hpp>
#include <catena/nf/config.hpp>
#include <catena/nf/outcome.hpp>
#include <catena/packet/batch.hpp>
#include <catena/packet/fields.hpp>
#include <catena/packet/hints.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What an NF is to the rest of Catena. An NF decides packets in three steps:
///
///     prepare   CPU, packet order   sequential state: ESP sequence numbers, NAT ports. Fills `aux`. May drop, reply.
///     compute   CPU or device       the work itself: (fields, aux) -> (fields, result)
///     complete  CPU, packet order   result -> verdict, drop reason, reply, record line, sequential state after the
///     work
///
/// `compute` exists twice, by a library on the CPU and as a kernel, and both must give the same bytes. prepare() of a
/// later batch may run before complete() of an earlier one, so the two must not share state whose value matters; an
/// NF's output must not depend on how packets are cut into batches.
namespace catena::nf {

using packet::Hints;

/// The device side of an instance, or nothing if the NF has no kernel.
struct KernelSide {
  kernel::KernelSpec spec;
  std::vector<std::byte> state = {};  ///< copied to the device once; see StateBuilder
};

/// Spill bytes of one row that complete() needs (see Launch::fetch_spill).
struct SpillRequest {
  std::uint32_t row;
  std::uint32_t bytes;
};
/// Where a Completion finds spill bytes by the row of the launch; empty where none were requested. The framework has
/// it.
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

/// A batch whose work is done, for complete(). Valid during that call.
class Completion {
 public:
  /// `spill`: null where the work was done on the CPU. `first_row`: of the batch in its launch.
  Completion(packet::Batch const& batch, std::span<const std::byte> aux, std::span<const std::byte> results,
             Outcome& outcome, SpillRows const* spill = nullptr, std::uint32_t first_row = 0)
      : batch_(&batch), aux_(aux), results_(results), outcome_(&outcome), spill_(spill), first_row_(first_row) {}

  packet::Batch const& batch() const { return *batch_; }
  Outcome& outcome() const { return *outcome_; }
  /// The descriptor's structs, one for each packet.
  template <typename T>
  std::span<const T> aux() const {
    return array_of<T>(aux_);
  }
  template <typename T>
  std::span<const T> results() const {
    return array_of<T>(results_);
  }
  /// Whether the work was done on a device; spill() has bytes only then.
  bool from_device() const { return spill_ != nullptr; }
  /// What spill_requests() asked for of packet `i` of the batch; empty if nothing.
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

/// How the packets of a chain may be divided among several NFs with one configuration.
enum class Sharding : std::uint8_t {
  kNone,    ///< not at all: what the NF decides depends on packets of other flows, so one NF has to see them all
  kPacket,  ///< in any way: what the NF makes of a packet depends on that packet alone
  /// What it makes of one depends on those of the same flow, in both directions, and ICMP errors about it, at most.
  /// Fragments have no ports and count as a flow of their own: that of their two addresses.
  kFlow,
  kOwn,  ///< as the NF's divider() says
};

/// Says which of several NFs with one configuration has to see a packet. May keep state of the packets before, e.g.
/// where the first fragment of a datagram went. Belongs to one thread at a time, which is another one than that of the
/// NFs, and works beside them: of what they own it reads what never changes.
class Divider {
 public:
  virtual ~Divider() = default;
  /// The number of the NF, below Config::shard().count; nothing: any will do, and the flow decides. Called in packet
  /// order, for packets that prepare() would get. Reads what prepare() reads.
  virtual std::optional<std::uint32_t> shard_of(packet::Packet const& packet) = 0;
};

/// With what a line of Nf::start_report() begins that warns of what is allowed and perhaps not meant. Such lines come
/// first at a start, with the NF's name, and `catena check` has them, too.
inline constexpr std::string_view kWarning = "WARNING  ";

struct Statistic {
  std::string name;  ///< snake_case, stable: it is a metric name
  std::uint64_t value;
};

/// One configured NF. Called from one thread at a time. The batch given to compute() and complete() holds the packets
/// that prepare() neither dropped nor replied to; `aux` and `results` are arrays of the descriptor's structs, one for
/// each packet.
class Nf {
 public:
  virtual ~Nf() = default;

  /// Must not change. What compute(), the kernel, prepare() and complete() read and write of packets: a field that is
  /// missing here reaches them outdated on some plan.
  virtual Hints hints() const = 0;

  /// Bytes by which the NF lets an average frame grow, for plans to reckon with; below 0 where frames shrink. Must not
  /// change.
  virtual double grows_by() const { return 0; }

  /// Of an NF that was made for shard 0 (Config::shard()): one for shard `shard`, which shares with it what does not
  /// change. Null: it is made from its configuration, as the first was. Asked before packets come. This NF lives as
  /// long as the other. Errors: as the descriptor's create().
  virtual Result<std::unique_ptr<Nf>> replicate(std::uint32_t shard) const;
  /// Where the descriptor says Sharding::kOwn, of an NF that outlives it; else null.
  virtual std::unique_ptr<Divider> divider() const { return nullptr; }

  /// A packet that is not this NF's to decide, for an NF whose descriptor says `takes_unsupported`: it may drop or
  /// answer it through `outcome`. What it leaves alone goes by the chain's on_unsupported. Reads what prepare() reads.
  /// Called in packet order, before prepare() of the batch that the packet would be in.
  virtual void take_unsupported(packet::Packet const& /*packet*/, Outcome& /*outcome*/) {}
  /// Fills `aux` (batch.size() * aux_bytes). Packets it drops or replies to through `outcome` do not reach the
  /// later steps.
  virtual void prepare(packet::Batch const& batch, std::span<std::byte> aux, Outcome& outcome);
  /// CPU implementation. Writes one result for each packet and the fields of CW.
  virtual void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) = 0;
  /// Turns results into verdicts and records.
  virtual void complete(Completion const& completion);

  /// Makes all ready so that adopt() can go on for `before`, another NF of the same type in a running chain. Called
  /// beside packets, and before this NF had any; of `before` it reads what never changes. FailedPrecondition says what
  /// stands against it, for people: a chain that begins without what packets left in `before` could have this NF.
  /// InvalidArgument: none could. Not called where packets leave nothing in an NF (Sharding::kPacket).
  virtual Status prepare_to_adopt(Nf const& before);
  /// Takes over what packets have left in `before`, which gets none any more: flows, mappings, sequence numbers, replay
  /// windows; what this configuration has no place for ends. Called between two packets by the thread of the other
  /// steps, after prepare_to_adopt() and kernel_side(). Must return soon: packets wait.
  virtual void adopt(Nf& /*before*/) {}

  /// Device side; called once for each device. InvalidArgument if this configuration cannot run there.
  virtual Result<KernelSide> kernel_side() const;
  /// Rows whose results do not hold everything; asked after a launch, before complete().
  virtual void spill_requests(std::span<const std::byte> results, std::vector<SpillRequest>& requests) const;

  /// The time, for what ends without a packet: a quiet link still expires and exports. Called on live links, about four
  /// times a second whether packets come or not, by the thread of the other steps and while no batch is between
  /// prepare() and complete(). `now_ns` is of the clock that stamps packets (Packet::arrival_ns()); packets that come
  /// later may have an earlier stamp, if they were on their way. Captures and artificial traffic have no ticks, so that
  /// the same input gives the same output. Must return soon: packets wait.
  virtual void tick(std::uint64_t /*now_ns*/) {}

  /// After the last packet of a run: writes out what is still kept. DataLoss, with the file, if that fails; the run
  /// then ends with this error.
  virtual Status finish() { return absl::OkStatus(); }

  /// Lines for the start-up report, e.g. "188 rules, 3 refused: pcre 2, flowbits 1"; see kWarning. Also asked of NFs
  /// that never start.
  virtual std::vector<std::string> start_report() const { return {}; }
  /// Lines for the report at the end, after finish(): what this NF alone knows, e.g. top talkers.
  virtual std::vector<std::string> end_report() const { return {}; }
  /// Counts and sizes of the NF's own, in the report and its JSON; after finish().
  virtual std::vector<Statistic> statistics() const { return {}; }
};

/// What becomes of packets that an NF cannot inspect, and of link-local control frames (packet::is_link_local()) among
/// them.
enum class OnUnsupported { kPass, kDrop };
enum class LinkLocal { kPass, kDrop };

struct DropReason {
  std::string_view name;  ///< snake_case, stable: it is a metric label
  std::string_view help;
};

/// A way by which packets leave an NF besides `pass` and `alert`, for the steering table of a chain.
struct PacketOutput {
  std::string_view name;  ///< snake_case, stable: chain files have it
  std::string_view help;
};

/// A configuration key, for `catena show nfs` and the docs; create() does the reading.
struct ConfigKey {
  std::string_view name;
  std::string_view type;      ///< "file", "integer 1..65535", "encrypt | decrypt"
  std::string_view fallback;  ///< empty: the key is required
  std::string_view help;
};

/// Declares a type of NF; static storage.
struct Descriptor {
  std::string_view type;  ///< the `type:` of a chain file
  std::string_view help;  ///< one line
  /// LayerFlags that a packet must have, and must not have, to be given to the NF; what becomes of others the chain
  /// file says. An NF that reads headers only takes truncated packets too, with `refuses = 0`.
  std::uint8_t needs = packet::kIpv4;
  std::uint8_t refuses = packet::kTruncated;
  /// For chain files that do not say it. An NF whose word others rely on, as a firewall's, drops what it cannot
  /// inspect.
  OnUnsupported on_unsupported_default = OnUnsupported::kPass;
  bool takes_unsupported = false;            ///< see Nf::take_unsupported()
  std::span<const DropReason> drop_reasons;  ///< Outcome::drop() takes the position in this list
  std::span<const ConfigKey> config;
  std::uint32_t aux_bytes = 0;
  std::uint32_t result_bytes = 0;
  bool has_kernel = false;
  /// How the packets of one such NF may be divided among several with the same configuration.
  Sharding sharding = Sharding::kNone;
  /// Reads `config` (and calls config.finish()). Errors carry the position in the file they are about.
  Result<std::unique_ptr<Nf>> (*create)(Config& config) = nullptr;
  /// Asks `config` for all that the NF writes (Config::output_path(), output_folder(), receiver()), as create() does,
  /// and opens nothing: an NF in a process of its own writes that and nothing else. Says as create() does which keys it
  /// encrypts with (Config::encrypts_with()). Null: it writes nothing, and encrypts nothing. Errors as create(), which
  /// says them too.
  Status (*name_outputs)(Config& config) = nullptr;
  std::span<const PacketOutput> packet_outputs =
      {};  ///< Outcome::leave_by() takes the position in this list; at most 64
};

/// Builds the bytes of KernelSide::state: a header struct first, then arrays at offsets that the header names.
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
