// SPDX-License-Identifier: Apache-2.0
#include "service/http_server.hpp"

#include "base/core/file_descriptor.hpp"
#include "base/ipc/unix_address.hpp"
#include "service/listen.hpp"

#include <catena/core/testing/scratch_folder.hpp>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace catena::service {
namespace {

/// What is answered to one request over a connection of its own.
std::string ask(std::string const& path, std::string_view request) {
  const FileDescriptor client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = *ipc::unix_address(path);
  EXPECT_EQ(::connect(client.get(), ipc::raw(address), sizeof address), 0);
  EXPECT_EQ(::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  std::string answer;
  std::array<char, 4096> part{};
  for (ssize_t count = 1; count > 0;) {
    count = ::recv(client.get(), part.data(), part.size(), 0);
    answer.append(part.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  return answer;
}

/// Under AddressSanitizer, which says at the end of the program what is still there.
TEST(HttpServer, keeps_nothing_of_connections_that_are_closed) {
  const ScratchFolder folder;
  Result<ControlSocket> socket = ControlSocket::open(folder.path("socket"));
  ASSERT_TRUE(socket.ok()) << socket.status();
  auto server = HttpServer::start(socket->release(), [](HttpRequest const& request) {
    return HttpResponse{200, request.body};
  });
  ASSERT_TRUE(server.ok()) << server.status();
  for (int i = 0; i < 3; ++i) {
    const std::string answer = ask(
        folder.path("socket"), "POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello")) << answer;
  }
  (*server)->end();
}

TEST(HttpServer, takes_the_absolute_form_of_a_target) {  // RFC 9112, section 3.2.2
  const ScratchFolder folder;
  Result<ControlSocket> socket = ControlSocket::open(folder.path("socket"));
  ASSERT_TRUE(socket.ok()) << socket.status();
  auto server = HttpServer::start(socket->release(), [](HttpRequest const& request) {
    return HttpResponse{200, "<" + request.path + ">"};
  });
  ASSERT_TRUE(server.ok()) << server.status();
  for (auto const& [target, path] : std::initializer_list<std::pair<std::string, std::string>>{
           {"/a/b?c", "/a/b"}, {"http://host:1/a/b", "/a/b"}, {"HTTP://host/", "/"}, {"http://host", "/"}}) {
    const std::string answer =
        ask(folder.path("socket"), "GET " + target + " HTTP/1.1\r\nHost: host\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(answer.ends_with("<" + path + ">")) << target << ": " << answer;
  }
  (*server)->end();
}

}  // namespace
}  // namespace catena::service
