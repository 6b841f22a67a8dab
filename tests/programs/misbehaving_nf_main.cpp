// SPDX-License-Identifier: Apache-2.0
// A process of NFs that lies, for tests: the type of the last NF says how.
#include "base/ipc/frames.hpp"
#include "base/ipc/mapping.hpp"
#include "pipeline/isolation/channel.hpp"
#include "pipeline/isolation/protocol.hpp"

#include <catena/packet/slot.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace catena::nf_process;
using catena::FileDescriptor;
using catena::ipc::Mapping;
using catena::ipc::receive_frame;

constexpr std::uint32_t kMaxBytes = 64U << 20;

[[noreturn]] void wait_for_ever() {
  for (;;) {
    ::poll(nullptr, 0, -1);
  }
}

struct Ends {
  RingReader in;
  RingWriter out;
};

/// Gives back each unit as it came, after `change` had a look at it.
void work(Channel const& channel, std::function<std::uint32_t(std::span<PacketEntry>, std::uint32_t)> const& change) {
  Ends ends{channel.reader_of_nf(kEventNotifierFd), channel.writer_to_host(kEventNotifierFd)};
  for (;;) {
    const bool is_closed = ends.in.closed() != 0;
    const auto message = ends.in.poll();
    if (!message.ok() || (!message->has_value() && is_closed)) {
      return;
    }
    if (!message->has_value()) {
      pollfd notifier{kEventNotifierFd, POLLIN, 0};
      ::poll(&notifier, 1, 10);
      continue;
    }
    const std::span<PacketEntry> out = ends.out.next();
    std::copy((*message)->begin(), (*message)->end(), out.begin());
    const std::uint32_t count = change(out, static_cast<std::uint32_t>((*message)->size()));
    ends.in.take();
    ends.out.push(count);
    ends.out.wake();
  }
}

/// Takes so many bytes, and ends where there is no more.
/// `protection`: of each piece when it has been written.
void eat(std::size_t bytes, int protection = PROT_READ | PROT_WRITE) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  for (std::size_t eaten = 0; eaten < bytes; eaten += kPiece) {
    void* piece = ::mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) {
      std::_Exit(12);
    }
    std::memset(piece, 1, kPiece);
    ::mprotect(piece, kPiece, protection);
  }
}

void ask_for_file(std::uint32_t output, std::string const& name) {
  if (send(kControlFd, Call::kOpenOutput, to_json(OpenOutput{output, name})).ok()) {
    static_cast<void>(receive_frame(kControlFd, kMaxBytes));
  }
}

using Change = std::function<std::uint32_t(std::span<PacketEntry>, std::uint32_t)>;

/// The slots in which packets cross, once they have come.
std::span<std::byte>& frames() {
  static std::span<std::byte> frames;
  return frames;
}

/// What the process has of a packet's frame behind its headers.
std::span<std::byte> behind_headers(PacketEntry const& entry) {
  constexpr std::size_t kHeaders = 128;  // more than those of the packets that tests send
  const std::size_t slot = std::size_t{entry.slot} * catena::packet::kSlotBytes;
  return frames().subspan(slot + entry.offset + kHeaders, entry.length - kHeaders);
}

std::byte& time_to_live(PacketEntry const& entry) {
  return frames()[std::size_t{entry.slot} * catena::packet::kSlotBytes + entry.offset + 22];
}

/// Writes wherever it can.
std::uint32_t scribble(std::span<PacketEntry> out, std::uint32_t count) {
  for (PacketEntry const& entry : out.first(count)) {
    std::ranges::fill(behind_headers(entry), std::byte{0xee});
    time_to_live(entry) = std::byte{7};
  }
  return count;
}

std::uint32_t set_port(std::span<PacketEntry> out, std::uint32_t count) {
  for (PacketEntry& entry : out.first(count)) {
    entry.port = 1;
  }
  return count;
}

