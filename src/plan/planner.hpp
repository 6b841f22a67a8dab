// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>
#include <catena/packet/fields.hpp>
#include <catena/packet/hints.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/cost_model.hpp"
#include "plan/profile.hpp"

/// From the hints of a chain's NFs to what each GPU NF moves: Algorithm 1 of "AdaptChain: Adaptive Data Sharing and
/// Synchronization for NFV Systems on Heterogeneous Architectures" (TPDS 2024), section IV. Pure functions.
///
/// NFs are in a row, or the nodes of a graph without cycles. Where paths meet, what they disagree on is the weaker
/// claim: a value is where it is for the packets of every path. So one step serves all packets that come to an NF.
///
/// Two views say where the newest value of each field is: the CPU view of the packet pool, and the GPU view of its
/// twin, the shared buffer. Only GPU NFs move fields; the order of one GPU NF is
///
///     prepare (CPU) -> P_H2D -> kernel -> P_D2H -> complete (CPU)
///
/// A GPU NF works on the shared buffer, or makes direct use of what its launch carries and leaves the buffer alone. The
/// moves of a shared step cover every packet that is alive; those of a direct step, the packets that its NF decides.
/// tx is at the end as a reader of every field on the CPU.
namespace catena::plan {

using packet::Hints;

enum class Processor : std::uint8_t { kCpu, kGpu };

/// An NF of the chain, with what decides its moves.
struct PlacedNf {
  std::string name;
  Processor on = Processor::kCpu;
  Hints hints = {};
  std::uint32_t aux_bytes = 0;     ///< a packet, to the device
  std::uint32_t result_bytes = 0;  ///< a packet, back
  std::uint32_t headroom = 0;      ///< bytes by which the kernel may grow a frame at its front
  std::uint32_t tailroom = 0;      ///< and at its end
  double grows_by = 0;             ///< bytes by which it lets an average frame grow
};

/// Stands for rx where a Link begins.
inline constexpr std::size_t kRx = SIZE_MAX - 1;
/// Stands for tx where a Link ends, and among the NFs of a reason.
inline constexpr std::size_t kTx = SIZE_MAX;

/// A way from one NF to another that packets may take. Where an NF drops all, no link leaves it.
struct Link {
  std::size_t from = kRx;  ///< number of an NF, or kRx
  std::size_t to = kTx;    ///< number of an NF behind it in PlanInput::nfs, or kTx
  /// Packets are copied there by the host, which has to have all of them: on the device there is nothing of a copy.
  bool is_copy = false;

  friend bool operator==(Link const&, Link const&) = default;
};

enum class Mode : std::uint8_t {
  /// Every GPU NF copies in what it reads and copies out what it wrote (G-NET): by direct use, or on the shared buffer
  /// where nothing is there before and nothing stays.
  kCopy,
  /// Direct use up to the first GPU NF that needs packets whole; from there on the shared buffer, to and from which
  /// frames move as a whole or not at all (Gaviss).
  kShared,
  kAdaptive,  ///< the cheapest plan of Algorithm 1
};
std::string_view to_string(Mode mode);

struct PlanInput {
  std::vector<PlacedNf> nfs;     ///< in an order in which packets meet them, at most kMaxNfs
  std::vector<Link> links = {};  ///< none: from rx through all NFs in a row to tx
  PacketProfile profile = PacketProfile::fixed(1514);
  CostModel costs = CostModel::h200();
  Mode mode = Mode::kAdaptive;
  bool pushdown = true;  ///< kAdaptive: whole packets may move before the first GPU NF that needs them whole
};
inline constexpr std::size_t kMaxNfs = 64;

/// The links of `input`; those of a row where it has none.
std::vector<Link> links_of(PlanInput const& input);

/// Why fields are moved, or why they are not. `nf` of a Reason is the NF that the text speaks of.
enum class ReasonKind : std::uint8_t {
  kReadHere,       ///< moved: this NF's kernel reads it, or writes it for some packets only
  kReadLater,      ///< moved: the kernel of NF `nf` reads it; moved early with the packet (transfer pushdown)
  kWithPacket,     ///< moved: part of a packet that travels as one piece; not used there, or there already
  kHostReads,      ///< moved: NF `nf`, or tx, is the next to read it on the CPU
  kWrittenBack,    ///< moved: direct use brings back what the kernel wrote
  kValidOnDevice,  ///< not moved: on the device since NF `nf` moved or wrote it
  kNoHostReader,   ///< not moved: nobody reads it on the CPU before GPU NF `nf`, which can still move it
};
struct Reason {
  Direction direction;
  ReasonKind kind;
  packet::FieldSet fields;
  std::size_t nf;
};
/// Whether a reason of this kind speaks of fields that are moved.
bool is_moved(ReasonKind kind);

/// One move of a step.
struct Move {
  Direction direction;
  TransferShape::Kind kind;
  TransferMethod method;
  packet::FieldSet fields;  ///< none for kLaunch
  MoveCost cost;            ///< a packet
};

/// What one GPU NF moves.
struct GpuStep {
  bool shared = false;                ///< works on the shared buffer; else direct use
  packet::FieldSet to_device = 0;     ///< P_H2D
  packet::FieldSet to_host = 0;       ///< P_D2H
  packet::FieldSet from_columns = 0;  ///< the kernel reads these from what the launch carries
  packet::FieldSet from_shared = 0;   ///< and these from the shared buffer
  packet::FieldSet to_columns = 0;    ///< written fields that also go to an output column
  packet::FieldSet to_shared = 0;     ///< written fields that go to the shared buffer
  std::vector<Move> moves;
  double bytes_to_device = 0;  ///< a packet, with the launch's own bytes
  double bytes_to_host = 0;
  double cost_ns = 0;  ///< a packet
  double cpu_ns = 0;   ///< the CPU's part of it
  std::vector<Reason> reasons;
};

struct PlannedNf {
  std::string name;
  Processor on;
  std::optional<GpuStep> step;  ///< of a GPU NF
};

struct Plan {
  Mode mode;
  std::vector<PlannedNf> nfs;
  double bytes_to_device = 0;  ///< a packet, all steps
  double bytes_to_host = 0;
  double cost_ns = 0;
  double cpu_ns = 0;
  std::uint64_t visited = 0;  ///< nodes of the search
};

/// The cheapest plan of the mode. Deterministic. InvalidArgument: more than kMaxNfs NFs, aux_bytes, result_bytes or
/// headroom or tailroom above 64 KiB, grows_by no number, a link that goes back or to no NF, an NF that no packet comes
/// to, or no packets in a transfer; the message names the NF.
/// Internal: no plan is right, which copying everything always is: a defect of the planner.
Result<Plan> make_plan(PlanInput const& input);

/// Plans of the same chain in every mode, for comparison; pushdown as in `input`.
struct Comparison {
  Plan copy;
  Plan shared;
  Plan adaptive;
};
Result<Comparison> compare(PlanInput const& input);

}  // namespace catena::plan
