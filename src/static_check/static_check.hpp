// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "device/device.hpp"

/// The static check of a kernel's source (G-NET, section 5): what a vendor wrote reaches memory through IsoPtr alone.
/// It is a pass over the syntax tree of both dialects that knows what a kernel may be made of and refuses everything
/// else. docs/writing-an-nf.md lists the rules, what a kernel that passes cannot do, and what is not promised.
namespace catena::static_check {

struct Finding {
  std::string file;      ///< as the author named it; empty if the source as a whole is meant
  std::uint32_t line;    ///< from 1; 0 without a place
  std::uint32_t column;  ///< byte of the line, from 1; 0 without a place
  std::string rule;      ///< stable name, as "pointer"
  std::string message;   ///< what was found and what to write instead, on one line

  /// "file:line:column: message [rule]".
  std::string text() const;
};

/// Sorted by place.
struct Report {
  std::vector<Finding> refused;   ///< the kernel must not run beside others
  std::vector<Finding> cautions;  ///< it may, with a limit of time: loops without a known bound, divisors that may be 0

  bool ok() const { return refused.empty(); }
};

struct Limits {
  std::size_t bytes = std::size_t{1} << 20;  ///< of the author's files together
  std::size_t files = 64;
  std::chrono::seconds time{60};
};

/// Checks a kernel: `source` is what program::with_sdk() made of its files, with the macros of one plan. Other plans
/// instantiate other templates, so each is checked before it is compiled. Of `source` the headers that with_sdk() added
/// are trusted and nothing else: it is read by a program of its own with limits of time and memory, and a source with
/// which that does not come to an end is refused (rule "no-end"). Thread rule: any.
/// Errors: InvalidArgument if a macro is none that plans define, or no number that they have for it; Unavailable if the
/// program that checks is not installed, or no folder can be made for it.
Result<Report> check_kernel(device::ProgramSource const& source, Limits const& limits = {});

}  // namespace catena::static_check