std::map<std::string, Change, std::less<>> const& lies() {
  static const std::map<std::string, Change, std::less<>> kLies{
      {"honest", [](auto /*out*/, auto count) { return count; }},
      {"headers-peek",  // drops where it sees what it should not
       [](auto out, auto count) {
         for (PacketEntry& entry : out.first(count)) {
           if (std::ranges::any_of(behind_headers(entry), [](std::byte byte) { return byte != std::byte{0}; })) {
             entry.verdict = 2;
           }
         }
         return count;
       }},
      {"headers-scribble", scribble},
      {"reads-scribble", scribble},
      {"headers-move",
       [](auto out, auto count) {
         --out[0].length;
         return count;
       }},
      {"wrong-slot",
       [](auto out, auto count) {
         out[0].slot ^= 1;
         return count;
       }},
      {"no-slot",
       [](auto out, auto count) {
         out[0].slot = 0xffffffff;
         return count;
       }},
      {"long-frame",
       [](auto out, auto count) {
         out[count - 1].length = 0xffff;
         return count;
       }},
      {"far-frame",
       [](auto out, auto count) {
         out[0].offset = 2000;
         return count;
       }},
      {"short-frame",  // not even an Ethernet header
       [](auto out, auto count) {
         out[0].length = 13;
         return count;
       }},
      {"no-frame",
       [](auto out, auto count) {
         out[0].length = 0;
         return count;
       }},
      {"bad-verdict",
       [](auto out, auto count) {
         out[0].verdict = 9;
         return count;
       }},
      // of its own it has one, number 2
      {"bad-output",
       [](auto out, auto count) {
         out[0].output = 3;
         return count;
       }},
      {"small-mtu",
       [](auto out, auto count) {
         out[0].mtu = 1;
         return count;
       }},
      // of two NFs, number 2 is none
      {"drop-by-nobody",
       [](auto out, auto count) {
         out[0].verdict = 2;
         out[0].nf = 2;
         return count;
       }},
      {"reply-by-nobody",
       [](auto out, auto count) {
         out[0].verdict = 3;
         out[0].nf = 0xff;
         return count;
       }},
      {"alert-by-nobody",
       [](auto out, auto count) {
         out[0].alerts = 4;
         return count;
       }},
      {"alert-after-a-drop",
       [](auto out, auto count) {
         out[0].verdict = 2;
         out[0].nf = 0;
         out[0].alerts = 2;
         return count;
       }},
      // no lies: the first NF raises an alert for each unit's first packet, which the second drops; it answers the next
      {"both-decide",
       [](auto out, auto count) {
         out[0].verdict = 2;
         out[0].nf = 1;
         out[0].alerts = 1;
         if (count > 1) {
           out[1].verdict = 3;
           out[1].nf = 0;
         }
         return count;
       }},
      {"less", [](auto /*out*/, auto count) { return count - 1; }},
      {"too-many", [](auto /*out*/, auto /*count*/) { return 0x7fffffffU; }},
      {"odd-reason",
       [](auto out, auto count) {
         out[0].verdict = 2;
         out[0].reason = 0xfffe;
         return count;
       }},
      {"exit", [](auto /*out*/, auto count) { return count > 0 ? (std::_Exit(7), count) : count; }},
      {"crash", [](auto /*out*/, auto count) { return count > 0 ? (std::raise(SIGABRT), count) : count; }},
      {"blocking-bell",
       [](auto /*out*/, auto count) {
         ::fcntl(kEventNotifierFd, F_SETFL, 0);
         std::array<char, 4096> rings{};
         while (::recv(kEventNotifierFd, rings.data(), rings.size(), 0) > 0) {
         }
         return count;
       }},
      {"reads-and-sets-the-port", set_port},
      {"sets-the-port", set_port},
      {"asks-for-files",
       [](auto /*out*/, auto count) {
         for (std::uint32_t i = 0; i < 100; ++i) {
           ask_for_file(i, "../../etc/passwd");
         }
         return count;
       }},
      {"writes-unasked",
       [](auto /*out*/, auto count) {
         for (std::uint32_t i = 0; i < 100; ++i) {
           const auto body = with_handle(i, {});
           if (send(kControlFd, Call::kWriteOutput, text_of(body)).ok()) {
             static_cast<void>(receive_frame(kControlFd, kMaxBytes));
           }
         }
         return count;
       }},
      {"writes-too-much",
       [](auto /*out*/, auto count) {
         const std::string much(std::size_t{kMaxFrameBytes} + 1, 'x');
         static_cast<void>(send(kControlFd, Call::kWriteOutput, much));
         static_cast<void>(receive_frame(kControlFd, kMaxBytes));
         return count;
       }},
      {"asks-and-never-reads",
       [](auto /*out*/, auto count) {
         while (send(kControlFd, Call::kOpenOutput, to_json(OpenOutput{0, ""})).ok()) {
         }
         return count;
       }},
      {"eats-memory",
       [](auto /*out*/, auto count) {
         eat(std::size_t{1} << 30);
         return count;
       }},
      {"hides-memory",  // as memory that can only be read does not count as its own
       [](auto /*out*/, auto count) {
         eat(std::size_t{1} << 30, PROT_READ);
         return count;
       }},
      {"ends-early",
       [](auto /*out*/, auto count) {
         static_cast<void>(send(kControlFd, Call::kEnded, to_json(Ended{catena::Status()})));
         return count;
       }},
      {"lie-and-die",
       [](auto out, auto count) {
         out[0].slot ^= 1;
         std::thread([] { std::_Exit(0); }).detach();
         return count;
       }},
      {"hang", [](auto /*out*/, auto /*count*/) -> std::uint32_t { wait_for_ever(); }},
      {"chatter",
       [](auto /*out*/, auto count) {
         for (;;) {
           static_cast<void>(send(kControlFd, Call::kStatistics, to_json(NfStatistics{})));
         }
         return count;
       }},
      {"nonsense",
       [](auto /*out*/, auto count) {
         static_cast<void>(send(kControlFd, static_cast<Call>(99), "{"));
         return count;
       }},
      {"statistics-of-nobody",
       [](auto /*out*/, auto count) {
         static_cast<void>(send(kControlFd, Call::kStatistics, to_json(NfStatistics{1})));
         return count;
       }},
      {"bad-statistics",
       [](auto /*out*/, auto count) {
         static_cast<void>(send(kControlFd, Call::kStatistics, to_json(NfStatistics{0, {{"evil name\n", 1}}})));
         return count;
       }},
  };
  return kLies;
}

