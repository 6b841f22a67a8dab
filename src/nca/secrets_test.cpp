// SPDX-License-Identifier: Apache-2.0
// Keys are wiped when their function goes: nothing of them is left in what this process can write. The memory of PoCL's
// device is part of that, so that the device's copy is judged, too.
#include <nca/nca.h>

#include "functions/cipher/crypto.hpp"
#include "nca/testing/session.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <random>
#include <span>

namespace catena::nca::testing {
namespace {

/// So that what is searched for is not in memory because of the search.
constexpr std::uint8_t kMask = 0xA5;

/// Bytes that nobody else has, masked.
struct Secret {
  std::string name;
  std::vector<std::uint8_t> masked;

  Secret(std::string what, std::span<const std::byte> bytes) : name(std::move(what)) {
    for (const std::byte byte : bytes) {
      masked.push_back(std::to_integer<std::uint8_t>(byte) ^ kMask);
    }
  }
  bool is_at(const std::uint8_t* at) const {
    for (std::size_t i = 0; i < masked.size(); ++i) {
      if ((at[i] ^ kMask) != masked[i]) {
        return false;
      }
    }
    return true;
  }
  /// As words of a device have them.
  Secret words_swapped() const {
    Secret swapped = *this;
    swapped.name += " in words";
    for (std::size_t i = 0; i + 4 <= masked.size(); i += 4) {
      std::reverse(swapped.masked.begin() + static_cast<std::ptrdiff_t>(i),
                   swapped.masked.begin() + static_cast<std::ptrdiff_t>(i) + 4);
    }
    return swapped;
  }
};

/// The names of those secrets that are in memory of this process that it can write.
std::vector<std::string> found(std::vector<Secret> const& secrets) {
  constexpr std::uint64_t kLargest = std::uint64_t{8} << 30;  // a sanitizer's shadow is larger
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  constexpr std::size_t kOverlap = 64;
  std::vector<std::string> names;
  std::vector<std::uint8_t> chunk(kChunk);
  const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    char access[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, access) != 3 || access[1] != 'w' ||
        end - begin > kLargest) {
      continue;
    }
    for (std::uint64_t at = begin; at < end; at += kChunk - kOverlap) {
      const ssize_t bytes =
          ::pread(memory, chunk.data(), std::min<std::uint64_t>(kChunk, end - at), static_cast<off_t>(at));
      for (ssize_t i = 0; i + static_cast<ssize_t>(kOverlap) <= bytes; ++i) {
        const std::uint64_t address = at + static_cast<std::uint64_t>(i);
        const auto own = reinterpret_cast<std::uint64_t>(chunk.data());
        if (address + kOverlap > own && address < own + kChunk) {
          continue;
        }
        for (Secret const& secret : secrets) {
          if (secret.is_at(chunk.data() + i)) {
            names.push_back(secret.name + " in memory " + line);
          }
        }
      }
    }
  }
  ::close(memory);
  return names;
}

template <typename Bytes>
void fill_randomly(Bytes& bytes) {
  static std::random_device random;
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(random());
  }
}

/// A configuration with keys of its own, and what may be left of them.
class Keys {
 public:
  Keys() {
    config_.size = sizeof config_;
    config_.direction = NCA_ENCRYPT;
    config_.text_offset = 8;
    fill_randomly(config_.key);
    fill_randomly(config_.nonce);
    fill_randomly(config_.authentication_key);
    add("key", config_.key);
    add("authentication key", config_.authentication_key);
    auto crypto = cipher::CryptoBurst::create();
    EXPECT_TRUE(crypto.ok()) << crypto.status();
    cipher::Keys keys;
    std::copy_n(config_.key, sizeof config_.key, keys.encryption_key.begin());
    std::copy_n(config_.authentication_key, sizeof config_.authentication_key, keys.authentication_key.begin());
    const cipher::SessionKeys session = (*crypto)->expand(keys);
    add("last round key", std::span(session.round_keys).last(16));
    add("inner state", session.inner_state);
    add("outer state", session.outer_state);
  }
  nca_cipher_config const& config() const { return config_; }
  std::vector<Secret> const& secrets() const { return secrets_; }
  void forget() { ::explicit_bzero(&config_, sizeof config_); }

 private:
  template <typename Bytes>
  void add(std::string name, Bytes const& bytes) {
    secrets_.emplace_back(std::move(name), std::as_bytes(std::span(bytes)));
    secrets_.push_back(secrets_.back().words_swapped());
  }

  nca_cipher_config config_{};
  std::vector<Secret> secrets_;
};

TEST(Secrets, are_wiped_where_they_were) {
  const auto is_zero_after = []<typename T>(T const& filled) {
    std::vector<std::byte> place(sizeof(T) + alignof(T), std::byte{0xFF});
    std::size_t room = place.size();
    void* at = place.data();
    T* made = new (std::align(alignof(T), sizeof(T), at, room)) T(filled);
    made->~T();
    // not through the pointer: for a compiler what it leads to is gone
    std::vector<std::byte> left(sizeof(T), std::byte{0xFF});
    const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::pread(memory, left.data(), left.size(), static_cast<off_t>(reinterpret_cast<std::uintptr_t>(at))),
              static_cast<ssize_t>(left.size()));
    ::close(memory);
    return std::all_of(left.begin(), left.end(), [](std::byte byte) { return byte == std::byte{0}; });
  };
  cipher::Keys keys;
  fill_randomly(keys.encryption_key);
  fill_randomly(keys.authentication_key);
  EXPECT_TRUE(is_zero_after(keys));
  cipher::SessionKeys session;
  fill_randomly(session.round_keys);
  fill_randomly(session.inner_state);
  EXPECT_TRUE(is_zero_after(session));
}

class SecretsOn : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(devices, SecretsOn, ::testing::Values("cpu", "opencl"),
                         [](auto const& name) { return name.param; });

TEST_P(SecretsOn, nothing_of_a_key_is_left_when_its_function_is_gone) {
  Context context = open(GetParam());
  if (context == nullptr) {
    GTEST_SKIP() << "no " << GetParam() << " here";
  }
  Keys keys;
  const std::vector<nca_function*> functions{add(*context, NCA_CIPHER, &keys.config())};
  keys.forget();
  ASSERT_NE(functions[0], nullptr);
  // what the function has to keep, and no other copy
  const std::vector<std::string> kept = found(keys.secrets());
  const auto copies = [&](std::string_view name) {
    return std::count_if(kept.begin(), kept.end(), [&](std::string const& each) { return each.starts_with(name); });
  };
  EXPECT_EQ(copies("key in memory"), 1);
  EXPECT_EQ(copies("key in words"), GetParam() == "cpu" ? 0 : 1) << "in the state on the device";
  EXPECT_EQ(copies("authentication key"), 0);
  {
    const Stream stream = make_stream(*context, small_buffers(functions));
    if (GetParam() == "cpu") {  // work-items have the keys in registers, which PoCL keeps on the stacks of its threads
      run(*stream, std::vector<Packet>(1000, Packet(200, 'x')), [](nca_results const&, std::uint64_t) {});
    }
    EXPECT_THAT(found(keys.secrets()), ::testing::Not(::testing::IsEmpty())) << "the search finds nothing";
  }
  ASSERT_EQ(nca_remove_network_function(functions[0]), NCA_OK);
  EXPECT_THAT(found(keys.secrets()), ::testing::IsEmpty());
}

}  // namespace
}  // namespace catena::nca::testing
