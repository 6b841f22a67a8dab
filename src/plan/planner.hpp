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

/// Derives the moves of each GPU NF from the hints of a chain's NFs: Algorithm 1 of "AdaptChain: Adaptive Data Sharing
/// and Synchronization for NFV Systems on Heterogeneous Architectures" (TPDS 2024), section IV. Pure functions.
///
/// The NFs form a list, or a directed acyclic graph. A field can be valid in the packet pool on the host (CPU view), in
/// the shared buffer on the device (GPU view), or in both. Where branches merge, a field counts as valid only if it is
/// valid on every branch. So each GPU NF has one step for all its packets.
///
/// A step of a GPU NF is
///
///     prepare (CPU) -> P_H2D -> kernel -> P_D2H -> complete (CPU)
///
/// P_H2D and P_D2H are its moves: the fields transferred to the device and back. CPU NFs have no moves. In a shared
/// step the kernel works on the shared buffer; the moves cover all packets not dropped yet. In a direct step it works
/// on buffers of its own launch; the moves cover the packets processed by this NF. tx reads every field on the CPU.
namespace catena::plan {

using packet::Hints;

enum class Processor : std::uint8_t { kCpu, kGpu };

/// An NF of the chain, with the inputs for planning its moves.
struct PlacedNf {
  std::string name;
  Processor on = Processor::kCpu;
  Hints hints = {};
  std::uint32_t aux_bytes = 0;     ///< per packet, to the device
  std::uint32_t result_bytes = 0;  ///< per packet, back
  std::uint32_t headroom = 0;      ///< maximum growth of a frame at its front by the kernel, in bytes
  std::uint32_t tailroom = 0;      ///< the same at its end
  double grows_by = 0;             ///< average growth of a frame by the NF, in bytes
};

/// rx, as the start of an edge.
inline constexpr std::size_t kRx = SIZE_MAX - 1;
/// tx, as the end of an edge, and among the NFs of a reason.
inline constexpr std::size_t kTx = SIZE_MAX;

/// An edge of the graph: packets go from one NF to another. An NF that drops all packets has no outgoing edge.
struct PlanEdge {
  std::size_t from = kRx;  ///< number of an NF, or kRx
  std::size_t to = kTx;    ///< number of an NF after it in PlanInput::nfs, or kTx
  /// A mirror: the host copies the packets, so all their fields must be valid there. Copies have no data on the device.
  bool is_copy = false;

  friend bool operator==(PlanEdge const&, PlanEdge const&) = default;
};

enum class Mode : std::uint8_t {
  /// Every GPU NF copies in the fields it reads and copies out the fields it writes (G-NET). No field stays on the
  /// device.
  kCopy,
  /// Direct steps before the first GPU NF that needs whole packets. From this NF on shared steps, which move whole
  /// frames or nothing (Gaviss).
  kShared,
  kAdaptive,  ///< the cheapest plan of Algorithm 1
};
std::string_view to_string(Mode mode);

struct PlanInput {
  std::vector<PlacedNf> nfs;         ///< in topological order, at most kMaxNfs
  std::vector<PlanEdge> edges = {};  ///< empty: the NFs form a list
  PacketProfile profile = PacketProfile::fixed(1514);
  CostModel costs = CostModel::h200();
  Mode mode = Mode::kAdaptive;
  bool pushdown = true;  ///< kAdaptive: whole packets may move at an NF before the first one that needs them whole
};
inline constexpr std::size_t kMaxNfs = 64;

/// The edges of `input`; of a list if it has none.
std::vector<PlanEdge> edges_of(PlanInput const& input);

/// Why fields are moved or not. `nf` of a Reason is the NF named in the text.
enum class ReasonKind : std::uint8_t {
  kReadHere,       ///< moved: this NF's kernel reads it, or writes it for some packets only
  kReadLater,      ///< moved: the kernel of NF `nf` reads it; moved early with the packet (transfer pushdown)
  kWithPacket,     ///< moved: with the rest of a whole packet; not needed
  kHostReads,      ///< moved: NF `nf`, or tx, is the next to read it on the CPU
  kWrittenBack,    ///< moved: a direct step copies back the fields written by the kernel
  kValidOnDevice,  ///< not moved: on the device since NF `nf` moved or wrote it
  kNoHostReader,   ///< not moved: not read on the CPU before GPU NF `nf`; the step of `nf` can move it
};
struct Reason {
  Direction direction;
  ReasonKind kind;
  packet::FieldSet fields;
  std::size_t nf;
};
/// Whether a reason of this kind is about moved fields.
bool is_moved(ReasonKind kind);

/// One move of a step.
struct Move {
  Direction direction;
  TransferShape::Kind kind;
  TransferMethod method;
  packet::FieldSet fields;  ///< empty for kLaunch
  MoveCost cost;            ///< per packet
};

/// The moves of one GPU NF.
struct GpuStep {
  bool shared = false;                ///< a shared step; else a direct step
  packet::FieldSet to_device = 0;     ///< P_H2D
  packet::FieldSet to_host = 0;       ///< P_D2H
  packet::FieldSet from_columns = 0;  ///< read by the kernel from columns of the launch
  packet::FieldSet from_shared = 0;   ///< read by the kernel from the shared buffer
  packet::FieldSet to_columns = 0;    ///< written by the kernel to columns of the launch, perhaps also in to_shared
  packet::FieldSet to_shared = 0;     ///< written by the kernel to the shared buffer
  std::vector<Move> moves;
  double bytes_to_device = 0;  ///< per packet, including slot numbers and structs of the launch
  double bytes_to_host = 0;
  double cost_ns = 0;  ///< per packet
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
  double bytes_to_device = 0;  ///< per packet, all steps
  double bytes_to_host = 0;
  double cost_ns = 0;
  double cpu_ns = 0;
  std::uint64_t visited = 0;  ///< search nodes visited, for measurements
};

/// The cheapest plan of the mode. Deterministic. Errors:
///   InvalidArgument  the input is invalid: too many NFs, a size above 64 KiB, a NaN, an edge backwards or to an
///                    unknown NF, an NF without an incoming edge, a profile without packets. The message tells which
///   Internal         no correct plan was found. A defect of the planner, because kCopy is always correct
Result<Plan> make_plan(PlanInput const& input);

/// Plans of the same chain in every mode, for comparison; pushdown as in `input`.
struct Comparison {
  Plan copy;
  Plan shared;
  Plan adaptive;
};
Result<Comparison> compare(PlanInput const& input);

}  // namespace catena::plan