/// Of a type: a life that begins later says nothing, and one before ends then. Milliseconds since 1970 follow.
constexpr std::string_view kMuteFrom = "mute-from-";

std::int64_t mute_from(std::string const& type) { return std::strtoll(type.c_str() + kMuteFrom.size(), nullptr, 10); }

std::int64_t now_ms() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

/// What it says that its NFs touch: everything, unless its type names less.
std::string started(std::string const& type, std::size_t nfs) {
  std::vector<Started> started(nfs);
  for (Started& nf : started) {
    nf.is_portable = type.starts_with("hands-") || type.starts_with("begins-");
    if (type.starts_with("headers-")) {
      nf.field_use = {catena::packet::fields(catena::packet::kIpv4Dst),
                      catena::packet::fields(catena::packet::kIpv4Ttl)};
    } else if (type.starts_with("reads-")) {
      nf.field_use = {catena::packet::kFrameFields, catena::packet::kNoFields};
    }
  }
  return to_json(started);
}

/// Asks for memory for a state, and fills what it gets with what nobody wrote.
void send_state(std::size_t nf, std::uint64_t bytes) {
  static_cast<void>(send(kControlFd, Call::kState, to_json(StateOf{nf, bytes})));
  auto frame = receive_frame(kControlFd, kMaxBytes);
  if (frame.ok() && frame->fd) {
    if (auto memory = Mapping::map(std::move(frame->fd), bytes); memory.ok()) {
      std::ranges::fill(memory->bytes(), std::byte{0x55});
    }
  }
}

/// As its type says: when it has had its last packet.
void leave(std::string const& type) {
  if (type == "hands-garbage") {
    send_state(0, 100);
  } else if (type == "hands-twice") {
    send_state(0, 100);
    send_state(0, 100);
  } else if (type == "hands-too-much") {
    send_state(0, kMaxStateBytes + 1);
  } else if (type == "hands-of-nobody") {
    send_state(7, 1);
  } else if (type == "hands-and-hangs") {
    wait_for_ever();
  }
}

