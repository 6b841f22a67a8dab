// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/planner.hpp"

#include <string>

/// Plans as text. What a program wants to read is in Plan itself.
namespace catena::plan {

/// "none", "frame", "frame, meta.layers", "ipv4.src, ipv4.dst": names of the field table, "frame" for all of a frame.
std::string describe(packet::FieldSet set);
/// One clause, e.g. "read by rt on the CPU". `nfs` are the plan's.
std::string describe(Reason const& reason, std::span<const PlannedNf> nfs);

/// A table: each GPU NF with its moves (fields, method, bytes and nanoseconds per packet), where its kernel reads and
/// writes, and why each field is moved or not.
std::string explain(Plan const& plan);
/// The adaptive plan, then what it saves against `copy` and `shared`.
std::string explain(Comparison const& plans);

}  // namespace catena::plan
