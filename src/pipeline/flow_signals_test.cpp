// SPDX-License-Identifier: Apache-2.0
#include "pipeline/flow_signals.hpp"

#include "pipeline/testing/faulty_relay.hpp"

#include <catena/core/testing/scratch_folder.hpp>
#include <catena/core/text.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace catena::runtime {
namespace {

using namespace std::chrono_literals;
using testing::Datagram;
using testing::FaultyRelay;
using testing::loopback;
using testing::udp_socket;
using Kind = FlowSignal::Kind;

constexpr auto kLimit = 20s;  // of what takes milliseconds, on whatever machine

template <typename What>
bool comes(What what) {
  for (const auto end = std::chrono::steady_clock::now() + kLimit; std::chrono::steady_clock::now() < end;) {
    if (what()) {
      return true;
    }
    std::this_thread::sleep_for(1ms);
  }
  return what();
}

class FlowSignalsTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_.write("key", digits_ + "\n"); }

  static SocketAddress at(std::uint16_t port) { return *parse_socket_address(concat("127.0.0.1:", port)); }
  std::unique_ptr<FlowSignals> make(chain::FlowSignalsConfig config, std::shared_ptr<SourcePauses> pauses) {
    config.key_file = folder_.path("key");
    auto made = FlowSignals::create(config, std::move(pauses));
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  /// Of the chain that has too much.
  std::unique_ptr<FlowSignals> server(std::uint16_t port = 0) { return make({.listen = at(port)}, pauses_); }
  /// Of the chain in front of it.
  std::unique_ptr<FlowSignals> client(std::uint16_t port) {
    return make({.downstream = {at(port)}}, std::make_shared<SourcePauses>());
  }

  const std::string digits_ = "00112233445566778899aabbccddeeff";
  std::vector<std::uint8_t> key_{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF};
  std::shared_ptr<SourcePauses> pauses_ = std::make_shared<SourcePauses>();
  ScratchFolder folder_;
};

TEST_F(FlowSignalsTest, a_chain_in_front_waits_while_the_one_behind_does) {
  const auto behind = server();
  const auto in_front = client(behind->port());
  EXPECT_FALSE(in_front->is_tx_congested());
  ASSERT_TRUE(comes([&] { return behind->counts().askers == 1; }));
  for (int i = 0; i < 20; ++i) {
    pauses_->begin();
    ASSERT_TRUE(comes([&] { return in_front->is_tx_congested().load(); })) << i;
    pauses_->end();
    ASSERT_TRUE(comes([&] { return !in_front->is_tx_congested(); })) << i;
  }
  EXPECT_EQ(in_front->counts().silent, 0U);
}

TEST_F(FlowSignalsTest, it_waits_as_long_as_the_state_lasts) {
  const auto behind = server();
  const auto in_front = client(behind->port());
  pauses_->begin();
  ASSERT_TRUE(comes([&] { return in_front->is_tx_congested().load(); }));
  const std::uint64_t received = in_front->counts().received;
  const std::uint64_t timeouts = in_front->counts().timeouts;
  ASSERT_TRUE(comes([&] { return in_front->counts().received > received + 30; })) << "it is repeated";
  if (in_front->counts().timeouts == timeouts) {  // nobody kept the threads from their work
    EXPECT_TRUE(in_front->is_tx_congested());
  }
  pauses_->end();
  ASSERT_TRUE(comes([&] { return !in_front->is_tx_congested(); }));
}

TEST_F(FlowSignalsTest, datagrams_that_are_lost_come_twice_or_late_change_nothing) {
  constexpr std::uint32_t kFaults = 100;  // of 1,000, of each kind
  const auto behind = server();
  FaultyRelay relay(behind->port(), kFaults);
  const auto in_front = client(relay.port());
  ASSERT_TRUE(comes([&] { return behind->counts().askers == 1; }));
  for (int i = 0; i < 200; ++i) {
    pauses_->begin();
    ASSERT_TRUE(comes([&] { return in_front->is_tx_congested().load(); })) << i;
    pauses_->end();
    ASSERT_TRUE(comes([&] { return !in_front->is_tx_congested(); })) << i;
  }
  EXPECT_GT(relay.lost(), 0U);
  EXPECT_GT(relay.repeated(), 0U);
  EXPECT_GT(relay.delayed(), 0U);
  EXPECT_GT(in_front->counts().stale, 0U) << "that came twice";
  EXPECT_EQ(in_front->counts().forged, 0U);
}