/// As its type says: where it is to go on for another one.
void go_on(std::string const& type) {
  for (;;) {
    auto frame = receive_frame(kControlFd, kMaxBytes);
    if (!frame.ok() || type == "begins-never") {
      wait_for_ever();
    }
    if (frame->call != static_cast<std::uint32_t>(Call::kBegin)) {
      continue;
    }
    if (type == "begins-dying") {
      std::_Exit(3);
    }
    const std::string said = type == "begins-with-nonsense" ? R"([{"code":-5,"message":3}])"
                             : type == "begins-for-many"    ? to_json(std::vector<catena::Status>(9))
                             : type == "begins-refusing"
                                 ? to_json(std::vector<catena::Status>{absl::DataLossError("no such\x1b[2J state")})
                                 : to_json(std::vector<catena::Status>(1));
    static_cast<void>(send(kControlFd, Call::kBegun, said));
    return;
  }
}

/// Of a type: for the first packet of each unit there is a line of the NF whose number follows, and the first NF has
/// dropped that packet.
constexpr std::string_view kLineOf = "line-of-";

/// What `work()` does then. The channel has lines.
Change with_line_of(std::uint32_t nf, LineWriter lines) {
  return [nf, lines](auto out, auto count) mutable {
    out[0].verdict = 2;
    out[0].nf = 0;
    const auto verdict = nf == 0 ? catena::packet::Verdict::kDrop : catena::packet::Verdict::kPass;
    lines.write(RecordOf{nf, {out[0].index, verdict, nf == 0 ? 0 : -1, ""}}).status().IgnoreError();
    lines.write(EndOfUnit{}).status().IgnoreError();
    return count;
  };
}

/// Of a type: a thread changes the memory of the channel all the time, wherever that is.
constexpr std::string_view kWritesEverywhere = "writes-everywhere";

/// Numbers that mean something there, or anything at all. Without end.
void write_everywhere(std::span<std::byte> memory) {
  constexpr std::size_t kHeads = 8192;  // what is in front of the messages is little, and hit often
  std::mt19937_64 random(static_cast<std::uint64_t>(now_ms()));
  for (;;) {
    const std::size_t end = random() % 4 == 0 ? kHeads : memory.size();
    const std::size_t at = random() % (end / 2) * 2;
    const std::uint64_t value = random() % 2 == 0 ? random() : random() % 2048;
    std::memcpy(memory.data() + at, &value, std::min<std::size_t>(std::size_t{1} << random() % 4, memory.size() - at));
    if (random() % 1024 == 0) {
      ::usleep(static_cast<unsigned>(random() % 200));
    }
  }
}

/// Of a type: no lie, there is much to say about each unit.
constexpr std::string_view kSaysMuch = "says-much";

Change with_much_said(LineWriter lines) {
  return [lines](auto out, auto count) mutable {
    constexpr int kLines = 32;  // almost twice what the ring holds
    const std::string text = "\"text\":\"" + std::string(60'000, 'x') + "\"";
    const auto say = [&lines](Line const& line) {
      while (!lines.write(line).value_or(true)) {
        ::usleep(100);
      }
    };
    for (int i = 0; i < kLines; ++i) {
      say(RecordOf{0, {out[0].index, catena::packet::Verdict::kPass, -1, text}});
    }
    say(EndOfUnit{});
    return count;
  };
}

/// Claims more messages than there can be, or answers what it was not asked.
void claim(Channel const& channel, std::uint32_t messages) {
  RingWriter out = channel.writer_to_host(kEventNotifierFd);
  for (std::uint32_t i = 0; i < messages; ++i) {
    out.push(1);
  }
  out.wake();
  wait_for_ever();
}

}  // namespace

