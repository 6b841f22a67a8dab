// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/planner.hpp"

#include <string>

/// Plans as text. Programs read Plan itself.
namespace catena::plan {

/// "none", "frame", "frame, meta.layers", "ipv4.src, ipv4.dst": names of the field table, "frame" for all of a frame.
std::string describe(packet::FieldSet set);
/// One clause, e.g. "read by rt on the CPU". `nfs` are the plan's.
std::string describe(Reason const& reason, std::span<const PlannedNf> nfs);

/// A table: each GPU NF with its moves (fields, method, bytes and nanoseconds per packet), the places read and written
/// by its kernel, and the reason for moving each field or not.
std::string explain(Plan const& plan);
/// The adaptive plan, then its savings against `copy` and `shared`.
std::string explain(Comparison const& plans);

}  // namespace catena::plan
