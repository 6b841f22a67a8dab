// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <catena/nf/config.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "endpoint.hpp"
#include "flow_table.hpp"

/// What the operator wants: services, their backends, and the configuration that names them.
namespace catena::lb {

inline constexpr std::uint32_t kMaxServices = 256;
inline constexpr std::uint32_t kMaxBackends = 4096;  ///< of all services together
inline constexpr std::uint32_t kMaxWeight = 256;
/// Entries that a Maglev table must have for each backend, so that shares are right to 1 % (the paper's rule).
inline constexpr std::uint32_t kEntriesPerBackend = 100;
inline constexpr std::uint32_t kMinTableSize = 101;
inline constexpr std::uint32_t kMaxTableSize = 1048573;  ///< the largest prime below 2^20
inline constexpr std::uint32_t kMaxFlowsLimit = 1U << 24;

enum class BackendState : std::uint8_t {
  kUp,     ///< gets new flows
  kDrain,  ///< keeps its flows and gets no new ones
  kDown,   ///< gets nothing; its flows go to other backends
};

struct Backend {
  std::string name;  ///< letters, digits, and . _ -; at most 63
  std::uint32_t address = 0;
  std::uint16_t port = 0;
  std::uint32_t weight = 1;  ///< 1..kMaxWeight: its share of new flows
  BackendState state = BackendState::kUp;
};

struct Service {
  Endpoint endpoint;
  std::vector<Backend> backends;
};

struct Settings {
  std::vector<Service> services;
  std::uint32_t table_size;
  FlowLimits limits;
  Timeouts timeouts;
  bool translates_without_flow;  ///< answers of a backend that belongs to one service
  bool translates_errors;        ///< ICMP errors
};

/// What is wrong with a list of services.
struct Mistake {
  std::optional<std::size_t> service;  ///< position in the list; none: the list itself
  std::optional<std::size_t> backend;  ///< position in the service's list; none: the service itself
  std::string_view key;                ///< configuration key that it is about
  std::string message;
};

/// The first mistake in `services`, if they have one. `table_size`: a prime.
std::optional<Mistake> find_mistake(std::span<const Service> services, std::uint32_t table_size);

/// Reads the NF's configuration and calls finish(). InvalidArgument with position for everything that is wrong.
Result<Settings> read_settings(nf::Config& config);

}  // namespace catena::lb
