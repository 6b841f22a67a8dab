// SPDX-License-Identifier: Apache-2.0
// Requests for bodies of mixed sizes, for every configuration of copies and every copy engine of this machine, one that
// fails among them: each body equals what was asked for, and sessions and buffers are all back at the end. Beside
// faulty engines a second application has illegal copies, and is served by the CPU after its first one.
//   CATENA_REQUESTS: of each pair (10,000)
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/hostcopy/testing/faulty_engine.hpp"
#include "io/eal/eal.hpp"
#include "stack/copy/engine_table.hpp"
#include "stack/session/testing/local_stack.hpp"

namespace catena::stack {
namespace {

using hostcopy::testing::FaultyEngine;
using hostcopy::testing::FaultyEngineScript;
using testing::FakeTcp;
using testing::LocalStack;

constexpr SegmentShape kShape{.sessions = 64, .rx_bytes = 4096, .tx_bytes = 64 * 1024};
constexpr std::size_t kPeers = 48;
constexpr std::uint32_t kMostBytes = 256 * 1024;
constexpr std::size_t kPatternBytes = 65'521;  ///< a prime: pieces of one body begin anywhere in it
constexpr const char* kFaulty = "faulty";      ///< of several engines that fail, one after another
constexpr std::size_t kLost = 4;               ///< of these, that are lost
constexpr std::uint16_t kIllegalPort = 81;     ///< of the application whose copies the others refuse

using Random = std::independent_bits_engine<std::mt19937, 32, std::uint32_t>;

/// What a peer sends.
struct Request {
  std::uint32_t bytes;  ///< of the body; at least 1
  std::uint32_t begin;  ///< in the pattern
};

/// The pattern, twice as long as a body.
std::vector<std::byte> const& pattern() {
  static const std::vector<std::byte> kBytes = [] {
    Random random(1);
    std::vector<std::byte> once(kPatternBytes);
    std::ranges::generate(once, [&] { return static_cast<std::byte>(random()); });
    std::vector<std::byte> bytes;
    while (bytes.size() < kMostBytes + kPatternBytes) {
      bytes.insert(bytes.end(), once.begin(), once.end());
    }
    return bytes;
  }();
  return kBytes;
}
std::span<const std::byte> body_of(Request const& request) {
  return std::span(pattern()).subspan(request.begin, request.bytes);
}
/// Most bodies are small, a few fill the FIFO more than once.
Request random_request(Random& random) {
  const std::uint32_t bits = 6 + random() % 11;
  const std::uint32_t most = random() % 512 == 0 ? kMostBytes : 1U << bits;
  return {.bytes = 1 + random() % most, .begin = static_cast<std::uint32_t>(random() % kPatternBytes)};
}

/// An application that answers requests at `port`, one after another in each session.
class Server {
 public:
  Server(Attachment& attachment, std::uint16_t port) : attachment_(&attachment), port_(port) {}

  void step() {
    std::array<catena_event, 64> events{};
    while (attachment_->events(events) > 0) {
    }
    for (catena_session session = 0; attachment_->accept(port_, session) == 0;) {
      open_.push_back({session, {}, 0});
    }
    std::erase_if(open_, [this](Open& open) { return !serve(open); });
  }
  std::size_t sessions() const { return open_.size(); }

 private:
  struct Open {
    catena_session number;
    Request request;
    std::uint32_t left;  ///< bytes of the body
  };
  /// False: the session is closed.
  bool serve(Open& open) {
    Attachment::Session& session = *attachment_->find(open.number);
    for (;;) {
      if (open.left == 0 && !read(session, open)) {
        break;
      }
      const std::span<std::byte> space = attachment_->reserve(session);
      if (space.empty()) {
        break;
      }
      const auto count = std::min(open.left, static_cast<std::uint32_t>(space.size()));
      std::memcpy(space.data(), body_of(open.request).data() + (open.request.bytes - open.left), count);
      attachment_->commit(session, count);
      open.left -= count;
    }
    const std::uint32_t state = attachment_->state(session);
    const bool is_over = (state & CATENA_RESET) != 0 ||
                         ((state & CATENA_PEER_CLOSED) != 0 && open.left == 0 && attachment_->readable(session) == 0);
    if (is_over) {
      attachment_->end(session, AppLine::kClose);
    }
    return !is_over;
  }
  bool read(Attachment::Session& session, Open& open) {
    auto* const to = reinterpret_cast<std::byte*>(&open.request);
    if (attachment_->readable(session) < sizeof(Request)) {
      return false;
    }
    for (std::size_t got = 0; got < sizeof(Request);) {  // the FIFO's end may part it
      const std::span<const std::byte> piece = attachment_->peek(session);
      const std::size_t count = std::min(piece.size(), sizeof(Request) - got);
      std::memcpy(to + got, piece.data(), count);
      attachment_->consume(session, static_cast<std::uint32_t>(count));
      got += count;
    }
    open.left = open.request.bytes;
    return true;
  }

