// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/core/status.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/hostcopy/engine.hpp"
#include "stack/process/settings.hpp"
#include "stack/process/stack_report.hpp"

namespace catena::bench {

/// A server on a stack, with clients that cost nothing: the stack on one core, the server on another one.
struct StackRun {
  stack::TxOptions tx;
  std::unique_ptr<hostcopy::Engine> engine;  ///< null: the CPU
  std::uint32_t connections = 64;
  std::uint32_t body_bytes = 16384;  ///< a multiple of 8
  bool cuts_segments = true;         ///< frames of up to 64 KiB
  double seconds = 3;
  double warm_up_seconds = 0.75;
};

struct StackResult {
  stack::StackReport begin;  ///< after the warm-up
  stack::StackReport end;
  double seconds = 0;  ///< between the two
  double cycles_per_second = 0;
  std::uint64_t responses = 0;  ///< between the two
  std::uint64_t compared = 0;   ///< words of bodies, in all
  std::uint64_t wrong = 0;
  double median_wait_s = 0;  ///< from a request to the last byte of its answer
};

/// Errors: of StackLoop::create(); Unavailable: the server cannot attach.
Result<StackResult> run_stack(StackRun run);

}  // namespace catena::bench
