// SPDX-License-Identifier: Apache-2.0
// A peer of the TCP stack that is connected and then sends what it likes: any frames, and segments with numbers near
// the right ones, so that they get past the first checks. Afterwards an honest peer is served, and the memory is back.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "script.hpp"
#include "stack/tcp/echo_server.hpp"
#include "stack/tcp/memory.hpp"
#include "stack/tcp/raw_peer.hpp"
#include "stack/tcp/tcp.hpp"

namespace {

using namespace catena::stack;
using namespace catena::stack::testing;
using catena::fuzz::Script;

constexpr std::uint16_t kEcho = 7;

class Run {
 public:
  Run() {
    TcpOptions options;
    options.mac = kStackMac;
    options.ipv4 = {catena::packet::Address::of_v4(kStackV4), 24, std::nullopt};
    options.ipv6 = {*catena::packet::Address::parse("fd00:9::2"), 64, std::nullopt};
    options.stall_limit = std::chrono::seconds(5);
    options.max_half_open = 4;
    options.max_closing = 4;
    tcp_ = *Tcp::create(options, wire_, server_);
    server_.attach(*tcp_);
    peer_.emplace(wire_, *tcp_, std::uint16_t{20'000});
    now_ = std::chrono::steady_clock::now();
    if (!tcp_->listen(kEcho, 3).ok()) {
      __builtin_trap();
    }
  }
  void step(Script& script) {
    switch (script.number(1) % 8) {
      case 0:
        tcp_->input(as_frame(script.take(script.number(2))));
        break;
      case 1:
        ticks(script.number(1) % 64);
        break;
      case 2:
        tcp_->input(as_frame(ipv4(kPeerV4, static_cast<std::uint8_t>(script.number(1)), script.take(script.number(1)),
                                  static_cast<std::uint16_t>(script.number(1)))));
        break;
      case 3:
        tcp_->input(as_frame(ipv6(static_cast<std::uint8_t>(script.number(1)), script.take(script.number(1)))));
        break;
      case 4:
        tcp_->input(as_frame(icmpv6([&] {
          Bytes message = script.take(script.number(1));
          message.resize(std::max<std::size_t>(message.size(), 8));
          return message;
        }())));
        break;
      case 5:  // the peer follows what came, with a window that may be closed
        peer_->hear(static_cast<std::uint16_t>(script.number(1) << 4U));
        break;
      default:
        segment(script);
        break;
    }
    server_.work();
  }
  void begin() {
    introduce();
    peer_->connect({2, 4, 5, 0xB4, 4, 2, 3, 3, 7, 1, 1, 1});
  }
  bool serves(std::uint16_t port) {
    introduce();
    RawPeer honest(wire_, *tcp_, port);
    if (!honest.connect()) {
      return false;
    }
    const std::string text(3000, 'h');
    honest.say(text);
    server_.work();
    return honest.hear() == text;
  }

 private:
  void introduce() {
    Bytes arp = ethernet(0x0806);
    put(arp, Bytes{0, 1, 8, 0, 6, 4, 0, 1});
    put(arp, kPeerMac);
    put32(arp, kPeerV4);
    put(arp, Bytes(6));
    put32(arp, kStackV4);
    tcp_->input(as_frame(arp));
  }
  void ticks(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      now_ += Tcp::kTick;
      tcp_->tick(now_);
      server_.work();
    }
  }
  void segment(Script& script) {
    const auto flags = static_cast<std::uint8_t>(script.number(1) ^ kAck);
    const auto relative = [&script] {
      return static_cast<std::uint32_t>(static_cast<std::int32_t>(script.number(3) << 8U) >> 8);
    };
    const std::uint32_t number = peer_->number + relative();
    const std::uint32_t acknowledged = peer_->acknowledged + relative();
    const auto window = static_cast<std::uint16_t>(script.number(2));
    Bytes options = script.take(script.number(1) % 41);
    const std::uint32_t data = script.number(2);
    peer_->send({.flags = flags,
                 .number = number,
                 .acknowledged = acknowledged,
                 .window = window,
                 .options = std::move(options),
                 .data = Bytes(std::min<std::uint32_t>(data, 65'000), 'd')});
    if (number == peer_->number && (flags & (kRst | kSyn)) == 0) {
      peer_->number += std::min<std::uint32_t>(data, 65'000);
    }
  }

  Wire wire_;
  EchoServer server_;
  std::unique_ptr<Tcp> tcp_;
  std::optional<RawPeer> peer_;
  std::chrono::steady_clock::time_point now_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::size_t before = lwip_memory().blocks;
  {
    Run run;
    run.begin();
    Script script({data, size});
    while (!script.is_done()) {
      run.step(script);
    }
    if (!run.serves(61'234) && !run.serves(61'235)) {
      __builtin_trap();
    }
  }
  if (lwip_memory().blocks != before) {
    __builtin_trap();
  }
  return 0;
}
