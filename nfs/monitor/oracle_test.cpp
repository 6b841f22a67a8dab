// SPDX-License-Identifier: Apache-2.0
// Programs that share no code with this project judge what the monitor exports: tshark adds up the captures, scapy and
// nfdump collect IPFIX.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catena/core/testing/test_data.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/testing/oracle.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "monitor_testing.hpp"

namespace catena::monitor {
namespace {

using nf::testing::CommandResult;
using nf::testing::Frame;
using nf::testing::has_tshark;
using nf::testing::RunOptions;
using nf::testing::RunResult;
using ::testing::HasSubstr;

bool has_scapy() { return nf::testing::can_import("scapy.layers.netflow"); }
bool has_nfdump() { return nf::testing::succeeds("nfdump -V") && nf::testing::succeeds("command -v nfcapd"); }

/// nfcapd of the nfdump package, on a port of the loopback interface. It writes its file into `folder` and says what
/// it did in the file `log`.
class Nfcapd {
 public:
  Nfcapd(std::uint16_t port, std::string const& folder, std::string const& log) : port_(port) {
    const std::string number = std::to_string(port);
    process_ = ::fork();
    if (process_ == 0) {
      const int file = ::open(log.c_str(), O_WRONLY | O_CREAT, 0666);
      ::dup2(file, STDOUT_FILENO);
      ::dup2(file, STDERR_FILENO);
      ::execlp("nfcapd", "nfcapd", "-b", "127.0.0.1", "-p", number.c_str(), "-w", folder.c_str(), "-B", "4000000", "-t",
               "3600", nullptr);
      ::_exit(127);
    }
  }
  Nfcapd(Nfcapd const&) = delete;
  Nfcapd& operator=(Nfcapd const&) = delete;
  ~Nfcapd() { stop(); }

  /// Waits until it listens; false if it does not.
  bool listens() const {
    return wait_for([this] { return waiting_bytes().has_value(); });
  }
  /// Waits until it has taken all datagrams; false if it does not.
  bool is_done() const {
    return wait_for([this] { return waiting_bytes() == 0U; });
  }
  /// Ends it; it then closes its file.
  void stop() {
    if (process_ > 0) {
      ::kill(process_, SIGTERM);
      ::waitpid(process_, nullptr, 0);
      process_ = -1;
    }
  }

