// SPDX-License-Identifier: Apache-2.0
// What an NF's process says, whoever it is: texts of its frames, which are read or refused, and messages in the memory
// and lines in the memory that both ends share, which never reach beyond it.
#include "base/ipc/mapping.hpp"
#include "base/ipc/ring.hpp"
#include "base/ipc/socket_pair.hpp"
#include "pipeline/isolation/channel.hpp"
#include "pipeline/isolation/protocol.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace {

using namespace catena::nf_process;
using catena::FileDescriptor;

std::atomic<std::uint32_t> read_last{};  ///< so that messages are read

void read_texts(std::string_view text) {
  const std::size_t nfs = 1 + text.size() % 3;  // that the process was started with
  static_cast<void>(read_start_request(text));
  static_cast<void>(read_nf_info(text));
  static_cast<void>(read_setup(text));
  static_cast<void>(read_started(text, nfs));
  static_cast<void>(read_ended(text));
  static_cast<void>(read_statistics(text, nfs));
  if (read_error(text).ok()) {
    __builtin_trap();
  }
}

/// The whole memory of a channel as the other end may leave it, and what the reader makes of that.
void read_messages(std::span<const std::byte> bytes) {
  static Channel channel = *Channel::create(ChannelShape::of(16));
  static const std::pair<FileDescriptor, FileDescriptor> notifier = *catena::ipc::make_socket_pair();
  static const auto mapped = [] {
    struct stat status {};
    if (::fstat(channel.fd(), &status) != 0) {
      __builtin_trap();
    }
    return catena::ipc::Mapping::map(FileDescriptor(::dup(channel.fd())), static_cast<std::size_t>(status.st_size));
  }();
  std::fill(mapped->bytes().begin(), mapped->bytes().end(), std::byte{0});
  std::copy_n(bytes.begin(), std::min(bytes.size(), mapped->bytes().size()), mapped->bytes().begin());
  RingReader reader = channel.reader_of_nf(notifier.first.get());
  for (std::uint32_t i = 0; i < 2 * channel.shape().depth; ++i) {
    const auto message = reader.poll();
    if (!message.ok() || !*message) {
      break;
    }
    if ((*message)->size() > channel.shape().unit_packets) {
      __builtin_trap();
    }
    std::uint32_t sum = 0;
    for (PacketEntry const& entry : **message) {
      sum += entry.slot + entry.verdict;
    }
    read_last = sum;
    reader.take();
  }
  catena::ipc::clear_wake_ups(notifier.first.get());
}

/// A ring of lines as the other end may leave it: what is taken from it can be put into a file.
void read_lines(std::span<const std::byte> bytes) {
  static std::vector<std::byte> ring(std::size_t{1} << 12);
  LineRingHead head{};
  std::uint64_t pushed = 0;
  std::memcpy(&pushed, bytes.data(), std::min(bytes.size(), sizeof pushed));
  head.pushed = pushed % (2 * ring.size());
  std::fill(ring.begin(), ring.end(), std::byte{0});
  std::copy_n(bytes.begin(), std::min(bytes.size(), ring.size()), ring.begin());
  LineReader reader(head, ring);
  for (;;) {
    const auto line = reader.next();
    if (!line.ok() || !*line) {
      return;
    }
    if (auto const* record = std::get_if<RecordOf>(&**line);
        record != nullptr && record->line.fields.find('\n') != std::string::npos) {
      __builtin_trap();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span input(data, size);
  const int what = size > 0 ? data[0] % 4 : 1;
  if (what == 0) {
    read_messages(std::as_bytes(input.subspan(1)));
  } else if (what == 2) {
    read_lines(std::as_bytes(input.subspan(1)));
  } else {
    read_texts({reinterpret_cast<const char*>(data), size});
  }
  return 0;
}
