// SPDX-License-Identifier: Apache-2.0
// Any bytes as a capture: frames and then an error, or an error that names the file.
#include "io/capture_reader.hpp"

#include <algorithm>
#include <cstring>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::size_t at = 0;
  auto reader = catena::io::CaptureReader::open(
      [&](void* to, std::size_t bytes) -> ssize_t {
        const std::size_t count = std::min(bytes, size - at);
        std::memcpy(to, data + at, count);
        at += count;
        return static_cast<ssize_t>(count);
      },
      "fuzz.pcap");
  if (!reader.ok()) {
    if (!std::string(reader.status().message()).starts_with("fuzz.pcap:")) {
      __builtin_trap();
    }
    return 0;
  }
  std::uint64_t sum = 0;
  for (;;) {
    const auto frame = (*reader)->next();
    if (!frame.ok() || !frame->has_value()) {
      return 0;
    }
    if ((*frame)->bytes.size() > catena::io::kMaxCapturedBytes) {
      __builtin_trap();
    }
    for (const std::uint8_t byte : (*frame)->bytes) {
      sum += byte;
    }
    if (sum == ~std::uint64_t{0}) {  // never, but the compiler has to read each byte
      __builtin_trap();
    }
  }
}
