// SPDX-License-Identifier: Apache-2.0
#include "functions/cipher/aes_table.hpp"

#include <bit>
#include <cstddef>

namespace catena::cipher {
namespace {

/// Multiplication by x in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
constexpr std::uint8_t times_two(std::uint8_t value) {
  return static_cast<std::uint8_t>((value << 1) ^ ((value & 0x80U) != 0 ? 0x1BU : 0U));
}

constexpr std::array<std::uint8_t, 256> make_s_box() {
  // 3 generates the multiplicative group: with powers[k] = 3^k the inverse of 3^k is 3^(255 - k)
  std::array<std::uint8_t, 256> powers{};
  powers[0] = 1;
  for (std::size_t k = 1; k < 256; ++k) {
    powers[k] = static_cast<std::uint8_t>(times_two(powers[k - 1]) ^ powers[k - 1]);
  }
  std::array<std::uint8_t, 256> s_box{};
  const auto affine = [](std::uint8_t x) {
    return static_cast<std::uint8_t>(x ^ std::rotl(x, 1) ^ std::rotl(x, 2) ^ std::rotl(x, 3) ^ std::rotl(x, 4) ^ 0x63);
  };
  s_box[0] = affine(0);
  for (std::size_t k = 0; k < 255; ++k) {
    s_box[powers[k]] = affine(powers[255 - k]);
  }
  return s_box;
}

constexpr std::array<std::uint32_t, kTableWords> make_t_table() {
  constexpr std::array<std::uint8_t, 256> kSBox = make_s_box();
  std::array<std::uint32_t, kTableWords> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::uint32_t s = kSBox[i];
    const std::uint32_t twice = times_two(kSBox[i]);
    table[i] = twice << 24 | s << 16 | s << 8 | (twice ^ s);
  }
  return table;
}

constexpr std::array<std::uint32_t, kTableWords> kTable = make_t_table();

}  // namespace

std::array<std::uint32_t, kTableWords> const& aes_t_table() { return kTable; }

}  // namespace catena::cipher
