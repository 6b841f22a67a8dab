// SPDX-License-Identifier: Apache-2.0
#include "base/core/log_line.hpp"
#include "service/client.hpp"
#include "service/http_server.hpp"
#include "service/listen.hpp"
#include "service/route.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <sstream>
#include <string>

namespace catena::service {
namespace {

using testing::HasSubstr;

TEST(LogLine, is_one_line_that_no_terminal_obeys) {
  EXPECT_EQ(log_line("a:1:2: wrong\nb"), "a:1:2: wrong; b");
  EXPECT_EQ(log_line("\x1b[2J\r\x7f\tü"), "\\x1b[2J\\r\\x7f\\tü");
}

TEST(LogLine, is_what_the_log_has_of_each_message) {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  set_log_pattern("%l %v");
  spdlog::warn("{}: {}", "a\x1b", "wrong\nerror forged");
  spdlog::set_default_logger(before);
  EXPECT_EQ(text.str(), "warning a\\x1b: wrong; error forged\n");
}

TEST(ResourcePath, has_no_part_that_a_name_brings) {
  EXPECT_EQ(resource_path("/v1/chains/NAME", "office-1.a_b"), "/v1/chains/office-1.a_b");
  EXPECT_EQ(resource_path("/v1/chains/NAME/reset", "a/stop?x#y"), "/v1/chains/a%2Fstop%3Fx%23y/reset");
  EXPECT_EQ(resource_path("/v1/chains", ""), "/v1/chains");
}

TEST(ErrorResponse, has_a_line_for_each_thing_that_is_wrong) {
  const HttpResponse response = error_response(400, absl::InvalidArgumentError("c.yaml:3:7: bad\nworse \xff"));
  EXPECT_EQ(response.status, 400U);
  const auto body = nlohmann::ordered_json::parse(response.body);
  EXPECT_EQ(body["ok"], false);
  ASSERT_EQ(body["errors"].size(), 2U);
  EXPECT_EQ(body["errors"][0]["line"], 3);
  EXPECT_EQ(body["errors"][0]["message"], "bad");
}

TEST(ListenTcp, takes_addresses_with_a_port_and_nothing_else) {
  for (const char* good : {"127.0.0.1:0", "[::1]:0"}) {
    const Result<int> socket = listen_tcp(good);
    if (!socket.ok() && std::string(good).find("::") != std::string::npos) {
      continue;  // there are machines without IPv6
    }
    ASSERT_TRUE(socket.ok()) << socket.status();
    ::close(*socket);
  }
  for (const char* bad :
       {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:1x", "localhost:1", "::1:9",
        "127.0.0.01:1", "127.1:1", "0x7f.0.0.1:1", "[::1]", "[]:9", "[127.0.0.1]:9"}) {
    EXPECT_EQ(listen_tcp(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(ControlSocket, has_no_path_that_the_kernel_would_cut) {
  const Status status = ControlSocket::open("/" + std::string(200, 'x')).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("107 bytes"));
}

}  // namespace
}  // namespace catena::service
