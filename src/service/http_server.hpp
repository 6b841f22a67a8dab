// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "service/hang_up_watch.hpp"
#include "service/user_counts.hpp"

#include <catena/core/status.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

struct MHD_Daemon;

namespace catena::service {

struct HttpRequest {
  std::string method;
  std::string path;
  std::string body;
  int socket = -1;       ///< of the connection
  std::stop_token gone;  ///< stop is requested when the client is gone: nothing may wait for the response any more
};

struct HttpResponse {
  unsigned status = 0;
  std::string body;
  std::string content_type = "application/json";
  std::string allow = {};   ///< for 405: the methods of the resource
  bool is_dry_run = false;  ///< nothing was to be changed, whatever the route
};

/// A small HTTP server: one thread per connection, for few connections, with bodies of bounded size and time limits.
/// Thread rule: start() and end() from one thread; many threads call the handler.
class HttpServer {
 public:
  /// Must not throw.
  using Handler = std::function<HttpResponse(HttpRequest const&)>;

  static constexpr std::size_t kMaxBodyBytes = 64 << 10;
  /// Further connections wait to be accepted.
  static constexpr unsigned kMaxConnections = 128;
  /// Of one user, over a Unix socket; further ones are closed, so that one user does not block the others.
  static constexpr int kMaxConnectionsOfUser = 32;
  /// Of all unprivileged users; further ones are closed.
  static constexpr int kMaxConnectionsOfUsers = 96;
  /// Starting requests (POST, PUT) at work at once, of all unprivileged users and of each; further ones get status 503.
  /// Such a request may wait for others. GET and DELETE do not, so that users can always list pending requests, and end
  /// them. Privileged users always get a response.
  static constexpr int kMaxStarts = 48;
  static constexpr int kMaxStartsOfUser = 12;
  /// A connection without data for this time is closed.
  static constexpr unsigned kIdleSeconds = 10;

  /// Serves a listening socket, and owns it from now on. ResourceExhausted without a thread.
  static Result<std::unique_ptr<HttpServer>> start(int listening, Handler handler);
  /// As end().
  ~HttpServer();
  HttpServer(HttpServer const&) = delete;
  HttpServer& operator=(HttpServer const&) = delete;

  /// Takes no new connections.
  void quiesce();
  /// Requests without a response by the handler yet.
  int requests() const { return requests_; }
  /// Closes all connections. Waits for the handler, which must not wait forever.
  void end();

 private:
  friend struct Connection;
  explicit HttpServer(Handler handler) : handler_(std::move(handler)) {}

  Handler handler_;
  std::atomic<int> requests_{0};
  UserCounts connections_{kMaxConnectionsOfUser, kMaxConnectionsOfUsers};
  UserCounts starts_{kMaxStartsOfUser, kMaxStarts};
  std::unique_ptr<HangUpWatch> watch_;
  int listening_ = -1;
  MHD_Daemon* daemon_ = nullptr;
};

/// {"ok": false, "error": ..., "errors": [...]}, the format of errors of `catena` commands with --json.
HttpResponse error_response(unsigned status, Status const& error);

}  // namespace catena::service
