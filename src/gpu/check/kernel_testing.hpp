// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/text.hpp>

#include "gpu/check/static_check.hpp"
#include "gpu/program/program.hpp"

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// A valid kernel, with places for insertions.
namespace catena::static_check::testing {

/// Inserted texts: at the start of the file, after the framework's header, in the vendor's namespace, in the kernel.
struct Pieces {
  std::string_view first = {};
  std::string_view global = {};
  std::string_view vendor = {};
  std::string_view body = {};
};

inline std::string kernel_with(Pieces const& pieces) {
  return concat(pieces.first, R"(
#include <catena/kernel/context.hpp>
)",
                pieces.global, R"(
namespace vendor {
using catena::i32;
using catena::u16;
using catena::u32;
using catena::u64;
using catena::u8;
using catena::kernel::Bytes;
using catena::kernel::Context;
using catena::kernel::IsoPtr;
using catena::kernel::PacketView;
struct Counts {
  u32 words[4];
};
)",
                pieces.vendor, R"(
inline u32 sum(Counts const& counts) {
  u32 total = 0;
  for (u32 i = 0; i < 4; ++i) {
    total += counts.words[i];
  }
  return total;
}
}  // namespace vendor

CATENA_KERNEL(base) {
  using namespace vendor;
  const auto packet = ctx.packet();
  if (!packet.valid()) {
    return;
  }
  const IsoPtr<u32> table = ctx.local<u32>(0, 16);
  Counts counts{};
  u32 value = packet.get<catena::packet::kIpv4Src>();
  )",
                pieces.body, R"(
  counts.words[0] = value;
  table.set(0, sum(counts));
}
)");
}

/// The macros of a plan for a kernel that reads and writes the whole frame.
inline std::vector<std::string> defines() {
  return {"CATENA_SHARED=0U",      "CATENA_READS=549755813887UL", "CATENA_WRITES=549755813887UL",
          "CATENA_IN_COLUMNS=0UL", "CATENA_OUT_COLUMNS=0UL",      "CATENA_FRAMES=2U",
          "CATENA_HEADROOM=0U",    "CATENA_TAILROOM=0U",          "CATENA_LANES=4U",
          "CATENA_AUX_BYTES=4U",   "CATENA_RESULT_BYTES=4U",      "CATENA_SPILL_FACTOR=4U",
          "CATENA_ANY_GROUPS=0U"};
}

inline Report check_files(std::span<const kernel::EmbeddedFile> files, Limits const& limits = {}) {
  device::ProgramSource source = program::with_sdk(files);
  source.defines = defines();
  return check_kernel(source, limits).value();
}
inline Report check(std::string const& text, Limits const& limits = {}) {
  return check_files(std::array<kernel::EmbeddedFile, 1>{{{"base.kernel.cpp", text.c_str()}}}, limits);
}

/// For test messages.
inline std::string text_of(std::vector<Finding> const& diagnostics) {
  std::string text;
  for (Finding const& finding : diagnostics) {
    text += finding.text() + "\n";
  }
  return text;
}

}  // namespace catena::static_check::testing
