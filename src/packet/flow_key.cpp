// SPDX-License-Identifier: Apache-2.0
#include <catena/packet/flow_key.hpp>

#include <catena/core/text.hpp>

namespace catena::packet {
namespace {

/// The finalizer of SplitMix64 (G. L. Steele et al., "Fast Splittable Pseudorandom Number Generators", 2014).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

std::uint64_t hash_of_end(Address const& address, std::uint16_t port, std::uint64_t secret) {
  if (address.is_v4()) {
    return mix((std::uint64_t{address.v4()} << 16U | port) ^ secret);
  }
  return mix(mix(mix(address.high() ^ secret) ^ address.low()) ^ port);
}

}  // namespace

std::string to_string(Address const& address, std::uint16_t port) {
  return address.is_v4() ? concat(to_string(address), ":", port) : concat("[", to_string(address), "]:", port);
}

std::string to_string(FlowKey const& key) {
  return concat(to_string(key.source, key.source_port), " > ", to_string(key.destination, key.destination_port),
                " protocol ", int{key.protocol});
}

std::uint64_t hash_both_ways(FlowKey const& key, std::uint64_t secret) {
  // a sum: the same for both directions
  return mix(hash_of_end(key.source, key.source_port, secret) +
             hash_of_end(key.destination, key.destination_port, secret) + key.protocol);
}

}  // namespace catena::packet
