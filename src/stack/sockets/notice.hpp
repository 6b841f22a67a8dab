// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace catena::sockets {

/// What the library cannot do for a program.
enum class Notice : std::uint8_t {
  kNoStack,
  kAttachRefused,
  kStackFull,
  kListenRefused,
  kTooManyListeners,
  kDescriptorTooHigh,
  kThread,
  kDup,
  kDupEpoll,
  kOwnNumber,
  kPassing,
  kFork,
  kExec,
  kIoUring,
  kUnknownCall,
};

/// Writes one line to standard error at the first call for `notice` in this process: its text with `detail` in it, and
/// `error` (of errno.h; 0: no error). Keeps errno. Any thread.
void tell(Notice notice, char const* detail = "", int error = 0);

}  // namespace catena::sockets
