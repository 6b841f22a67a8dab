// SPDX-License-Identifier: Apache-2.0
// Sessions between an application and a TCP without frames: bytes and order for every way of copying and for engines
// that fail, and applications that write anything into shared memory.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/hostcopy/testing/faulty_engine.hpp"
#include "base/ipc/frames.hpp"
#include "base/ipc/socket_pair.hpp"
#include "stack/segment/attachment.hpp"
#include "stack/session/session_server.hpp"
#include "stack/session/testing/fake_tcp.hpp"
#include "stack/session/testing/local_stack.hpp"

namespace catena::stack {
namespace {

using hostcopy::testing::FaultyEngine;
using hostcopy::testing::FaultyEngineScript;
using testing::FakeTcp;
using testing::LocalStack;

constexpr SegmentShape kShape{.sessions = 8, .rx_bytes = 4096, .tx_bytes = 64 * 1024};
constexpr std::uint16_t kPort = LocalStack::kPort;

using Random = std::independent_bits_engine<std::mt19937, 32, std::uint32_t>;

std::byte byte_of(std::size_t stream, std::size_t at) {
  return static_cast<std::byte>((stream * 131 + at * 7 + (at >> 9U)) & 0xFFU);
}

/// Accepts all connections that wait.
std::vector<catena_session> accept_all(Attachment& attachment) {
  std::array<catena_event, 16> events{};
  while (attachment.events(events) > 0) {
  }
  std::vector<catena_session> sessions;
  for (catena_session session = 0; attachment.accept(kPort, session) == 0;) {
    sessions.push_back(session);
  }
  return sessions;
}

/// An application that sends a stream of bytes in each session, and closes.
class Sender {
 public:
  explicit Sender(Attachment& attachment, Random& random) : attachment_(&attachment), random_(&random) {}

