// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/device/device.hpp"

/// The static check of a kernel's source (G-NET, section 5): a vendor's code reaches memory through IsoPtr only. It is
/// a pass over the syntax tree of both dialects, which accepts known constructs and refuses everything else.
/// docs/writing-an-nf.md lists the rules, the limits of a kernel that passes, and the properties not promised.
namespace catena::static_check {

struct Finding {
  std::string file;      ///< as named by the author; empty for the source as a whole
  std::uint32_t line;    ///< from 1; 0 without a place
  std::uint32_t column;  ///< byte of the line, from 1; 0 without a place
  std::string rule;      ///< stable name, such as "pointer"
  std::string message;   ///< the problem and the replacement to write, on one line

  /// "file:line:column: message [rule]".
  std::string text() const;
};

/// Sorted by position.
struct Report {
  std::vector<Finding> refused;   ///< the kernel must not run beside others
  std::vector<Finding> cautions;  ///< it may with a time limit: loops without a known bound, divisors that may be 0

  bool ok() const { return refused.empty(); }
};

struct Limits {
  std::size_t bytes = std::size_t{1} << 20;  ///< of the author's files together
  std::size_t files = 64;
  std::chrono::seconds time{60};
};

/// Checks a kernel. `source`: the result of program::with_sdk() for its files, with the macros of one plan. Other plans
/// instantiate other templates, so each is checked before it is compiled. Only the headers added by with_sdk() are
/// trusted. A separate program reads the source, with limits of time and memory, and in a sandbox if the caller is
/// root; if it does not finish, the source is refused (rule "no-end"). Thread rule: any. Errors: InvalidArgument for a
/// macro unknown to plans, or for a value that plans do not give it; Unavailable if the checking program is not
/// installed or cannot be started, or if its sandbox cannot be created; DeadlineExceeded if that takes longer than
/// `limits.time`.
Result<Report> check_kernel(device::ProgramSource const& source, Limits const& limits = {});

}  // namespace catena::static_check