TEST_F(FlowSignalsTest, who_is_gone_stops_nobody_for_good) {
  auto behind = server();
  const std::uint16_t port = behind->port();
  const auto in_front = client(port);
  pauses_->begin();
  ASSERT_TRUE(comes([&] { return in_front->is_tx_congested().load(); }));
  behind.reset();
  ASSERT_TRUE(comes([&] { return !in_front->is_tx_congested(); }));
  EXPECT_GE(in_front->counts().timeouts, 1U);
  ASSERT_TRUE(comes([&] { return in_front->counts().silent == 1; })) << "and it is told";
  behind = server(port);  // it counts from the beginning
  ASSERT_TRUE(comes([&] { return in_front->is_tx_congested().load(); }));
  EXPECT_EQ(in_front->counts().silent, 0U);
}

TEST_F(FlowSignalsTest, chains_that_send_to_each_other_do_not_wait_for_ever) {
  const std::uint16_t port = testing::free_udp_port();
  const auto other_pauses = std::make_shared<SourcePauses>();
  const auto one = make({.listen = at(0), .downstream = {at(port)}}, pauses_);
  const auto other = make({.listen = at(port), .downstream = {at(one->port())}}, other_pauses);
  TxPause one_tx(one->is_tx_congested());
  TxPause other_tx(other->is_tx_congested());
  FlowGate one_gate(nullptr, RateController({}, &one_tx), pauses_.get(), &one_tx);
  FlowGate other_gate(nullptr, RateController({}, &other_tx), other_pauses.get(), &other_tx);
  const auto may_both = [&] {
    const bool may_one = one_gate.may_take();
    return other_gate.may_take() && may_one;
  };
  ASSERT_TRUE(comes([&] { return one->counts().askers == 1 && other->counts().askers == 1; }));
  other_pauses->begin();  // congested by itself
  ASSERT_TRUE(comes([&] {
    const bool may_one = one_gate.may_take();
    return !other_gate.may_take() && !may_one;
  }));
  other_pauses->end();
  EXPECT_TRUE(comes(may_both));
  std::this_thread::sleep_for(2 * kFlowHold);
  EXPECT_TRUE(comes(may_both));
}

TEST_F(FlowSignalsTest, a_chain_that_ends_does_not_wait_for_long) {
  const auto behind = server();
  const auto in_front = client(behind->port());
  TxPause tx(in_front->is_tx_congested());
  FlowGate rx(nullptr, RateController({}, &tx), nullptr, &tx);
  pauses_->begin();
  ASSERT_TRUE(comes([&] { return !rx.may_take(); }));
  EXPECT_TRUE(tx.is_on());
  rx.end();
  EXPECT_TRUE(comes([&] { return !tx.is_on(); }));
  pauses_->end();
}

TEST_F(FlowSignalsTest, a_gate_says_that_it_waits_and_that_it_ends) {
  const std::atomic<bool> is_congested{true};
  const TxPause tx(is_congested);
  FlowGate first(nullptr, RateController({}, &tx), pauses_.get());
  FlowGate second(nullptr, RateController({}, &tx), pauses_.get());
  EXPECT_FALSE(first.may_take());
  EXPECT_FALSE(second.may_take());
  first.end();
  EXPECT_TRUE(pauses_->any()) << "the other one waits";
  second.end();
  second.end();
  EXPECT_FALSE(pauses_->any());
  EXPECT_EQ(pauses_->count(), 2U);
}

TEST_F(FlowSignalsTest, what_was_answered_to_one_is_not_for_another) {
  const auto behind = server();
  FaultyRelay relay(behind->port(), 0);
  auto in_front = client(relay.port());
  pauses_->begin();
  ASSERT_TRUE(comes([&] { return in_front->is_tx_congested().load(); }));
  const std::vector<Datagram> recorded = relay.answers();
  pauses_->end();
  relay.cut(true);
  in_front = client(relay.port());  // started anew
  ASSERT_TRUE(comes([&] { return relay.lost() > 20; })) << "the relay knows it then";
  bool was_congested = false;
  for (int round = 0; round < 10; ++round) {
    for (Datagram const& datagram : recorded) {
      relay.send_to_client(datagram);
    }
    std::this_thread::sleep_for(2ms);
    was_congested = was_congested || in_front->is_tx_congested();
  }
  EXPECT_TRUE(comes([&] { return in_front->counts().stale > 0; }));
  EXPECT_FALSE(was_congested);
}