 private:
  template <typename Condition>
  static bool wait_for(Condition condition) {
    for (int tries = 0; tries < 2000; ++tries) {
      if (condition()) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  /// Bytes in the receive queue of the port; nothing if nobody listens on it.
  std::optional<std::uint64_t> waiting_bytes() const {
    const std::string wanted = fmt::format("0100007F:{:04X}", port_);
    std::ifstream table("/proc/net/udp");
    for (std::string line; std::getline(table, line);) {
      std::istringstream words(line);
      std::string slot, local, remote, state, queues;
      words >> slot >> local >> remote >> state >> queues;
      if (local == wanted) {
        return std::stoull(queues.substr(queues.find(':') + 1), nullptr, 16);
      }
    }
    return std::nullopt;
  }

  std::uint16_t port_;
  pid_t process_;
};

class Oracle : public ::testing::Test {
 protected:
  void expect_oracle(std::string_view script, std::vector<std::string> const& arguments, std::string_view says) {
    const CommandResult result = nf::testing::run_oracle("monitor", script, arguments);
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_THAT(result.output, HasSubstr(std::string(says)));
  }
  /// Runs a monitor over the frames that exports to nfcapd, with these further lines of configuration, and expects that
  /// nfdump then shows the records of the JSON lines.
  void expect_received(std::vector<Frame> const& frames, RunOptions const& options, std::string_view more) {
    const std::uint16_t port = testing::Receiver().port();  // free again, and the system gives away others first
    std::filesystem::create_directory(folder_.path("nfcapd"));
    Nfcapd nfcapd(port, folder_.path("nfcapd"), folder_.path("log"));
    ASSERT_TRUE(nfcapd.listens()) << folder_.read("log");
    const std::string yaml =
        concat(more, "\nexport:\n  - {format: json, file: flows.jsonl}\n  - {format: ipfix, udp: '127.0.0.1:", port,
               "', template_refresh: 3}");
    const RunResult result = testing::run(yaml, frames, folder_, options);
    EXPECT_EQ(testing::statistic(result, "export_errors"), 0U);
    ASSERT_TRUE(nfcapd.is_done());
    nfcapd.stop();
    EXPECT_THAT(folder_.read("log"), HasSubstr("Sequence Errors: 0, Bad Packets: 0"));
    expect_oracle("nfdump_flows.py", {folder_.path("nfcapd"), folder_.path("flows.jsonl")},
                  concat(testing::statistic(result, "flows_exported"), " records"));
  }
  testing::ScratchFolder folder_;
};

/// With captures from elsewhere.
class Captures : public Oracle, public ::testing::WithParamInterface<std::string_view> {
 protected:
  void SetUp() override {
    path_ = concat(shared_data(), "/traces/", GetParam());
    auto frames = nf::testing::read_capture(path_, 65'535);
    ASSERT_TRUE(frames.ok()) << frames.status();
    for (Frame const& frame : *frames) {
      ASSERT_LE(frame.size(), packet::kMaxFrameBytes);
    }
    frames_ = std::move(frames).value();
    ASSERT_GT(frames_.size(), 1'900U);
    for (std::size_t i = 0; i < frames_.size(); ++i) {  // 10 ms apart: flows become idle, and long ones active
      options_.arrivals_ns.push_back(1'700'000'000 * kTestSecond + i * (kTestSecond / 100));
    }
  }

  std::string path_;
  std::vector<Frame> frames_;
  RunOptions options_;
};
INSTANTIATE_TEST_SUITE_P(Traces, Captures, ::testing::Values("mixed.pcap", "onvm_64B_download.pcap"),
                         [](auto const& trace) { return std::string(trace.param.substr(0, trace.param.find('.'))); });

TEST_P(Captures, flows_are_those_of_tshark) {
  if (!has_tshark()) {
    GTEST_SKIP() << "tshark is not installed";
  }
  const RunResult result =
      testing::run("active_timeout_s: 10\nexport: [{format: json, file: flows.jsonl}]", frames_, folder_, options_);
  EXPECT_GT(testing::statistic(result, "flows_exported"), testing::statistic(result, "flows"));
  expect_oracle("tshark_flows.py", {path_, folder_.path("flows.jsonl")},
                concat(" ", result.counters.processed, " packets"));
}

TEST_P(Captures, scapy_reads_the_same_records_from_ipfix_as_the_json_lines_say) {
  if (!has_scapy()) {
    GTEST_SKIP() << "python3-scapy is not installed";
  }
  const RunResult result = testing::run(
      "active_timeout_s: 10\nexport: [{format: json, file: flows.jsonl}, {format: ipfix, file: flows.ipfix}]", frames_,
      folder_, options_);
  expect_oracle("scapy_ipfix.py", {folder_.path("flows.ipfix"), folder_.path("flows.jsonl")},
                concat(testing::statistic(result, "flows_exported"), " records"));
}

TEST_P(Captures, nfcapd_receives_every_record_over_udp) {
  if (!has_nfdump()) {
    GTEST_SKIP() << "nfdump is not installed";
  }
  expect_received(frames_, options_, "active_timeout_s: 10");
}

TEST_P(Captures, two_runs_write_identical_files) {
  constexpr std::string_view kExport =
      "max_flows: 50\nexport: [{format: json, file: flows.jsonl}, {format: ipfix, file: flows.ipfix}]";
  testing::run(kExport, frames_, folder_, options_);
  const std::string json = folder_.read("flows.jsonl");
  const std::string ipfix = folder_.read("flows.ipfix");
  ASSERT_GT(json.size(), 1000U);
  ASSERT_GT(ipfix.size(), 1000U);
  testing::run(kExport, frames_, folder_, options_);
  EXPECT_TRUE(folder_.read("flows.jsonl") == json);
  EXPECT_TRUE(folder_.read("flows.ipfix") == ipfix);
}

/// Flows of all kinds, for machines without the captures.
class MadeTraffic : public Oracle {
 protected:
  MadeTraffic() {
    for (std::uint32_t i = 0; i < 600; ++i) {
      const std::uint8_t protocol = i % 3 == 0 ? 6 : 17;
      Frame frame = nf::testing::make_frame(protocol, 0xC0000200 + i % 17, 0xC6336400 + i % 11,
                                            static_cast<std::uint16_t>(1024 + i % 7), 443, std::string(i, 'x'));
      frame[15] = static_cast<std::uint8_t>(i % 5 << 2);
      if (protocol == 6) {
        frame[47] = static_cast<std::uint8_t>(i);
      } else if (i % 4 == 0) {
        frame[23] = 1;  // ICMP, type and code where the source port was
      } else if (i % 5 == 0) {
        frame[23] = 47;
      }
      frames_.push_back(std::move(frame));
      options_.arrivals_ns.push_back(1'700'000'000 * kTestSecond + i * (kTestSecond / 7));
    }
  }
  std::vector<Frame> frames_;
  RunOptions options_;
};

TEST_F(MadeTraffic, is_read_by_scapy_as_the_json_lines_say) {
  if (!has_scapy()) {
    GTEST_SKIP() << "python3-scapy is not installed";
  }
  const RunResult result = testing::run(
      "max_flows: 100\nactive_timeout_s: 20\n"
      "export: [{format: json, file: flows.jsonl}, {format: ipfix, file: flows.ipfix}]",
      frames_, folder_, options_);
  expect_oracle("scapy_ipfix.py", {folder_.path("flows.ipfix"), folder_.path("flows.jsonl")},
                concat(testing::statistic(result, "flows_exported"), " records"));
}

TEST_F(MadeTraffic, is_received_whole_by_nfcapd) {
  if (!has_nfdump()) {
    GTEST_SKIP() << "nfdump is not installed";
  }
  expect_received(frames_, options_, "max_flows: 100");
}

/// An export of hours over UDP, as a capture of its datagrams for tshark.
class Export : public Oracle {
 protected:
  static constexpr std::size_t kFlows = 200;

  /// What a monitor sends to a collector: a flow every 25 s for hours, with a pause of an hour in the middle.
  std::vector<std::vector<std::uint8_t>> datagrams(device::Device* device = nullptr) {
    std::vector<Frame> frames;
    RunOptions options;
    for (std::uint32_t i = 0; i < kFlows; ++i) {
      frames.push_back(nf::testing::make_frame(i % 2 == 0 ? 6 : 17, 0x0A000000 + i, 0xC6336401, 1024, 443, "data"));
      options.arrivals_ns.push_back((1'700'000'000 + 25 * i + (i < kFlows / 2 ? 0 : 3600)) * kTestSecond);
    }
    const testing::Receiver receiver;
    const std::string yaml =
        concat("export: [{format: ipfix, udp: '127.0.0.1:", receiver.port(), "', template_refresh: 1000}]");
    testing::run(yaml, frames, folder_, options, device);
    return receiver.take();
  }
};

TEST_F(Export, gives_a_collector_that_missed_the_first_templates_others_in_time) {
  if (!has_tshark()) {
    GTEST_SKIP() << "tshark is not installed";
  }
  std::vector<Frame> frames;
  for (std::vector<std::uint8_t> const& datagram : datagrams()) {
    frames.push_back(nf::testing::make_frame(17, 0x7F000001, 0x7F000001, 40'000, 4739,
                                             std::string(datagram.begin(), datagram.end())));
  }
  ASSERT_GE(frames.size(), kFlows) << "a datagram was lost on its way";
  frames.erase(frames.begin());
  nf::testing::write_capture(folder_.path("export.pcap"), frames);
  expect_oracle("tshark_templates.py", {folder_.path("export.pcap")},
                concat(kFlows - 24, " records; the first after 575 s; data at most 575 s after templates"));
}

TEST_F(Export, is_the_same_from_every_device) {
  const auto expected = datagrams();
  for (device::Device* device : nf::testing::devices()) {
    EXPECT_TRUE(datagrams(device) == expected) << nf::testing::name_of(device);
  }
}

}  // namespace
}  // namespace catena::monitor
