// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/binary.hpp"

#include "gpu/device/hash.hpp"

#include <cstring>

namespace catena::device {

namespace {

struct Header {
  std::uint64_t magic;
  std::uint32_t kind;
  std::uint32_t reserved;
  std::uint64_t payload_bytes;
  std::uint64_t checksum;
};
static_assert(sizeof(Header) == 32);
constexpr std::uint64_t kMagic = 0x31414E4554414344ULL;  // "DCATENA1", little endian

std::uint64_t checksum(std::uint32_t kind, std::span<const std::byte> payload) {
  return Hash128().add(std::as_bytes(std::span(&kind, 1))).add(payload).low();
}

}  // namespace

std::string_view to_string(BinaryKind kind) {
  switch (kind) {
    case BinaryKind::kCubin:
      return "cubin";
    case BinaryKind::kDeviceBinary:
      return "OpenCL device binary";
    case BinaryKind::kBitcode:
      return "LLVM bitcode";
  }
  return "unknown";
}

Binary wrap(BinaryKind kind, std::span<const std::byte> payload) {
  const auto number = static_cast<std::uint32_t>(kind);
  const Header header{kMagic, number, 0, payload.size(), checksum(number, payload)};
  Binary binary(sizeof header + payload.size());
  std::memcpy(binary.data(), &header, sizeof header);
  if (!payload.empty()) {
    std::memcpy(binary.data() + sizeof header, payload.data(), payload.size());
  }
  return binary;
}

Result<BinaryView> unwrap(std::span<const std::byte> binary) {
  Header header;
  if (binary.size() < sizeof header) {
    return absl::InvalidArgumentError("not a compiled program: too short");
  }
  std::memcpy(&header, binary.data(), sizeof header);
  const std::span<const std::byte> payload = binary.subspan(sizeof header);
  if (header.magic != kMagic) {
    return absl::InvalidArgumentError("not a compiled program of this version of Catena");
  }
  if (header.payload_bytes != payload.size() || header.checksum != checksum(header.kind, payload)) {
    return absl::InvalidArgumentError("a truncated or damaged compiled program");
  }
  return BinaryView{static_cast<BinaryKind>(header.kind), payload};
}

}  // namespace catena::device