TEST_F(FlowSignalsTest, what_somebody_recorded_or_made_up_is_not_heard) {
  const auto behind = server();
  FaultyRelay relay(behind->port(), 0);
  const auto in_front = client(relay.port());
  pauses_->begin();
  ASSERT_TRUE(comes([&] { return in_front->is_tx_congested().load(); }));
  pauses_->end();
  ASSERT_TRUE(comes([&] { return !in_front->is_tx_congested(); }));
  const std::vector<Datagram> recorded = relay.answers();
  ASSERT_FALSE(recorded.empty());
  const std::uint64_t stale = in_front->counts().stale;
  const std::uint64_t forged = in_front->counts().forged;
  bool was_congested = false;
  for (int round = 0; round < 20; ++round) {
    for (Datagram datagram : recorded) {
      relay.send_to_client(datagram);
      datagram.back() ^= 1U;
      relay.send_to_client(datagram);
      relay.send_to_client(Datagram(datagram.begin(), datagram.begin() + 10));
    }
    std::this_thread::sleep_for(5ms);
    was_congested = was_congested || in_front->is_tx_congested();
  }
  EXPECT_FALSE(was_congested);
  EXPECT_TRUE(comes([&] { return in_front->counts().stale > stale; }));
  EXPECT_TRUE(comes([&] { return in_front->counts().forged > forged; }));
}

TEST_F(FlowSignalsTest, who_asks_must_have_the_key_and_not_all_are_remembered) {
  const auto behind = server();
  std::uint16_t port = 0;
  const FileDescriptor socket = udp_socket(port);
  const sockaddr_in to = loopback(behind->port());
  std::vector<std::uint8_t> other_key = key_;
  ++other_key[0];
  const auto ask = [&](std::uint64_t asker, std::uint64_t sequence, std::span<const std::uint8_t> key) {
    const auto datagram = seal({Kind::kAsk, asker, sequence}, key);
    ::sendto(socket.get(), datagram.data(), datagram.size(), 0, reinterpret_cast<sockaddr const*>(&to), sizeof to);
  };
  for (std::uint64_t asker = 0; asker < 10; ++asker) {
    ask(asker, 1, other_key);
  }
  ASSERT_TRUE(comes([&] { return behind->counts().forged == 10; }));
  EXPECT_EQ(behind->counts().askers, 0U);
  std::uint64_t sequence = 0;
  ASSERT_TRUE(comes([&] {
    ++sequence;
    for (std::uint64_t asker = 0; asker < 2 * kMaxFlowAskers; ++asker) {
      ask(asker, sequence, key_);
    }
    return behind->counts().askers == kMaxFlowAskers && behind->counts().stale > 0;
  }));
  EXPECT_LE(behind->counts().askers, kMaxFlowAskers);
  ASSERT_TRUE(comes([&] { return behind->counts().askers == 0; })) << "who asks no more is forgotten";
}

TEST_F(FlowSignalsTest, over_ipv6_and_to_several) {
  const auto first = make({.listen = *parse_socket_address("[::1]:0")}, pauses_);
  const auto second_pauses = std::make_shared<SourcePauses>();
  const auto second = make({.listen = at(0)}, second_pauses);
  const auto in_front =
      make({.downstream = {*parse_socket_address(concat("[::1]:", first->port())), at(second->port())}},
           std::make_shared<SourcePauses>());
  for (SourcePauses* pauses : {pauses_.get(), second_pauses.get()}) {
    pauses->begin();
    ASSERT_TRUE(comes([&] { return in_front->is_tx_congested().load(); }));
    pauses->end();
    ASSERT_TRUE(comes([&] { return !in_front->is_tx_congested(); }));
  }
}

TEST_F(FlowSignalsTest, an_address_that_another_has_and_a_key_that_is_none_are_errors) {
  const auto behind = server();
  chain::FlowSignalsConfig config{.listen = at(behind->port()), .key_file = folder_.path("key")};
  EXPECT_TRUE(behind->serves({.listen = at(0), .key_file = folder_.path("key")}));
  EXPECT_FALSE(behind->serves({.downstream = {at(1)}, .key_file = folder_.path("key")}));
  EXPECT_THAT(std::string(FlowSignals::create(config, pauses_).status().message()),
              ::testing::HasSubstr(concat("127.0.0.1:", behind->port(), ": Address already in use")));
  for (const char* text :
       {"", "00112233\n", "00112233445566778899aabbccddeefg\n", "00112233445566778899aabbccddeef\n"}) {
    folder_.write("bad", text);
    config.key_file = folder_.path("bad");
    EXPECT_THAT(std::string(FlowSignals::create(config, pauses_).status().message()), ::testing::HasSubstr("bad:1:"))
        << text;
  }
}

}  // namespace
}  // namespace catena::runtime