  Attachment* attachment_;
  std::uint16_t port_;
  std::vector<Open> open_;
};

/// The peers of one port, each with one request under way. A peer whose connection is reset connects and asks again.
class Peers {
 public:
  Peers(FakeTcp& tcp, std::uint16_t port, std::size_t peers, std::uint64_t requests, std::uint32_t seed)
      : tcp_(&tcp), port_(port), max_peers_(peers), left_(requests), random_(seed) {}

  void connect() {
    while (peers_.size() < max_peers_ && tcp_->connect(port_)) {
      peers_.push_back({.connection = tcp_->all().size() - 1, .asked = {}});
      ask(peers_.back());
    }
  }
  void step() {
    for (Peer& peer : peers_) {
      FakeTcp::Connection& connection = tcp_->all()[peer.connection];
      if (connection.is_over) {
        ask_again(peer);
        continue;
      }
      tcp_->acknowledge(peer.connection, 1 + random_() % (2 * kMostBytes));
      if (peer.asked.bytes != 0 && connection.arrived.size() >= peer.asked.bytes) {
        wrong += std::ranges::equal(connection.arrived, body_of(peer.asked)) ? 0 : 1;
        ++answered;
        connection.arrived.clear();
        ask(peer);
      }
    }
  }
  bool is_over() const {
    return left_ == 0 && std::ranges::all_of(peers_, [this](Peer const& peer) {
             return peer.asked.bytes == 0 && tcp_->all()[peer.connection].is_over;
           });
  }
  std::uint64_t answered = 0;
  std::uint64_t wrong = 0;
  std::uint64_t resets = 0;

 private:
  struct Peer {
    std::size_t connection;
    Request asked;  ///< without bytes: nothing
  };
  void ask(Peer& peer) {
    if (left_ == 0) {
      peer.asked = {};
      tcp_->close_as_peer(peer.connection);
      return;
    }
    --left_;
    peer.asked = random_request(random_);
    send(peer);
  }
  void ask_again(Peer& peer) {
    if (peer.asked.bytes != 0 && tcp_->connect(port_)) {
      ++resets;
      peer.connection = tcp_->all().size() - 1;
      send(peer);
    }
  }
  void send(Peer const& peer) { EXPECT_TRUE(tcp_->send(peer.connection, std::as_bytes(std::span(&peer.asked, 1)))); }

  FakeTcp* tcp_;
  std::uint16_t port_;
  std::size_t max_peers_;
  std::uint64_t left_;
  Random random_;
  std::vector<Peer> peers_;
};

/// The engines of a case; `scripts` are those of faulty ones.
std::vector<hostcopy::AcceleratorPool::Member> members_of(std::string const& name,
                                                          std::vector<FaultyEngineScript>& scripts) {
  std::vector<hostcopy::AcceleratorPool::Member> members;
  for (FaultyEngineScript& script : scripts) {
    members.push_back({.engine = std::make_unique<FaultyEngine>(script), .node = -1});
  }
  if (name != kFaulty) {
    Result<std::unique_ptr<hostcopy::Engine>> engine = hostcopy::open_engine(name, engine_table());
    EXPECT_TRUE(engine.ok()) << engine.status();
    members.push_back({.engine = *std::move(engine), .node = -1});
  }
  return members;
}

/// kLost engines, of which each fails later than the one before, in another way. Two more stay, and make all copies but
/// the illegal ones.
std::vector<FaultyEngineScript> faults_of(std::string const& name, std::uint64_t requests) {
  std::vector<FaultyEngineScript> scripts(name == kFaulty ? kLost + 2 : 0);
  const auto share = static_cast<std::uint32_t>(requests / 64);
  for (std::uint32_t i = 0; i < scripts.size(); ++i) {
    scripts[i] = {.seed = i + 1, .mean_polls = 1 + i % 3, .is_ordered = i % 2 == 0};
  }
  if (!scripts.empty()) {
    scripts[0].fails_after = share;
    for (std::uint32_t lie = 1; lie <= 3; ++lie) {
      scripts[lie].lies_after = share;
      scripts[lie].lie = static_cast<FaultyEngineScript::Lie>(lie);
    }
  }
  return scripts;
}

struct Case {
  CopyMode mode;
  std::string engine;  ///< empty: none

