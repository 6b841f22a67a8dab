// SPDX-License-Identifier: Apache-2.0
#include "stack/sockets/notice.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "stack/sockets/real_calls.hpp"

namespace catena::sockets {
namespace {

struct NoticeText {
  Notice notice;
  char const* text;  ///< with % for the detail
};
constexpr auto kTexts = std::to_array<NoticeText>({
    {Notice::kNoStack, "no stack serves % yet: its ports get connections as soon as one does; start catena stack"},
    {Notice::kAttachRefused,
     "the stack of % refuses this process: run the program as a user with access to its socket"},
    {Notice::kStackFull, "the stack of % has no space for another process: end others, or run the program with fewer"},
    {Notice::kListenRefused, "the stack does not listen at port %: run the program as a user with the right to listen"},
    {Notice::kTooManyListeners, "more listening sockets than a process may have at the stack (%): use fewer"},
    {Notice::kDescriptorTooHigh,
     "a descriptor's number is too high for a connection (%): lower the limit of open files"},
    {Notice::kThread,
     "% in a second thread: connections of the stack belong to the thread of the first accept; run a process per core "
     "in place of threads"},
    {Notice::kDup, "% of a connection of the stack: use its one descriptor, or let the kernel serve this port"},
    {Notice::kDupEpoll,
     "% of an epoll instance with connections of the stack: use its one descriptor, or make an instance for each"},
    {Notice::kOwnNumber, "% to the number of the library's connection to the stack: use another number"},
    {Notice::kPassing,
     "% passes a connection of the stack to another process (SCM_RIGHTS): accept it in the process serving it"},
    {Notice::kFork,
     "% in a child process on a connection of its parent: accept connections in the process serving them"},
    {Notice::kExec,
     "% with sockets of the stack open: the new program would not have them; stop and start it for an upgrade"},
    {Notice::kIoUring, "% does not know connections of the stack: configure the program to use epoll or poll"},
    {Notice::kUnknownCall, "% on a connection of the stack is not available: configure the program not to use it"},
});
static_assert(kTexts.size() == static_cast<std::size_t>(Notice::kUnknownCall) + 1);

std::array<std::atomic<bool>, kTexts.size()> told{};

}  // namespace

void tell(Notice notice, char const* detail, int error) {
  const auto index = static_cast<std::size_t>(notice);
  if (told[index].exchange(true)) {
    return;
  }
  const int kept = errno;
  std::array<char, 512> line{};
  std::size_t used = 0;
  const auto put = [&](std::string_view part) {
    const std::size_t bytes = std::min(part.size(), line.size() - 1 - used);
    std::memcpy(line.data() + used, part.data(), bytes);
    used += bytes;
  };
  const std::string_view text = kTexts[index].text;
  const std::size_t mark = text.find('%');
  put("catena-sockets: ");
  put(text.substr(0, mark));
  if (mark != std::string_view::npos) {
    put(detail);
    put(text.substr(mark + 1));
  }
  if (error != 0) {
    put(" (");
    put(::strerrordesc_np(error));
    put(")");
  }
  line[used++] = '\n';
  [[maybe_unused]] const ssize_t written = real().write(STDERR_FILENO, line.data(), used);
  errno = kept;
}

}  // namespace catena::sockets