  void step() {
    std::array<catena_event, 4> events{};
    const int count = attachment_->events(events);
    for (int i = 0; i < count; ++i) {
      for (catena_session session = 0; (events[i].events & CATENA_ACCEPTABLE) != 0U;) {
        if (attachment_->accept(kPort, session) != 0) {
          break;
        }
        sizes_.push_back((*random_)() % 300'000);
        streams_.push_back({.session = session, .number = sizes_.size() - 1, .bytes = sizes_.back()});
      }
    }
    for (Stream& stream : streams_) {
      go_on(stream);
    }
    std::erase_if(streams_, [](Stream const& stream) { return stream.is_over; });
  }
  bool is_idle() const { return streams_.empty(); }
  /// The bytes of each stream, in the order in which they began.
  std::vector<std::size_t> const& sizes() const { return sizes_; }

 private:
  struct Stream {
    catena_session session;
    std::size_t number;
    std::size_t bytes;
    std::size_t sent = 0;
    bool is_over = false;
  };
  void go_on(Stream& stream) {
    Attachment::Session* const session = attachment_->find(stream.session);
    if (session == nullptr || (attachment_->state(*session) & CATENA_RESET) != 0U) {
      stream.is_over = true;
      if (session != nullptr) {
        attachment_->end(*session, AppLine::kClose);
      }
      return;
    }
    while (stream.sent < stream.bytes) {
      const std::span<std::byte> space = attachment_->reserve(*session);
      if (space.empty()) {
        return;
      }
      const std::size_t count =
          std::min({space.size(), stream.bytes - stream.sent, std::size_t{1} + (*random_)() % 70'000});
      for (std::size_t i = 0; i < count; ++i) {
        space[i] = byte_of(stream.number, stream.sent + i);
      }
      attachment_->commit(*session, static_cast<std::uint32_t>(count));
      stream.sent += count;
      if ((*random_)() % 4 == 0) {
        return;
      }
    }
    attachment_->end(*session, AppLine::kClose);
    stream.is_over = true;
  }

  Attachment* attachment_;
  Random* random_;
  std::vector<Stream> streams_;
  std::vector<std::size_t> sizes_;
};

/// The part of the stream that arrived is right; all of it unless the connection was reset.
void expect_stream(FakeTcp::Connection const& connection, std::size_t number, std::string const& about) {
  for (std::size_t i = 0; i < connection.arrived.size(); ++i) {
    ASSERT_EQ(connection.arrived[i], byte_of(number, i)) << about << ", stream " << number << ", byte " << i;
  }
}

struct Engines {
  std::vector<std::unique_ptr<FaultyEngineScript>> scripts;
  std::vector<hostcopy::AcceleratorPool::Member> members;
};

Engines random_engines(Random& random) {
  Engines engines;
  for (std::uint32_t i = random() % 3; i > 0; --i) {
    auto script = std::make_unique<FaultyEngineScript>();
    script->seed = static_cast<std::uint32_t>(random());
    script->mean_polls = 1 + random() % 4;
    script->is_ordered = random() % 2 == 0;
    script->max_jobs = 1 + random() % 16;
    script->fails_after = random() % 3 == 0 ? random() % 20 : FaultyEngineScript::kNever;
    script->lies_after = random() % 4 == 0 ? 1 + random() % 20 : FaultyEngineScript::kNever;
    script->lie = static_cast<FaultyEngineScript::Lie>(random() % 4);
    engines.members.push_back({.engine = std::make_unique<FaultyEngine>(*script), .node = -1});
    engines.scripts.push_back(std::move(script));
  }
  return engines;
}

class Modes : public ::testing::TestWithParam<CopyMode> {
 protected:
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }
};

void run_schedule(CopyMode mode, std::uint32_t seed) {
  const std::string about = fmt::format("{}, seed {}", to_string(mode), seed);
  Random random(seed);
  Engines engines = random_engines(random);
  TxOptions options{.mode = mode, .threshold = static_cast<std::uint32_t>(random() % 4000), .poll_at = 2};
  options.poll_every = std::chrono::nanoseconds(random() % 3 * 1000);
  LocalStack stack(options, kShape, std::move(engines.members), seed);
  const std::unique_ptr<Attachment> attachment = stack.attach();
  for (auto const& script : engines.scripts) {
    if (random() % 4 == 0) {
      const std::size_t bytes = stack.last_segment().size();
      script->illegal_memory = stack.last_segment().subspan(random() % bytes);
      script->with_illegal = static_cast<FaultyEngineScript::Illegal>(random() % 3);
    }
  }
  ASSERT_EQ(stack.listen(*attachment), 0);
  Sender sender(*attachment, random);
  std::vector<std::size_t> streams;  // by connection
  constexpr std::size_t kConnections = 12;
  const auto is_over = [&] {
    return stack.tcp.all().size() >= kConnections && sender.is_idle() &&
           std::ranges::all_of(stack.tcp.all(), [](auto const& each) { return each.is_over; });
  };
  for (int round = 0; !is_over(); ++round) {
    ASSERT_LT(round, 1'000'000) << about << ": it hangs";
    if (stack.tcp.all().size() < kConnections && random() % 4 == 0 && stack.tcp.connect(kPort)) {
      streams.resize(stack.tcp.all().size(), static_cast<std::size_t>(-1));
      streams.back() = sender.sizes().size();  // in order: accepted before the next one
      stack.poll();
      sender.step();
    }
    sender.step();
    stack.poll();
    for (std::size_t i = 0; i < stack.tcp.all().size(); ++i) {
      if (!stack.tcp.all()[i].is_over && random() % 2 == 0) {
        if (random() % 400 == 0) {
          stack.tcp.reset_as_peer(i);
        } else {
          stack.tcp.acknowledge(i, 1 + random() % 100'000);
        }
      }
    }
  }
  for (int i = 0; i < 1000; ++i) {
    stack.poll();  // what engines still hold
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (streams[i] != static_cast<std::size_t>(-1)) {
      FakeTcp::Connection const& connection = stack.tcp.all()[i];
      expect_stream(connection, streams[i], about);
      if (!connection.is_reset) {
        EXPECT_EQ(connection.arrived.size(), sender.sizes()[streams[i]]) << about;
      }
    }
  }
  EXPECT_EQ(stack.tcp.faults, 0U) << about;
  EXPECT_EQ(stack.buffers_in_use(), 0U) << about;
}

TEST_P(Modes, bring_each_byte_once_and_in_order_whatever_engines_do) {
  const char* const wish = std::getenv("CATENA_SESSION_SCHEDULES");
  const auto schedules = static_cast<std::uint32_t>(wish == nullptr ? 20 : std::strtoul(wish, nullptr, 10));
  for (std::uint32_t seed = 1; seed <= schedules && !HasFatalFailure(); ++seed) {
    run_schedule(GetParam(), seed);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Modes,
                         ::testing::Values(CopyMode::kReference, CopyMode::kCpu, CopyMode::kSync, CopyMode::kAsync,
                                           CopyMode::kFull),
                         [](auto const& of) { return std::string(to_string(of.param)); });

class Sessions : public ::testing::Test {
 protected:
  explicit Sessions(TxOptions const& options = {.mode = CopyMode::kCpu},
                    std::vector<hostcopy::AcceleratorPool::Member> engines = {})
      : stack_(options, kShape, std::move(engines), 1) {}
  /// An accepted session.
  Attachment::Session& accept(Attachment& attachment) {
    EXPECT_TRUE(stack_.tcp.connect(kPort));
    stack_.poll();
    std::array<catena_event, 8> events{};
    EXPECT_GE(attachment.events(events), 1);
    EXPECT_EQ(attachment.accept(kPort, last_), 0);
    return *attachment.find(last_);
  }

  /// Takes received bytes, up to the FIFO's end. Their number.
  static std::size_t take_bytes(Attachment& attachment, Attachment::Session& session) {
    const std::size_t bytes = attachment.peek(session).size();
    attachment.consume(session, static_cast<std::uint32_t>(bytes));
    return bytes;
  }

  /// Until the server, which looks at times, has seen something.
  template <typename Condition>
  void poll_until(Condition const& condition) {
    for (int i = 0; i < 60 && !condition(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      stack_.poll();
    }
  }

  LocalStack stack_;
  catena_session last_ = 0;
};

TEST_F(Sessions, received_bytes_wrap_and_are_credited_as_they_are_consumed) {
  const auto attachment = stack_.attach();
  ASSERT_EQ(stack_.listen(*attachment), 0);
  Attachment::Session& session = accept(*attachment);
  std::size_t sent = 0;
  std::size_t seen = 0;
  while (seen < 20'000) {
    std::array<std::byte, 1000> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = byte_of(1, sent + i);
    }
    const std::size_t free = kShape.rx_bytes - (sent - seen);
    ASSERT_EQ(stack_.tcp.send(0, bytes), free >= bytes.size());
    sent += free >= bytes.size() ? bytes.size() : 0;
    if (free < bytes.size()) {
      const std::span<const std::byte> piece = attachment->peek(session);
      for (std::size_t i = 0; i < piece.size(); ++i) {
        ASSERT_EQ(piece[i], byte_of(1, seen + i));
      }
      seen += piece.size();
      attachment->consume(session, static_cast<std::uint32_t>(piece.size()));
      stack_.poll();
    }
  }
  EXPECT_GE(stack_.tcp.all()[0].credited + kShape.rx_bytes / 4, seen);
}

TEST_F(Sessions, connections_are_dealt_in_turn_to_those_that_listen) {
  const auto first = stack_.attach();
  const auto second = stack_.attach();
  ASSERT_EQ(stack_.listen(*first), 0);
  ASSERT_EQ(stack_.listen(*second), 0);
  EXPECT_EQ(stack_.listen(*first), -EADDRINUSE);
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(stack_.tcp.connect(kPort));
  }
  stack_.poll();
  for (auto const& attachment : {first.get(), second.get()}) {
    std::array<catena_event, 8> events{};
    attachment->events(events);
    catena_session session = 0;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(attachment->accept(kPort, session), 0);
    }
    EXPECT_EQ(attachment->accept(kPort, session), -EAGAIN);
  }
  EXPECT_FALSE(stack_.tcp.connect(kPort + 1));
}

TEST_F(Sessions, an_application_that_ends_loses_its_own_connections_alone) {
  const auto stays = stack_.attach();
  auto goes = stack_.attach();
  ASSERT_EQ(stack_.listen(*stays), 0);
  ASSERT_EQ(stack_.listen(*goes), 0);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(stack_.tcp.connect(kPort));
  }
  accept_all(*goes);
  ASSERT_TRUE(stack_.tcp.connect(kPort));
  ASSERT_TRUE(stack_.tcp.connect(kPort)) << "which it does not accept";
  goes.reset();
  while (stack_.server.applications() == 2) {
    stack_.poll();
  }
  EXPECT_EQ(std::ranges::count_if(stack_.tcp.all(), [](auto const& each) { return each.is_reset; }), 2);
  EXPECT_EQ(accept_all(*stays).size(), 4U);
  EXPECT_TRUE(stack_.tcp.connect(kPort)) << "to the one that is left";
  EXPECT_EQ(stack_.tcp.listeners, 1);
}

TEST_F(Sessions, connections_that_wait_go_to_others_that_listen_with_their_bytes) {
  const auto stays = stack_.attach();
  const auto goes = stack_.attach();
  ASSERT_EQ(stack_.listen(*stays), 0);
  ASSERT_EQ(stack_.listen(*goes), 0);
  const std::vector<std::byte> request(3000, std::byte{7});
  for (std::size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(stack_.tcp.connect(kPort));
    ASSERT_TRUE(stack_.tcp.send(i, request));
  }
  stack_.tcp.close_as_peer(0);
  stack_.tcp.close_as_peer(1);
  std::array<catena_event, 1> event{};
  ASSERT_EQ(goes->events(event), 1);  // it knows one of its two
  ASSERT_EQ(stack_.unlisten(*goes), 0);
  goes->events(event);
  stack_.poll();
  for (const catena_session session : accept_all(*stays)) {
    Attachment::Session const& found = *stays->find(session);
    EXPECT_TRUE(std::ranges::equal(stays->peek(found), request));
  }
  EXPECT_EQ(std::ranges::count_if(stack_.tcp.all(), [](auto const& each) { return each.is_reset; }), 0);
  ASSERT_EQ(stack_.unlisten(*stays), 0);
  ASSERT_EQ(stack_.tcp.listeners, 0);
}

TEST_F(Sessions, the_last_that_listens_resets_what_waits) {
  const auto attachment = stack_.attach();
  ASSERT_EQ(stack_.listen(*attachment), 0);
  ASSERT_TRUE(stack_.tcp.connect(kPort));
  std::array<catena_event, 1> event{};
  ASSERT_EQ(attachment->events(event), 1);
  ASSERT_EQ(stack_.unlisten(*attachment), 0);
  stack_.poll();
  EXPECT_TRUE(stack_.tcp.all()[0].is_reset);
}

TEST_F(Sessions, closing_sends_the_rest_and_then_the_fin) {
  const auto attachment = stack_.attach();
  ASSERT_EQ(stack_.listen(*attachment), 0);
  Attachment::Session& session = accept(*attachment);
  std::ranges::fill(attachment->reserve(session).first(5000), std::byte{7});
  attachment->commit(session, 5000);
  attachment->end(session, AppLine::kClose);
  EXPECT_EQ(attachment->find(last_), nullptr);
  while (stack_.tcp.all()[0].written < 5000) {
    stack_.poll();
  }
  stack_.poll();
  EXPECT_TRUE(stack_.tcp.all()[0].has_fin) << "with the last bytes, not after their acknowledgement";
  EXPECT_FALSE(stack_.tcp.all()[0].is_over);
  stack_.tcp.acknowledge(0, 5000);
  stack_.poll();
  EXPECT_TRUE(stack_.tcp.all()[0].is_over);
  EXPECT_FALSE(stack_.tcp.all()[0].is_reset);
  EXPECT_EQ(stack_.buffers_in_use(), 0U);
}

TEST_F(Sessions, a_reset_one_keeps_its_received_bytes_until_it_is_closed) {
  const auto attachment = stack_.attach();
  ASSERT_EQ(stack_.listen(*attachment), 0);
  Attachment::Session& session = accept(*attachment);
  ASSERT_TRUE(stack_.tcp.send(0, std::array{std::byte{1}, std::byte{2}}));
  stack_.tcp.reset_as_peer(0);
  EXPECT_NE(attachment->state(session) & CATENA_RESET, 0U);
  EXPECT_EQ(attachment->peek(session).size(), 2U);
  for (std::uint32_t i = 0; i < kShape.sessions; ++i) {
    EXPECT_EQ(stack_.tcp.connect(kPort), i + 1 < kShape.sessions) << "its slot is taken until then";
  }
  attachment->end(session, AppLine::kClose);
  stack_.poll();
  EXPECT_TRUE(stack_.tcp.connect(kPort));
}

TEST_F(Sessions, wrong_numbers_of_a_session_cost_that_session) {
  const auto attachment = stack_.attach();
  const auto other = stack_.attach();
  ASSERT_EQ(stack_.listen(*attachment), 0);
  for (const auto& spoil : std::initializer_list<void (*)(AppLine&)>{
           [](AppLine& line) { line.committed = kShape.tx_bytes + 1; }, [](AppLine& line) { line.consumed = 1; },
           [](AppLine& line) { line.committed = 0x80000000; }, [](AppLine& line) { line.consumed = 0xFFFFFFFF; }}) {
    Attachment::Session& bad = accept(*attachment);
    const catena_session number = last_;
    Attachment::Session& good = accept(*attachment);
    spoil(attachment->segment().app_line(bad.slot));
    attachment->commit(good, 10);
    attachment->shutdown(bad);
    stack_.poll();
    EXPECT_NE(attachment->state(*attachment->find(number)) & CATENA_RESET, 0U);
    EXPECT_EQ(attachment->state(good) & CATENA_RESET, 0U);
    attachment->end(bad, AppLine::kClose);
    attachment->end(good, AppLine::kAbort);
    stack_.poll();
  }
  EXPECT_EQ(stack_.server.counters().violations, 4U);
  EXPECT_EQ(stack_.server.applications(), 2U);
}

TEST_F(Sessions, an_application_that_ends_is_noticed_whatever_it_left_in_its_socket) {
  auto goes = stack_.attach();
  const auto stays = stack_.attach();
  ASSERT_EQ(stack_.listen(*goes), 0);
  accept(*goes);
  // a wake-up that a busy stack has not read, or any number of them
  ASSERT_EQ(::send(goes->descriptor(), "x", 1, MSG_NOSIGNAL), 1);
  goes.reset();
  ASSERT_EQ(stack_.listen(*stays), 0);
  for (int i = 0; i < 8; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it looks at times
    stack_.poll();
  }
  EXPECT_EQ(stack_.server.applications(), 1U);
  EXPECT_TRUE(stack_.tcp.all()[0].is_reset);
}

/// Descriptors that were sent and not read stay open: of its own end, too.
TEST_F(Sessions, an_application_that_sends_its_own_socket_and_ends_is_noticed) {
  auto goes = stack_.attach();
  const int own = goes->descriptor();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(ipc::send_frame(own, 0, {}, own), absl::OkStatus());
  }
  goes.reset();
  poll_until([&] { return stack_.server.applications() == 0; });
  EXPECT_EQ(stack_.server.applications(), 0U);
}

TEST_F(Sessions, an_application_that_never_reads_is_waited_for_by_its_own_peers_alone) {
  const auto silent = stack_.attach();
  const auto other = stack_.attach();
  ASSERT_EQ(stack_.listen(*silent, kPort + 1), 0);
  ASSERT_EQ(stack_.listen(*other), 0);
  const std::array<std::byte, 1000> bytes{};
  for (std::size_t i = 0; i < kShape.sessions; ++i) {
    ASSERT_TRUE(stack_.tcp.connect(kPort + 1));
    while (stack_.tcp.send(i, bytes)) {
    }
  }
  EXPECT_FALSE(stack_.tcp.connect(kPort + 1)) << "it has no slot left";
  const std::size_t stream = stack_.tcp.all().size();
  Attachment::Session& session = accept(*other);
  std::size_t sent = 0;
  std::size_t taken = 0;
  while (stack_.tcp.all()[stream].arrived.size() < 300'000) {
    for (std::size_t i = 0; i < kShape.sessions; ++i) {
      EXPECT_FALSE(stack_.tcp.send(i, bytes)) << "TCP offers it again";
    }
    EXPECT_TRUE(stack_.tcp.send(stream, bytes));
    taken += take_bytes(*other, session);
    const std::span<std::byte> space = other->reserve(session);
    for (std::byte& byte : space.first(std::min<std::size_t>(space.size(), 5000))) {
      byte = byte_of(3, sent++);
    }
    other->commit(session, static_cast<std::uint32_t>(std::min<std::size_t>(space.size(), 5000)));
    stack_.poll();
    stack_.tcp.acknowledge(stream, 20'000);
  }
  expect_stream(stack_.tcp.all()[stream], 3, "the other one");
  EXPECT_GT(taken, 50'000U);
  for (std::size_t i = 0; i < kShape.sessions; ++i) {
    EXPECT_FALSE(stack_.tcp.all()[i].is_over);
    EXPECT_EQ(stack_.tcp.all()[i].credited, 0U) << "its window stays closed";
  }
}

/// Else 64 short-lived processes with slow peers would leave room for no other.
TEST_F(Sessions, an_application_that_has_ended_is_none_while_its_peers_get_the_rest) {
  auto goes = stack_.attach();
  ASSERT_EQ(stack_.listen(*goes), 0);
  Attachment::Session& session = accept(*goes);
  goes->commit(session, 1000);
  goes->end(session, AppLine::kClose);
  goes.reset();
  poll_until([&] { return stack_.server.counters().detached == 1; });
  EXPECT_EQ(stack_.server.applications(), 0U);
  EXPECT_FALSE(stack_.tcp.all()[0].is_over);
  stack_.tcp.acknowledge(0, 1000);
  stack_.poll();
  EXPECT_TRUE(stack_.tcp.all()[0].is_over);
  EXPECT_FALSE(stack_.tcp.all()[0].is_reset);
}

/// Each has a segment of its own until then.
TEST_F(Sessions, of_too_many_that_have_ended_the_first_loses_the_rest_of_its_bytes) {
  for (std::uint32_t i = 0; i <= SessionServer::kMostEnding; ++i) {
    auto goes = stack_.attach();
    ASSERT_EQ(stack_.listen(*goes), 0);
    Attachment::Session& session = accept(*goes);
    goes->commit(session, 1000);
    goes->end(session, AppLine::kClose);
    goes.reset();
    poll_until([&] { return stack_.server.counters().detached == i + 1; });
  }
  for (std::size_t i = 0; i <= SessionServer::kMostEnding; ++i) {
    EXPECT_EQ(stack_.tcp.all()[i].is_reset, i == 0) << i;
  }
}

TEST_F(Sessions, an_application_listens_at_so_many_ports_as_its_segment_has_lines) {
  const auto attachment = stack_.attach();
  ListenerLine& line = attachment->segment().listener(0);
  for (std::uint16_t port = 1; port <= SharedSegment::kListeners + 4; ++port) {
    line.port = port;
    line.backlog = 5;
    ++line.request;
    attachment->segment().commands().first(port - 1U)[0] = kShape.sessions;
    attachment->segment().commands().entries(port - 1U) = 1;
    ++attachment->segment().commands_head().pushed;
    stack_.poll();
    EXPECT_EQ(line.error, port <= SharedSegment::kListeners ? 0U : std::uint32_t{ENOSPC}) << port;
  }
  EXPECT_EQ(stack_.tcp.listeners, static_cast<int>(SharedSegment::kListeners));
}

/// The next application would have a connection that sends no more, or bytes in it that are not its own.
TEST_F(Sessions, a_connection_that_was_used_goes_to_no_other_application) {
  const auto attachment = stack_.attach();
  const auto other = stack_.attach();
  ASSERT_EQ(stack_.listen(*attachment), 0);
  Attachment::Session& shut = accept(*attachment);
  Attachment::Session& sent = accept(*attachment);
  attachment->shutdown(shut);
  // positions count modulo 2^32: after so many bytes they are those of a new connection
  constexpr std::uint64_t kRound = std::uint64_t{1} << 32U;
  for (std::uint64_t bytes = 0; bytes < kRound; bytes += kShape.tx_bytes) {
    attachment->commit(sent, kShape.tx_bytes);
    while (attachment->unsent(sent) > 0) {
      stack_.poll();
      if (bytes + kShape.tx_bytes < kRound) {
        stack_.tcp.acknowledge(1, kShape.tx_bytes);
        stack_.tcp.all()[1].arrived.clear();
      }
    }
  }
  ASSERT_EQ(attachment->segment().app_line(sent.slot).committed, 0U);
  ASSERT_EQ(stack_.listen(*other), 0);
  attachment->end(shut, AppLine::kReturn);
  attachment->end(sent, AppLine::kReturn);
  stack_.poll();
  EXPECT_TRUE(stack_.tcp.all()[0].is_reset);
  EXPECT_TRUE(stack_.tcp.all()[1].is_reset);
  EXPECT_TRUE(accept_all(*other).empty());
}

/// A server replaces its workers again and again.
TEST(Engines, copy_for_each_of_many_applications_that_come_and_go) {
  FaultyEngineScript script{.mean_polls = 1, .max_memories = 3};  // the stack's buffers and two applications
  std::vector<hostcopy::AcceleratorPool::Member> members;
  members.push_back({.engine = std::make_unique<FaultyEngine>(script), .node = -1});
  LocalStack stack({.mode = CopyMode::kAsync}, kShape, std::move(members), 1);
  std::unique_ptr<Attachment> last;
  for (std::uint32_t i = 0; i < 20; ++i) {
    std::unique_ptr<Attachment> next = stack.attach();
    last.reset();
    while (stack.server.applications() > 1) {
      stack.poll();
    }
    last = std::move(next);
    ASSERT_EQ(stack.listen(*last), 0);
    ASSERT_TRUE(stack.tcp.connect(kPort));
    stack.poll();
    const std::vector<catena_session> sessions = accept_all(*last);
    ASSERT_EQ(sessions.size(), 1U);
    Attachment::Session& session = *last->find(sessions[0]);
    last->commit(session, 3000);
    last->end(session, AppLine::kClose);
    while (!stack.tcp.all()[i].is_over) {
      stack.poll();
      stack.tcp.acknowledge(i, 3000);
    }
    EXPECT_EQ(stack.accelerator().counters().by_engine, i + 1U);
    EXPECT_EQ(script.memories, 2U);
  }
  EXPECT_EQ(stack.counters().by_cpu, 0U);
}

/// Its copies fail on every engine; each of the first two could be lost for it.
TEST(Engines, an_application_with_illegal_copies_costs_two_of_them_and_others_are_served) {
  using Illegal = FaultyEngineScript::Illegal;
  spdlog::set_level(spdlog::level::off);
  for (const Illegal with_illegal : {Illegal::kRefused, Illegal::kFailed, Illegal::kHalts}) {
    std::array<FaultyEngineScript, 5> scripts;
    std::vector<hostcopy::AcceleratorPool::Member> members;
    for (FaultyEngineScript& script : scripts) {
      script.with_illegal = with_illegal;
      members.push_back({.engine = std::make_unique<FaultyEngine>(script), .node = -1});
    }
    LocalStack stack({.mode = CopyMode::kAsync}, kShape, std::move(members), 1);
    const std::unique_ptr<Attachment> good = stack.attach();
    const std::unique_ptr<Attachment> bad = stack.attach();
    for (FaultyEngineScript& script : scripts) {
      script.illegal_memory = stack.last_segment();
    }
    ASSERT_EQ(stack.listen(*good), 0);
    ASSERT_EQ(stack.listen(*bad, kPort + 1), 0);
    std::size_t reset = 0;
    for (std::size_t round = 0; round < 8; ++round) {
      std::array<std::size_t, 2> connections{};
      for (Attachment* const application : {good.get(), bad.get()}) {
        const std::uint16_t port = application == good.get() ? kPort : kPort + 1;
        connections[application == bad.get()] = stack.tcp.all().size();
        ASSERT_TRUE(stack.tcp.connect(port));
        stack.poll();
        std::array<catena_event, 16> events{};
        while (application->events(events) > 0) {
        }
        catena_session number = 0;
        ASSERT_EQ(application->accept(port, number), 0);
        Attachment::Session& session = *application->find(number);
        for (int piece = 0; piece < 6; ++piece) {
          application->commit(session, 1000);
          stack.poll();
        }
        application->end(session, AppLine::kClose);
      }
      for (const std::size_t connection : connections) {
        while (!stack.tcp.all()[connection].is_over) {
          stack.poll();
          if (!stack.tcp.all()[connection].is_over) {
            stack.tcp.acknowledge(connection, 1000);
          }
        }
      }
      EXPECT_FALSE(stack.tcp.all()[connections[0]].is_reset);
      reset += stack.tcp.all()[connections[1]].is_reset ? 1 : 0;
    }
    EXPECT_EQ(reset, 1U) << "then the CPU makes its copies";
    EXPECT_EQ(stack.server.counters().failed, 1U);
    EXPECT_EQ(stack.server.counters().violations, 0U);
    hostcopy::AcceleratorCounters const& counters = stack.accelerator().counters();
    EXPECT_EQ(counters.quarantined, 1U);
    EXPECT_EQ(counters.losses, with_illegal == Illegal::kHalts ? 2U : 0U);
    EXPECT_GT(counters.by_engine, 8U) << "of the other application";
    EXPECT_EQ(stack.buffers_in_use(), 0U);
  }
  spdlog::set_level(spdlog::level::info);
}

TEST(Engines, a_quarantine_ends_with_its_application) {
  spdlog::set_level(spdlog::level::off);
  std::array<FaultyEngineScript, 2> scripts;
  std::vector<hostcopy::AcceleratorPool::Member> members;
  for (FaultyEngineScript& script : scripts) {
    members.push_back({.engine = std::make_unique<FaultyEngine>(script), .node = -1});
  }
  LocalStack stack({.mode = CopyMode::kAsync}, kShape, std::move(members), 1);
  for (const bool is_illegal : {true, false}) {
    std::unique_ptr<Attachment> application = stack.attach();
    for (FaultyEngineScript& script : scripts) {
      script.illegal_memory = is_illegal ? stack.last_segment() : std::span<std::byte>();
    }
    ASSERT_EQ(stack.listen(*application), 0);
    for (const bool is_first : {true, false}) {
      const std::size_t connection = stack.tcp.all().size();
      ASSERT_TRUE(stack.tcp.connect(kPort));
      stack.poll();
      const std::vector<catena_session> sessions = accept_all(*application);
      ASSERT_EQ(sessions.size(), 1U);
      Attachment::Session& session = *application->find(sessions[0]);
      application->commit(session, 3000);
      application->end(session, AppLine::kClose);
      while (!stack.tcp.all()[connection].is_over) {
        stack.poll();
        if (!stack.tcp.all()[connection].is_over) {
          stack.tcp.acknowledge(connection, 3000);
        }
      }
      EXPECT_EQ(stack.tcp.all()[connection].is_reset, is_illegal && is_first);
    }
    EXPECT_EQ(stack.accelerator().counters().by_engine, is_illegal ? 0U : 2U);
    EXPECT_EQ(stack.accelerator().counters().quarantined, 1U);
    application.reset();
    while (stack.server.applications() > 0) {
      stack.poll();
    }
  }
  spdlog::set_level(spdlog::level::info);
}

/// Of which the first one is lost.
class ThreeEngines {
 protected:
  std::vector<hostcopy::AcceleratorPool::Member> members() {
    std::vector<hostcopy::AcceleratorPool::Member> members;
    for (FaultyEngineScript& script : scripts_) {
      members.push_back({.engine = std::make_unique<FaultyEngine>(script), .node = -1});
    }
    scripts_[0].fails_after = 100;
    return members;
  }

 private:
  std::array<FaultyEngineScript, 3> scripts_;
};

class HostileApplication : protected ThreeEngines, public Sessions, public ::testing::WithParamInterface<CopyMode> {
 protected:
  HostileApplication()
      : Sessions({.mode = GetParam(), .threshold = 1024},
                 uses_engine(GetParam()) ? members() : std::vector<hostcopy::AcceleratorPool::Member>()) {}
};

/// Whatever an application writes anywhere, at any time: another one's stream arrives whole, and all memory is back.
TEST_P(HostileApplication, costs_itself_only_whatever_it_writes_to_shared_memory) {
  Random random(7);
  spdlog::set_level(spdlog::level::off);
  const char* const wish = std::getenv("CATENA_HOSTILE_ROUNDS");
  const int rounds = wish == nullptr ? 60 : std::atoi(wish);
  for (int round = 0; round < rounds; ++round) {
    const auto honest = stack_.attach();
    auto hostile = stack_.attach();
    ASSERT_EQ(stack_.listen(*honest), 0);
    ASSERT_EQ(stack_.listen(*hostile, kPort + 1), 0);
    SharedSegment const& segment = hostile->segment();
    const std::size_t control_bytes = segment.rx(0).data() - reinterpret_cast<std::byte*>(&segment.events_head());
    auto* const control = reinterpret_cast<std::byte*>(&segment.events_head());
    for (int i = 0; i < 6; ++i) {
      stack_.tcp.connect(kPort + 1);
    }
    const std::size_t stream = stack_.tcp.all().size();
    Attachment::Session& session = accept(*honest);
    std::size_t sent = 0;
    while (stack_.tcp.all()[stream].arrived.size() < 100'000) {
      for (int i = 0; i < 8; ++i) {
        // whole words, as ring positions and lines are, and commands that lead to them
        const std::uint32_t word = random() % 3 == 0 ? random() % 64 : random();
        std::memcpy(control + random() % (control_bytes / 4) * 4, &word, sizeof word);
        AppLine& line = segment.app_line(random() % kShape.sessions);
        line.wishes = random() % 8 == 0 ? random() : 0;
        line.committed = random() % 2 == 0 ? random() % 70'000 : random();
      }
      if (random() % 4 == 0) {
        segment.commands_head().pushed.fetch_add(1 + random() % 2);
      }
      const std::span<std::byte> space = honest->reserve(session);
      const std::size_t count = std::min<std::size_t>(space.size(), 5000);
      for (std::size_t i = 0; i < count; ++i) {
        space[i] = byte_of(3, sent + i);
      }
      honest->commit(session, static_cast<std::uint32_t>(count));
      sent += count;
      stack_.poll();
      for (std::size_t i = stream >= 6 ? stream - 6 : 0; i <= stream; ++i) {
        if (!stack_.tcp.all()[i].is_over) {
          stack_.tcp.acknowledge(i, 20'000);
        }
      }
    }
    expect_stream(stack_.tcp.all()[stream], 3, "the honest one");
    ASSERT_EQ(stack_.tcp.faults, 0U);
    honest->end(session, AppLine::kAbort);
    stack_.poll();
    hostile.reset();
    while (stack_.server.applications() > 1) {
      for (std::size_t i = stream >= 6 ? stream - 6 : 0; i <= stream; ++i) {
        if (!stack_.tcp.all()[i].is_over) {
          stack_.tcp.acknowledge(i, 200'000);
        }
      }
      stack_.poll();
    }
    std::byte end{};
    ASSERT_NE(::recv(honest->descriptor(), &end, 1, MSG_PEEK | MSG_DONTWAIT), 0) << "it was not detached";
    ASSERT_EQ(stack_.tcp.connections(), 0U);
    for (int i = 0; i < 1'000'000 && stack_.buffers_in_use() > 0; ++i) {
      stack_.poll();  // what engines still hold
    }
    ASSERT_EQ(stack_.buffers_in_use(), 0U);
    stack_.server.stop();
  }
  EXPECT_EQ(stack_.accelerator().counters().by_engine > 0, uses_engine(GetParam()));
  spdlog::set_level(spdlog::level::info);
}

INSTANTIATE_TEST_SUITE_P(Modes, HostileApplication,
                         ::testing::Values(CopyMode::kReference, CopyMode::kCpu, CopyMode::kSync, CopyMode::kAsync,
                                           CopyMode::kFull),
                         [](auto const& of) { return std::string(to_string(of.param)); });

}  // namespace
}  // namespace catena::stack
