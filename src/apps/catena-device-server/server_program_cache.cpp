// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-device-server/server_program_cache.hpp"

#include <catena/core/text.hpp>

#include "gpu/program/program.hpp"

#include <spdlog/spdlog.h>

#include <array>
#include <span>
#include <string>

#include <openssl/evp.h>

namespace catena::device_server {

std::optional<device::Hash128> ServerProgramCache::key_of(device::ProgramSource const& source) const {
  std::string text;
  // each with its length, so that a list of texts cannot be cut differently and be the same
  program::add_fields(device_->info(), source,
                      [&text](std::string_view field) { text += concat(field.size(), ":", field); });
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    return std::nullopt;
  }
  return device::Hash128().add("of a stranger").add(std::as_bytes(std::span(digest).first(length)));
}

std::optional<device::Binary> ServerProgramCache::find(device::ProgramSource const& source) {
  const std::optional<device::Hash128> key = key_of(source);
  std::optional<device::Binary> binary = key ? cache_.find(*key) : std::nullopt;
  if (binary) {
    if (const auto loaded = device_->load(*binary); !loaded.ok()) {
      spdlog::warn("a program of the cache does not load and is recompiled: {}",
                   std::string(loaded.status().message()));
      return std::nullopt;
    }
  }
  return binary;
}

void ServerProgramCache::keep(device::ProgramSource const& source, device::Binary const& binary) {
  if (const std::optional<device::Hash128> key = key_of(source)) {
    cache_.store(*key, binary);
  }
}

}  // namespace catena::device_server
