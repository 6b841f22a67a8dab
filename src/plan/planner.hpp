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
/// NFs are in a row, or the nodes of a graph without cycles. Where paths merge, the weaker claim holds: a value is in a
/// place if it is there for the packets of every path. So one step serves all packets of an NF.
///
/// Two views track the newest value of each field: the CPU view of the packet pool, and the GPU view of its twin, the
/// shared buffer. Only GPU NFs move fields; the order of one GPU NF is
///
///     prepare (CPU) -> P_H2D -> kernel -> P_D2H -> complete (CPU)
///
/// A GPU NF works on the shared buffer, or makes direct use of the data carried by its launch and leaves the buffer
/// alone. The moves of a shared step cover every packet not dropped yet; the moves of a direct step cover the packets
/// processed by its NF. tx is at the end as a reader of every field on the CPU.
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

/// rx, as the start of a Link.
inline constexpr std::size_t kRx = SIZE_MAX - 1;
/// tx, as the end of a Link, and among the NFs of a reason.
inline constexpr std::size_t kTx = SIZE_MAX;

/// A link from one NF to another for packets. An NF that drops all packets has no outgoing link.
struct PlanEdge {
  std::size_t from = kRx;  ///< number of an NF, or kRx
  std::size_t to = kTx;    ///< number of an NF after it in PlanInput::nfs, or kTx
  /// The host copies packets to `to`, so it needs all of their data; the device has nothing of a copy.
  bool is_copy = false;

  friend bool operator==(PlanEdge const&, PlanEdge const&) = default;
};

enum class Mode : std::uint8_t {
  /// Every GPU NF copies in its read fields and copies out its written fields (G-NET): by direct use, or on the shared
  /// buffer if it holds nothing before and keeps nothing after.
  kCopy,
  /// Direct use up to the first GPU NF that needs packets whole; from this NF on the shared buffer, where frames move
  /// as a whole or not at all (Gaviss).
  kShared,
  kAdaptive,  ///< the cheapest plan of Algorithm 1
};
std::string_view to_string(Mode mode);

struct PlanInput {
  std::vector<PlacedNf> nfs;         ///< in topological order, at most kMaxNfs
  std::vector<PlanEdge> links = {};  ///< empty: from rx through all NFs in a row to tx
  PacketProfile profile = PacketProfile::fixed(1514);
  CostModel costs = CostModel::h200();
  Mode mode = Mode::kAdaptive;
  bool pushdown = true;  ///< kAdaptive: whole packets may move before the first GPU NF that needs them whole
};
inline constexpr std::size_t kMaxNfs = 64;

/// The links of `input`; the links of a row if it has no links.
std::vector<PlanEdge> links_of(PlanInput const& input);

/// Why fields are moved or not. `nf` of a Reason is the NF named in the text.
enum class ReasonKind : std::uint8_t {
  kReadHere,       ///< moved: this NF's kernel reads it, or writes it for some packets only
  kReadLater,      ///< moved: the kernel of NF `nf` reads it; moved early with the packet (transfer pushdown)
  kWithPacket,     ///< moved: part of a packet that moves in one piece; unused there, or already there
  kHostReads,      ///< moved: NF `nf`, or tx, is the next to read it on the CPU
  kWrittenBack,    ///< moved: direct use brings back the fields written by the kernel
  kValidOnDevice,  ///< not moved: on the device since NF `nf` moved or wrote it
  kNoHostReader,   ///< not moved: no reader on the CPU before GPU NF `nf`, which can still move it
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
  bool shared = false;                ///< works on the shared buffer; else direct use
  packet::FieldSet to_device = 0;     ///< P_H2D
  packet::FieldSet to_host = 0;       ///< P_D2H
  packet::FieldSet from_columns = 0;  ///< read by the kernel from columns of the launch
  packet::FieldSet from_shared = 0;   ///< read by the kernel from the shared buffer
  packet::FieldSet to_columns = 0;    ///< written fields also in an output column
  packet::FieldSet to_shared = 0;     ///< written fields in the shared buffer
  std::vector<Move> moves;
  double bytes_to_device = 0;  ///< per packet, with the launch's own bytes
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
  std::uint64_t visited = 0;  ///< nodes of the search
};

/// The cheapest plan of the mode. Deterministic. InvalidArgument: more than kMaxNfs NFs, aux_bytes, result_bytes or
/// headroom or tailroom above 64 KiB, grows_by not a number, a link that goes back or to no NF, an NF without packets,
/// or no packets in a transfer; the message names the NF.
/// Internal: no plan is correct, which is a defect of the planner: copying everything is always correct.
Result<Plan> make_plan(PlanInput const& input);

/// Plans of the same chain in every mode, for comparison; pushdown as in `input`.
struct Comparison {
  Plan copy;
  Plan shared;
  Plan adaptive;
};
Result<Comparison> compare(PlanInput const& input);

}  // namespace catena::plan
