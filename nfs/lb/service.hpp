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

/// Configuration: services and their backends, and its parser.
namespace catena::lb {

inline constexpr std::uint32_t kMaxServices = 256;
inline constexpr std::uint32_t kMaxBackends = 4096;  ///< of all services together
inline constexpr std::uint32_t kMaxWeight = 256;
/// Minimum entries of a Maglev table per backend, for shares accurate to 1 % (the paper's rule).
inline constexpr std::uint32_t kEntriesPerBackend = 100;
inline constexpr std::uint32_t kMinTableSize = 101;
inline constexpr std::uint32_t kMaxTableSize = 1048573;  ///< the largest prime below 2^20
inline constexpr std::uint32_t kMaxFlowsLimit = 1U << 24;

enum class BackendState : std::uint8_t {
  kUp,     ///< gets new flows
  kDrain,  ///< keeps its flows, gets no new ones
  kDown,   ///< gets no packets; its flows move to other backends
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
  bool translates_without_flow;  ///< responses of a backend that belongs to one service
  bool translates_errors;        ///< ICMP errors
};

/// An error in a list of services.
struct Mistake {
  std::optional<std::size_t> service;  ///< position in the list; nullopt: the list itself
  std::optional<std::size_t> backend;  ///< position in the service's list; nullopt: the service itself
  std::string_view key;                ///< the configuration key
  std::string message;
};

/// The first mistake in `services`; nullopt if they are valid. `table_size`: a prime.
std::optional<Mistake> find_mistake(std::span<const Service> services, std::uint32_t table_size);

/// Reads the NF's configuration and calls finish(). InvalidArgument with position for any error.
Result<Settings> read_settings(nf::Config& config);

}  // namespace catena::lb
