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
  std::stop_token gone;  ///< asked to stop when the client is gone: nothing is to wait for the answer any more
};

struct HttpResponse {
  unsigned status = 0;
  std::string body;
  std::string content_type = "application/json";
  std::string allow = {};  ///< for 405: the methods that there are
};

/// A small HTTP server: a thread for each connection, of which there are few, with bodies of bounded size and time
/// limits. Thread rule: start() and end() from one thread; the handler is called by many.
class HttpServer {
 public:
  /// Must not throw.
  using Handler = std::function<HttpResponse(HttpRequest const&)>;

  static constexpr std::size_t kMaxBodyBytes = 64 << 10;
  /// More connections wait to be accepted.
  static constexpr unsigned kMaxConnections = 128;
  /// Over a Unix socket; more are closed, so that one user does not keep the others out.
  static constexpr int kMaxConnectionsOfUser = 32;
  /// Of all users but those who may do everything; more are closed.
  static constexpr int kMaxConnectionsOfUsers = 96;
  /// Requests that start something (POST, PUT) and are at work at once, of all those users and of each; more are
  /// answered 503. Such a request may wait for others. GET and DELETE do not, so that users always can look at what
  /// waits, and end it. Who may do everything always gets an answer.
  static constexpr int kMaxStarts = 48;
  static constexpr int kMaxStartsOfUser = 12;
  /// A connection on which nothing comes for so long is closed.
  static constexpr unsigned kIdleSeconds = 10;

  /// Serves a socket that listens, and has it from now on. ResourceExhausted where there is no thread.
  static Result<std::unique_ptr<HttpServer>> start(int listening, Handler handler);
  /// As end().
  ~HttpServer();
  HttpServer(HttpServer const&) = delete;
  HttpServer& operator=(HttpServer const&) = delete;

  /// No new connections are taken.
  void quiesce();
  /// Requests that the handler has not answered yet.
  int requests() const { return requests_; }
  /// Closes all connections. Waits for the handler, which must have nothing that waits for ever.
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

/// {"ok": false, "error": ..., "errors": [...]}, as the commands of `catena` print errors with --json.
HttpResponse error_response(unsigned status, Status const& error);

}  // namespace catena::service
