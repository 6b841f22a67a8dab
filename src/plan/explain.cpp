// SPDX-License-Identifier: Apache-2.0
#include "plan/explain.hpp"

#include <catena/core/text.hpp>

#include <array>

namespace catena::plan {
namespace {

using packet::FieldSet;

constexpr std::array<std::string_view, packet::kFieldCount> kNames{
#define CATENA_FIELD_NAME(id, name, constant, bytes, help) name,
    CATENA_PACKET_FIELDS(CATENA_FIELD_NAME)
#undef CATENA_FIELD_NAME
};

std::string_view name_of(std::size_t nf, std::span<const PlannedNf> nfs) {
  return nf < nfs.size() ? std::string_view(nfs[nf].name) : "tx";
}

std::string_view to_string(TransferShape::Kind kind) {
  switch (kind) {
    case TransferShape::Kind::kLaunch:
      return "launch";
    case TransferShape::Kind::kColumns:
      return "columns";
    case TransferShape::Kind::kBody:
      return "body";
  }
  return "";
}

std::string what_moves(Move const& move) {
  return move.kind == TransferShape::Kind::kLaunch ? "structs, rows and fault flags of the launch"
                                                   : describe(move.fields);
}

void add_step(PlannedNf const& nf, std::span<const PlannedNf> nfs, std::string& text) {
  GpuStep const& step = *nf.step;
  text += fmt::format("{}: {}\n", nf.name, step.shared ? "shared step" : "direct step");
  for (Move const& move : step.moves) {
    text += fmt::format("  {:<3}  {:<7}  {:<7}  {:>7.1f} B  {:>7.2f} ns  {}\n", to_string(move.direction),
                        to_string(move.kind), to_string(move.method), move.cost.bytes, move.cost.total_ns,
                        what_moves(move));
  }
  const auto line = [&text](std::string_view label, FieldSet fields) {
    if (fields != 0) {
      text += fmt::format("  {}: {}\n", label, describe(fields));
    }
  };
  line("kernel reads from columns", step.from_columns);
  line("kernel reads from the shared buffer", step.from_shared);
  line("kernel writes to columns", step.to_columns);
  line("kernel writes to the shared buffer", step.to_shared);
  for (Reason const& reason : step.reasons) {
    text += fmt::format("  {}  {}  {}: {}\n", to_string(reason.direction), is_moved(reason.kind) ? "moved" : "stays",
                        describe(reason.fields), describe(reason, nfs));
  }
}

std::string totals(Plan const& plan) {
  return fmt::format("{:<8}  {:>8.1f} B to the device  {:>8.1f} B to the host  {:>8.2f} ns, {:>7.2f} of it CPU\n",
                     to_string(plan.mode), plan.bytes_to_device, plan.bytes_to_host, plan.cost_ns, plan.cpu_ns);
}

double saved_percent(double now, double before) { return before > 0 ? 100 * (before - now) / before : 0; }

std::string savings(Plan const& plan, Plan const& other) {
  return fmt::format(
      "against {:<6}  {:>5.1f} % fewer bytes to the device, {:>5.1f} % to the host, {:>5.1f} % less time\n",
      to_string(other.mode), saved_percent(plan.bytes_to_device, other.bytes_to_device),
      saved_percent(plan.bytes_to_host, other.bytes_to_host), saved_percent(plan.cost_ns, other.cost_ns));
}

}  // namespace

std::string describe(FieldSet set) {
  if (set == packet::kNoFields) {
    return "none";
  }
  std::string text;
  const auto add = [&text](std::string_view name) { text.append(text.empty() ? "" : ", ").append(name); };
  if (packet::has_frame(set)) {
    add("frame");
    set &= packet::kMetaFields;
  }
  for (std::uint32_t field = 0; field < packet::kFieldCount; ++field) {
    if (((set >> field) & 1U) != 0) {
      add(kNames[field]);
    }
  }
  return text;
}

std::string describe(Reason const& reason, std::span<const PlannedNf> nfs) {
  const std::string_view nf = name_of(reason.nf, nfs);
  switch (reason.kind) {
    case ReasonKind::kReadHere:
      return "the kernel needs it";
    case ReasonKind::kReadLater:
      return concat("read on the device by ", nf, ", moved early with the packet");
    case ReasonKind::kWithPacket:
      return "part of a packet transferred whole";
    case ReasonKind::kHostReads:
      return concat("read on the CPU by ", nf);
    case ReasonKind::kWrittenBack:
      return "the kernel wrote it and keeps nothing on the device";
    case ReasonKind::kValidOnDevice:
      return concat("valid on the device since ", nf);
    case ReasonKind::kNoHostReader:
      return concat("not read on the CPU before ", nf);
  }
  return "";
}

std::string explain(Plan const& plan) {
  std::string text;
  for (PlannedNf const& nf : plan.nfs) {
    if (nf.step) {
      add_step(nf, plan.nfs, text);
    } else {
      text += concat(nf.name, ": on the CPU\n");
    }
  }
  return text + "a packet  " + totals(plan);
}

std::string explain(Comparison const& plans) {
  return explain(plans.adaptive) + "          " + totals(plans.copy) + "          " + totals(plans.shared) +
         savings(plans.adaptive, plans.copy) + savings(plans.adaptive, plans.shared);
}

}  // namespace catena::plan
