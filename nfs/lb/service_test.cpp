// SPDX-License-Identifier: Apache-2.0
#include "service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <catena/core/text.hpp>

#include "service_table.hpp"

namespace catena::lb {
namespace {

using ::testing::HasSubstr;

Result<Settings> read(std::string_view yaml) {
  auto config = nf::Config::parse(yaml, "lb.yaml");
  return config.ok() ? read_settings(*config) : config.status();
}

TEST(ServiceConfig, every_key_is_read) {
  const auto settings = read(R"(services:
  - address: 203.0.113.10
    port: 80
    protocol: tcp
    backends:
      - {name: web1, address: 10.0.0.1}
      - {name: web-2.b, address: 10.0.0.2, port: 8080, weight: 256, state: drain}
      - {name: web_3, address: 10.0.0.3, state: down}
  - {address: 203.0.113.10, port: 80, protocol: udp, backends: [{name: web1, address: 10.0.0.1}]}
table_size: 1009
max_flows: 17
timeouts: {tcp_opening: 5, udp: 60}
max_half_open: 3
answers_without_flow: pass
)");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->table_size, 1009U);
  EXPECT_EQ(settings->limits.flows, 17U);
  EXPECT_EQ(settings->limits.half_open, 3U);
  EXPECT_EQ(settings->timeouts.tcp_opening, 5U);
  EXPECT_EQ(settings->timeouts.udp, 60U);
  EXPECT_EQ(settings->timeouts.tcp_established, 7440U);
  EXPECT_FALSE(settings->translates_without_flow);
  EXPECT_TRUE(settings->translates_errors);
  ASSERT_EQ(settings->services.size(), 2U);
  Service const& tcp = settings->services[0];
  EXPECT_EQ(tcp.endpoint, (Endpoint{0xCB00710A, 80, 6}));
  EXPECT_EQ(settings->services[1].endpoint, (Endpoint{0xCB00710A, 80, 17}));
  ASSERT_EQ(tcp.backends.size(), 3U);
  EXPECT_EQ(tcp.backends[0].name, "web1");
  EXPECT_EQ(tcp.backends[0].address, 0x0A000001U);
  EXPECT_EQ(tcp.backends[0].port, 80);
  EXPECT_EQ(tcp.backends[0].weight, 1U);
  EXPECT_EQ(tcp.backends[0].state, BackendState::kUp);
  EXPECT_EQ(tcp.backends[1].port, 8080);
  EXPECT_EQ(tcp.backends[1].weight, 256U);
  EXPECT_EQ(tcp.backends[1].state, BackendState::kDrain);
  EXPECT_EQ(tcp.backends[2].state, BackendState::kDown);
}

TEST(ServiceConfig, what_is_left_out_has_its_default) {
  const auto settings =
      read("services: [{address: 1.2.3.4, port: 53, protocol: udp, backends: [{name: a, address: 10.0.0.1}]}]");
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_EQ(settings->table_size, 65537U);
  EXPECT_EQ(settings->limits.flows, 1000000U);
  EXPECT_EQ(settings->limits.half_open, 500000U);
  EXPECT_EQ(settings->timeouts.tcp_opening, 30U);
  EXPECT_EQ(settings->timeouts.tcp_closing, 60U);
  EXPECT_EQ(settings->timeouts.udp, 300U);
  EXPECT_TRUE(settings->translates_without_flow);
}

struct WrongConfig {
  std::string_view what;
  std::string_view yaml;
  std::string_view message;
};

/// A service line with what the case is about in its place.
constexpr WrongConfig kWrong[] = {
    {"no services", "{}", "missing key 'services'"},
    {"empty list", "services: []", "lb.yaml:1:11: 0 services; allowed: 1 to 256"},
    {"service address",
     "services:\n- {address: 1.2.3, port: 1, protocol: tcp, backends: [{name: a, address: 10.0.0.1}]}",
     "lb.yaml:2:13: 'address' is '1.2.3'; write an IPv4 address such as 203.0.113.10"},
    {"multicast service",
     "services:\n- {address: 224.0.0.1, port: 1, protocol: tcp, backends: [{name: a, address: 10.0.0.1}]}",
     "lb.yaml:2:13: 'address' is 224.0.0.1, which no host can have"},
    {"port 0", "services:\n- {address: 1.2.3.4, port: 0, protocol: tcp, backends: [{name: a, address: 10.0.0.1}]}",
     "lb.yaml:2:28: 'port' is '0'; allowed: a whole number from 1 to 65535"},
    {"protocol", "services:\n- {address: 1.2.3.4, port: 1, protocol: tpc, backends: [{name: a, address: 10.0.0.1}]}",
     "lb.yaml:2:41: 'protocol' is 'tpc'; allowed: tcp, udp; did you mean 'tcp'?"},
    {"no protocol", "services:\n- {address: 1.2.3.4, port: 1, backends: [{name: a, address: 10.0.0.1}]}",
     "lb.yaml:2:3: missing key 'protocol'"},
    {"unknown key",
     "services:\n- {address: 1.2.3.4, port: 1, protocol: tcp, weight: 2, backends: [{name: a, address: 10.0.0.1}]}",
     "lb.yaml:2:46: unknown key 'weight'"},
    {"no backends", "services:\n- {address: 1.2.3.4, port: 1, protocol: tcp, backends: []}",
     "lb.yaml:2:56: service 1.2.3.4:1/tcp has no backend; name at least one"},
    {"the same service twice",
     "services:\n- {address: 1.2.3.4, port: 1, protocol: tcp, backends: [{name: a, address: 10.0.0.1}]}\n"
     "- {address: 1.2.3.4, port: 1, protocol: tcp, backends: [{name: b, address: 10.0.0.2}]}",
     "lb.yaml:3:13: service 1.2.3.4:1/tcp is listed twice"},
    {"backend address",
     "services:\n- {address: 1.2.3.4, port: 1, protocol: tcp, backends: [{name: a, address: 10.0.0.256}]}",
     "lb.yaml:2:76: 'address' is '10.0.0.256'; write an IPv4 address"},
    {"backend at no host address",
     "services:\n- {address: 1.2.3.4, port: 1, protocol: tcp, backends: [{name: a, address: 0.0.0.0}]}",
     "lb.yaml:2:76: 'address' is 0.0.0.0, which no host can have"},
    {"backend without a name",
     "services:\n- {address: 1.2.3.4, port: 1, protocol: tcp, backends: [{address: 10.0.0.1}]}",
     "lb.yaml:2:57: missing key 'name'"},
    {"backend name with a quote",
     "services:\n- {address: 1.2.3.4, port: 1, protocol: tcp, backends: [{name: 'a\"', address: 10.0.0.1}]}",
     "lb.yaml:2:64: a backend's name has 1 to 63 letters, digits, '.', '_' or '-'"},
    {"backend name twice",
     "services:\n- address: 1.2.3.4\n  port: 1\n  protocol: tcp\n  backends:\n"
     "  - {name: a, address: 10.0.0.1}\n  - {name: a, address: 10.0.0.2}",
     "lb.yaml:7:12: the service has a backend 'a' already"},
    {"backend address and port twice",
     "services:\n- address: 1.2.3.4\n  port: 1\n  protocol: tcp\n  backends:\n"
     "  - {name: a, address: 10.0.0.1}\n  - {name: b, address: 10.0.0.1, port: 1}",
     "lb.yaml:7:24: the service has a backend at 10.0.0.1:1/tcp already"},
    {"backend that is a service",
     "services:\n- {address: 1.2.3.4, port: 1, protocol: tcp, backends: [{name: a, address: 1.2.3.5, port: 2}]}\n"
     "- {address: 1.2.3.5, port: 2, protocol: tcp, backends: [{name: b, address: 10.0.0.2}]}",
     "lb.yaml:2:76: 1.2.3.5:2/tcp is a service"},
    {"weight",
     "services:\n- {address: 1.2.3.4, port: 1, protocol: tcp, backends: [{name: a, address: 10.0.0.1, weight: 257}]}",
     "'weight' is '257'; allowed: a whole number from 1 to 256"},
    {"state",
     "services:\n- {address: 1.2.3.4, port: 1, protocol: tcp, backends: [{name: a, address: 10.0.0.1, state: off}]}",
     "'state' is 'off'; allowed: up, drain, down"},
    {"table size that is no prime",
     "table_size: 65536\nservices: [{address: 1.2.3.4, port: 1, protocol: tcp, backends: [{name: a, address: "
     "10.0.0.1}]}]",
     "lb.yaml:1:13: 'table_size' is 65536, not a prime; the next one is 65537"},
    {"table too small for its backends",
     "table_size: 101\nservices:\n- address: 1.2.3.4\n  port: 1\n  protocol: tcp\n  backends:\n"
     "  - {name: a, address: 10.0.0.1}\n  - {name: b, address: 10.0.0.2}",
     "lb.yaml:7:3: 2 backends need a table of at least 100 entries each; write 'table_size: 211'"},
    {"table size beyond the limit", "table_size: 1048583\nservices: []", "allowed: a whole number from 101 to 1048573"},
    {"no flows", "max_flows: 0\nservices: []", "lb.yaml:1:12: 'max_flows' is '0'"},
    {"timeout", "timeouts: {udp: never}\nservices: []", "lb.yaml:1:17: 'udp' is 'never'"},
    {"half open", "max_half_open: 5\nmax_flows: 4\nservices: []", "1 to 4"},
    {"errors", "icmp_errors: drop\nservices: []", "allowed: translate, pass"},
};

TEST(ServiceConfig, every_mistake_is_an_error_with_its_position) {
  for (WrongConfig const& wrong : kWrong) {
    SCOPED_TRACE(wrong.what);
    const auto settings = read(wrong.yaml);
    ASSERT_FALSE(settings.ok());
    EXPECT_TRUE(absl::IsInvalidArgument(settings.status()));
    EXPECT_THAT(std::string(settings.status().message()), HasSubstr(std::string(wrong.message)));
  }
}

TEST(ServiceConfig, more_services_or_backends_than_the_limits_are_an_error) {
  std::vector<Service> services;
  for (std::uint32_t i = 0; i < 8; ++i) {
    services.push_back({{0x01020304 + i, 80, 6}, {}});
    for (std::uint32_t j = 0; j < 600; ++j) {
      services.back().backends.push_back({.name = concat("b", j), .address = 0x0A000000 + j + i * 1000, .port = 80});
    }
  }
  ASSERT_TRUE(find_mistake(services, 65537).has_value());
  EXPECT_EQ(find_mistake(services, 65537)->service, 6U) << "7 * 600 backends are more than 4096";
  EXPECT_FALSE(find_mistake(std::span(services).first(6), 65537).has_value());

  services.resize(1);
  services[0].backends.resize(1);
  for (std::uint32_t i = 0; i < kMaxServices; ++i) {
    services.push_back(services[0]);
    services.back().endpoint.port = static_cast<std::uint16_t>(1000 + i);
  }
  EXPECT_TRUE(find_mistake(services, 65537).has_value());
  services.pop_back();
  EXPECT_FALSE(find_mistake(services, 65537).has_value());
}

Service web(std::vector<Backend> backends, std::uint16_t port = 80) {
  return {{0xCB00710A, port, packet::kProtocolTcp}, std::move(backends)};
}
Backend backend(std::string name, std::uint32_t address, BackendState state = BackendState::kUp) {
  return {.name = std::move(name), .address = address, .port = 80, .weight = 1, .state = state};
}
std::uint32_t no_flows(std::uint16_t) { return 0; }

TEST(ServiceTable, backends_keep_their_numbers_through_an_update) {
  ServiceTable table(1009);
  ASSERT_TRUE(table.update(std::vector{web({backend("a", 1 << 24), backend("b", 2 << 24)})}, no_flows).ok());
  ASSERT_TRUE(
      table.update(std::vector{web({backend("c", 3 << 24)}, 81), web({backend("b", 2 << 24)})}, [](auto) { return 1; })
          .ok());
  ASSERT_EQ(table.backends().size(), 3U);
  EXPECT_EQ(table.backends()[0].state, BackendState::kDown) << "no longer listed";
  EXPECT_EQ(table.backends()[1].name, "b");
  EXPECT_EQ(table.backends()[1].state, BackendState::kUp);
  EXPECT_EQ(table.backends()[2].name, "c");
  EXPECT_EQ(table.choose(table.service_at(web({}).endpoint), 12345), 1);
  EXPECT_EQ(table.choose(table.service_at(web({}, 81).endpoint), 12345), 2);
}

TEST(ServiceTable, a_backend_that_moves_to_another_address_is_another_backend) {
  ServiceTable table(1009);
  ASSERT_TRUE(table.update(std::vector{web({backend("a", 1 << 24)})}, no_flows).ok());
  ASSERT_TRUE(table.update(std::vector{web({backend("a", 2 << 24)})}, [](auto) { return 1; }).ok());
  EXPECT_EQ(table.choose(0, 1), 1);
  EXPECT_EQ(table.backends()[1].endpoint.address, 2U << 24);
  EXPECT_TRUE(table.has_backend_at({1 << 24, 80, 6})) << "its flows still have answers";
}

TEST(ServiceTable, numbers_without_flows_are_used_again_so_that_updates_never_run_out) {
  ServiceTable table(1009);
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const auto port = static_cast<std::uint16_t>(i + 1);
    ASSERT_TRUE(
        table.update(std::vector{web({backend(concat("b", i), (i + 1) << 8 | 0x01000000)}, port)}, no_flows).ok());
  }
  EXPECT_EQ(table.services().size(), 1U);
  EXPECT_EQ(table.backends().size(), 1U);
}

TEST(ServiceTable, an_update_that_finds_no_numbers_changes_nothing) {
  constexpr std::uint32_t kAtOnce = 8;
  static_assert(ServiceTable::kBackendNumbers % kAtOnce == 0);
  ServiceTable table(1009);
  Status status;
  std::uint32_t updates = 0;
  for (; status.ok() && updates < 10000; ++updates) {
    std::vector<Backend> backends;
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      backends.push_back(backend(concat("b", updates, "_", i), 0x01000001 + updates * kAtOnce + i));
    }
    status = table.update(std::vector{web(backends)}, [](auto) { return 1; });
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(table.backends().size(), ServiceTable::kBackendNumbers);
  const std::uint16_t chosen = table.choose(0, 1);
  EXPECT_THAT(table.backends()[chosen].name, ::testing::StartsWith(concat("b", updates - 2, "_")))
      << "the last ones that succeeded";
}

TEST(ServiceTable, a_wrong_list_is_refused_and_changes_nothing) {
  ServiceTable table(1009);
  ASSERT_TRUE(table.update(std::vector{web({backend("a", 1 << 24)})}, no_flows).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(table.update(std::vector{web({})}, no_flows)));
  EXPECT_TRUE(absl::IsInvalidArgument(table.update({}, no_flows)));
  Backend portless = backend("b", 2 << 24);
  portless.port = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(table.update(std::vector{web({portless})}, no_flows)));
  EXPECT_EQ(table.choose(table.service_at(web({}).endpoint), 7), 0);
}

TEST(ServiceTable, only_backends_that_are_up_are_chosen) {
  ServiceTable table(1009);
  ASSERT_TRUE(table
                  .update(std::vector{web({backend("a", 1 << 24, BackendState::kDrain), backend("b", 2 << 24),
                                           backend("c", 3 << 24, BackendState::kDown)})},
                          no_flows)
                  .ok());
  for (std::uint64_t hash = 0; hash < 1000; ++hash) {
    ASSERT_EQ(table.choose(0, hash << 54), 1);
  }
  ASSERT_TRUE(table.update(std::vector{web({backend("a", 1 << 24, BackendState::kDrain)})}, no_flows).ok());
  EXPECT_EQ(table.choose(0, 1), ServiceTable::kNone);
}

}  // namespace
}  // namespace catena::lb
