// SPDX-License-Identifier: Apache-2.0
#include "base/core/log_line.hpp"
#include "service/chain_log.hpp"
#include "service/client.hpp"
#include "service/http_server.hpp"
#include "service/listen.hpp"
#include "service/route.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <unistd.h>
#include <catena/core/text.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

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

TEST(LogLine, has_the_forms_of_a_service) {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  for (const char* pattern : {kTextLog, kJsonLog, kJournalLog}) {
    set_log_pattern(pattern);
    spdlog::warn("a: \"x\\y\"\x1b\nforged");
  }
  spdlog::error("a: lost");
  spdlog::set_default_logger(before);
  std::istringstream lines(text.str());
  std::array<std::string, 4> line;
  for (std::string& each : line) {
    std::getline(lines, each);
  }
  constexpr std::string_view kStamp = "2026-11-29T19:38:00.123+00:00";
  EXPECT_EQ(line[0].substr(kStamp.size()), " warning a: \"x\\y\"\\x1b; forged");
  const nlohmann::json object = nlohmann::json::parse(line[1]);
  EXPECT_EQ(object["level"], "warning");
  EXPECT_EQ(object["message"], "a: \"x\\y\"\\x1b; forged");
  EXPECT_EQ(object["time"].get<std::string>().size(), kStamp.size());
  EXPECT_EQ(line[2], "<4>a: \"x\\y\"\\x1b; forged");
  EXPECT_EQ(line[3], "<3>a: lost");
}

TEST(LogLine, has_the_chain_and_the_stage_of_its_thread) {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  const auto kept = std::make_shared<ChainLog>();
  const spdlog::sinks_init_list sinks{std::make_shared<spdlog::sinks::ostream_sink_mt>(text), kept};
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sinks));
  set_log_pattern(R"(%v {"a":1%K})");
  spdlog::info("of all");
  {
    const LogContext context("office", "fw");
    spdlog::info("of one");
    spdlog::info("office: of one");
    std::thread(in_log_context([] {
      spdlog::info("of its thread");
      LogContext::set_stage("rx");
      spdlog::info("of a stage");
    })).join();
    std::thread([] { spdlog::info("of another thread"); }).join();
    spdlog::info("of the stage again");
  }
  spdlog::info("of all again");
  spdlog::set_default_logger(before);
  EXPECT_EQ(text.str(),
            "of all {\"a\":1}\n"
            "office: of one {\"a\":1,\"chain\":\"office\",\"stage\":\"fw\"}\n"
            "office: of one {\"a\":1,\"chain\":\"office\",\"stage\":\"fw\"}\n"
            "office: of its thread {\"a\":1,\"chain\":\"office\"}\n"
            "office: of a stage {\"a\":1,\"chain\":\"office\",\"stage\":\"rx\"}\n"
            "of another thread {\"a\":1}\n"
            "office: of the stage again {\"a\":1,\"chain\":\"office\",\"stage\":\"fw\"}\n"
            "of all again {\"a\":1}\n");
  const std::vector<ChainLogLine> lines = kept->lines_of("office");
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[3].stage, "rx");
  EXPECT_EQ(lines[3].message, "of a stage");
  kept->forget("office");
  EXPECT_TRUE(kept->lines_of("office").empty());
}

TEST(ChainLog, is_bounded_in_lines_bytes_and_chains) {
  ChainLog log;
  const auto add = [&log](std::string chain, std::string const& text) {
    const LogContext context(std::move(chain));
    log.log({"", spdlog::level::info, text});
  };
  for (std::size_t i = 0; i < 2 * ChainLog::kMaxLines; ++i) {
    add("a", std::string(i, 'x'));
  }
  EXPECT_EQ(log.lines_of("a").size(), ChainLog::kMaxLines);
  add("a", std::string(1U << 20U, 'x'));
  EXPECT_EQ(log.lines_of("a").back().message.size(), ChainLog::kMaxMessageBytes);
  for (std::size_t i = 0; i < ChainLog::kMaxChains; ++i) {
    add(concat("b", i), "x");
  }
  EXPECT_TRUE(log.lines_of("a").empty()) << "the oldest";
  EXPECT_EQ(log.lines_of("b0").size(), 1U);
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
