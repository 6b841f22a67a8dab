// SPDX-License-Identifier: Apache-2.0
#include "monitor_testing.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ostream>

namespace catena::monitor {

std::ostream& operator<<(std::ostream& out, FlowRecord const& record) {
  return out << dotted(record.key.src()) << ':' << record.key.sport() << " > " << dotted(record.key.dst()) << ':'
             << record.key.dport() << " protocol " << int{record.key.protocol()} << ", " << record.packets
             << " packets, " << record.bytes << " bytes, " << record.first_ns << ".." << record.last_ns << " ns, flags "
             << record.tcp_flags << ", tos " << int{record.tos} << ", reason " << static_cast<int>(record.end_reason);
}

namespace testing {

nf::testing::RunResult run(std::string_view yaml, std::vector<nf::testing::Frame> const& frames,
                           ScratchFolder const& folder, nf::testing::RunOptions const& options) {
  auto monitor = nf::testing::make_nf(catena_nf_monitor(), yaml, folder.path());
  if (!monitor.ok()) {
    ADD_FAILURE() << monitor.status();
    return {};
  }
  auto result = nf::testing::run(catena_nf_monitor(), std::move(monitor).value(), frames, nullptr, options);
  if (!result.ok()) {
    ADD_FAILURE() << result.status();
    return {};
  }
  for (std::size_t i = 0; i < frames.size(); ++i) {
    EXPECT_TRUE(result->packets[i].frame == frames[i]) << i;
    EXPECT_EQ(result->packets[i].verdict, packet::Verdict::kPass) << i;
  }
  EXPECT_TRUE(result->records.empty());
  return std::move(result).value();
}

std::uint64_t statistic(nf::testing::RunResult const& result, std::string_view name) {
  for (nf::Statistic const& entry : result.statistics) {
    if (entry.name == name) {
      return entry.value;
    }
  }
  ADD_FAILURE() << "no statistic " << name;
  return 0;
}

Receiver::Receiver() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length), 0);
  port_ = ntohs(address.sin_port);
}
Receiver::~Receiver() { ::close(socket_); }
std::vector<std::vector<std::uint8_t>> Receiver::take() const {
  std::vector<std::vector<std::uint8_t>> datagrams;
  std::vector<std::uint8_t> buffer(65'535);
  for (ssize_t bytes = 0; (bytes = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT)) >= 0;) {
    datagrams.emplace_back(buffer.begin(), buffer.begin() + bytes);
  }
  return datagrams;
}

}  // namespace testing
}  // namespace catena::monitor
