// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox/output.hpp"

#include "base/sandbox/sandbox.hpp"

#include <catena/core/escape.hpp>

namespace catena::sandbox {

void LineSplitter::add(std::string_view bytes) {
  for (const char byte : bytes) {
    if (byte == '\n') {
      if (on_line_) {
        on_line_(escaped(line_));
      }
      line_.clear();
    } else if (line_.size() < kMaxLineBytes) {
      line_ += byte;
    }
  }
}

void LineSplitter::finish() {
  if (!line_.empty()) {
    add("\n");
  }
}

}  // namespace catena::sandbox