int main() {
  std::string type;
  std::size_t nfs = 0;
  FileDescriptor channel_fd;
  Mapping raw;  ///< the memory of the channel
  Mapping frame_memory;
  for (;;) {
    auto frame = receive_frame(kControlFd, kMaxBytes);
    if (!frame.ok()) {
      return 1;
    }
    const std::string text(text_of(frame->body));
    switch (static_cast<Call>(frame->call)) {
      case Call::kDescribe: {
        ++nfs;
        const std::string_view begin = R"("type":")";
        const std::size_t at = text.find(begin) + begin.size();
        type = text.substr(at, text.find('"', at) - at);
        if (type.starts_with(kMuteFrom) && now_ms() > mute_from(type)) {
          wait_for_ever();
        }
        const std::string_view said =
            type == "babble"        ? "{\"type\":"
            : type == "other-type"  ? R"({"type":3})"
            : type == "evil-reason" ? R"({"type":"x","help":"","has_kernel":false,"sharding":0,)"
                                      R"("packet_outputs":[],"drop_reasons":[["a\"b\n",""]]})"
            : type == "evil-output" ? R"({"type":"x","help":"","has_kernel":false,"sharding":0,)"
                                      R"("drop_reasons":[],"packet_outputs":[["a\"b\n",""]]})"
                                    : R"({"type":"honest","help":"","has_kernel":false,"sharding":0,)"
                                      R"("packet_outputs":[["own",""]],"drop_reasons":[["own",""]]})";
        static_cast<void>(send(kControlFd, Call::kNfInfo, said));
        break;
      }
      case Call::kFrames:
        if (struct stat status{}; ::fstat(frame->fd.get(), &status) == 0) {
          auto mapped = Mapping::map(std::move(frame->fd), static_cast<std::size_t>(status.st_size));
          frame_memory = mapped.ok() ? std::move(*mapped) : Mapping();
          frames() = frame_memory.bytes();
        }
        break;
      case Call::kChannel:
        channel_fd = std::move(frame->fd);
        if (struct stat status{}; ::fstat(channel_fd.get(), &status) == 0) {
          auto mapped = Mapping::map(FileDescriptor(::dup(channel_fd.get())), static_cast<std::size_t>(status.st_size));
          raw = mapped.ok() ? std::move(*mapped) : Mapping();
        }
        break;
      case Call::kStart: {
        while (type == "wants-devices") {
          static_cast<void>(send(kControlFd, Call::kWantDevice, "auto"));
        }
        if (type == "refuses-with-nothing") {
          static_cast<void>(send(kControlFd, Call::kRefused, R"({"code":0,"message":""})"));
          wait_for_ever();
        }
        const std::string_view begin = R"("unit_packets":)";
        const auto packets =
            static_cast<std::uint32_t>(std::strtoul(text.c_str() + text.find(begin) + begin.size(), nullptr, 10));
        const auto channel = Channel::map(
            std::move(channel_fd), ChannelShape::of(packets, text.find(R"("records":true)") != std::string::npos));
        static_cast<void>(send(kControlFd, Call::kStarted, started(type, nfs + (type == "one-more" ? 1 : 0))));
        if (!channel.ok()) {
          return 1;
        }
        if (text.find(R"("waits_for_state":true)") != std::string::npos) {
          go_on(type);
        }
        if (type == "hands-unasked") {
          send_state(0, 100);
        }
        if (type == "unasked") {
          claim(*channel, 1);
        }
        if (type == "many-lines") {
          LineWriter lines = channel->line_writer();
          while (lines.write(EndOfUnit{}).value_or(false)) {
          }
          claim(*channel, 0);
        }
        if (type == "many-messages") {
          claim(*channel, 1'000'000);
        }
        if (type.starts_with(kMuteFrom)) {
          while (now_ms() <= mute_from(type)) {
            ::usleep(1000);
          }
          return 7;
        }
        if (type.starts_with(kLineOf)) {
          work(*channel, with_line_of(static_cast<std::uint32_t>(type.back() - '0'), channel->line_writer()));
        }
        if (type == kWritesEverywhere) {
          std::thread(write_everywhere, raw.bytes()).detach();
        }
        if (type == kSaysMuch) {
          work(*channel, with_much_said(channel->line_writer()));
        } else {
          const auto lie = lies().find(type);
          work(*channel, lie == lies().end() ? lies().at("honest") : lie->second);
        }
        for (int i = 0; i < 11 && type == "asks-long"; ++i) {
          ::usleep(600'000);
          ask_for_file(0, "");
        }
        leave(type);
        for (std::size_t nf = 0; nf < nfs; ++nf) {
          static_cast<void>(send(kControlFd, Call::kStatistics, to_json(NfStatistics{nf, {}, {"done"}})));
        }
        static_cast<void>(send(kControlFd, Call::kEnded, to_json(Ended{catena::Status()})));
        return 0;
      }
      default:
        break;
    }
  }
}