  std::string name() const {
    std::string text = std::string(to_string(mode)) + (engine.empty() ? "" : "_" + engine);
    std::ranges::replace(text, '-', '_');
    return text;
  }
};
std::ostream& operator<<(std::ostream& to, Case const& of) { return to << of.name(); }

std::vector<Case> cases() {
  std::vector<Case> all{{CopyMode::kReference, ""}, {CopyMode::kCpu, ""}};
  std::vector<std::string> engines{kFaulty};
  for (hostcopy::EngineKind const& kind : engine_table()) {
    engines.emplace_back(kind.name);
  }
  for (std::string const& engine : engines) {
    for (const CopyMode mode : {CopyMode::kSync, CopyMode::kAsync, CopyMode::kFull}) {
      all.push_back({mode, engine});
    }
  }
  return all;
}

class Requests : public ::testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(eal::start(), absl::OkStatus()); }  // for DPDK's engines
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    for (hostcopy::EngineKind const& kind : engine_table()) {
      if (const Status found = kind.name == GetParam().engine ? kind.probe() : absl::OkStatus(); !found.ok()) {
        GTEST_SKIP() << "no such engine here: " << found.message();
      }
    }
  }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }
};

TEST_P(Requests, get_their_bodies) {
  const char* const wish = std::getenv("CATENA_REQUESTS");
  const std::uint64_t requests = wish == nullptr ? 10'000 : std::strtoull(wish, nullptr, 10);
  std::vector<FaultyEngineScript> scripts = faults_of(GetParam().engine, requests);
  const bool is_faulty = !scripts.empty();
  const bool has_engine = !GetParam().engine.empty();
  const hostcopy::AcceleratorOptions accelerator{.patience = std::chrono::seconds(10),
                                                 .busy_limit = FaultyEngineScript::kNever,
                                                 .verify_every = is_faulty ? 1U : 0U};
  LocalStack stack(
      {.mode = GetParam().mode, .threshold = 1024}, kShape,
      has_engine ? members_of(GetParam().engine, scripts) : std::vector<hostcopy::AcceleratorPool::Member>(), 1,
      accelerator);
  const std::unique_ptr<Attachment> attachment = stack.attach();
  const std::unique_ptr<Attachment> illegal = stack.attach();
  for (std::size_t i = kLost; i < scripts.size(); ++i) {
    scripts[i].illegal_memory = stack.last_segment();
    scripts[i].with_illegal = GetParam().mode == CopyMode::kSync ? FaultyEngineScript::Illegal::kRefused
                                                                 : FaultyEngineScript::Illegal::kFailed;
  }
  ASSERT_EQ(stack.listen(*attachment), 0);
  ASSERT_EQ(stack.listen(*illegal, kIllegalPort), 0);
  Server server(*attachment, LocalStack::kPort);
  Server illegal_server(*illegal, kIllegalPort);
  Peers peers(stack.tcp, LocalStack::kPort, kPeers, requests, 2);
  const std::uint64_t illegal_requests = is_faulty ? requests / 8 : 0;
  Peers illegal_peers(stack.tcp, kIllegalPort, is_faulty ? kPeers / 12 : 0, illegal_requests, 3);
  const auto is_over = [&] {
    return peers.is_over() && illegal_peers.is_over() && server.sessions() + illegal_server.sessions() == 0;
  };
  for (std::uint64_t round = 0; !is_over(); ++round) {
    ASSERT_LT(round, 1000 * requests) << "it hangs after " << peers.answered << " answers";
    peers.connect();
    illegal_peers.connect();
    stack.poll();
    server.step();
    illegal_server.step();
    stack.poll();
    peers.step();
    illegal_peers.step();
  }
  for (int i = 0; i < 1000; ++i) {
    stack.poll();  // what engines still hold
  }
  EXPECT_EQ(peers.answered, requests);
  EXPECT_EQ(peers.wrong + illegal_peers.wrong, 0U);
  EXPECT_EQ(peers.resets, 0U);
  EXPECT_EQ(illegal_peers.answered, illegal_requests) << "its copies are the CPU's after the first illegal one";
  EXPECT_EQ(illegal_peers.resets > 0, is_faulty);
  EXPECT_EQ(stack.server.counters().failed, illegal_peers.resets);
  EXPECT_EQ(stack.tcp.faults, 0U);
  EXPECT_EQ(stack.tcp.connections(), 0U);
  EXPECT_EQ(stack.buffers_in_use(), 0U);
  if (has_engine) {
    // but in this mode, the CPU makes what a slow engine has no room for
    const std::uint64_t least = GetParam().mode == CopyMode::kSync ? requests / 16 : 0;
    EXPECT_GT(stack.accelerator().counters().by_engine, least);
    EXPECT_EQ(stack.accelerator().counters().losses, is_faulty ? kLost : 0U);
    EXPECT_EQ(stack.accelerator().counters().quarantined, is_faulty ? 1U : 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Requests, ::testing::ValuesIn(cases()), [](auto const& of) { return of.param.name(); });

}  // namespace
}  // namespace catena::stack
