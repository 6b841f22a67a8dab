// SPDX-License-Identifier: Apache-2.0
#include "service/http_server.hpp"

#include "chain/error_list.hpp"
#include "service/caller.hpp"

#include <catena/core/text.hpp>

#include <absl/strings/match.h>
#include <microhttpd.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace catena::service {
namespace {

/// What a connection keeps of a request while its parts come.
struct Parts {
  std::string body;
  std::size_t bytes = 0;  ///< that came, kept or not
  bool is_too_large() const { return bytes > HttpServer::kMaxBodyBytes; }
};

/// A body that is too large is read all the same, so that who sends it gets the answer; but not for ever.
constexpr std::size_t kMaxReadBytes = 4 << 20;

struct ResponseEnd {
  void operator()(MHD_Response* response) const { MHD_destroy_response(response); }
};

MHD_Result answer(MHD_Connection* connection, HttpResponse const& response) {
  // MHD does not write to it: the copy is made before it returns
  const std::unique_ptr<MHD_Response, ResponseEnd> made(MHD_create_response_from_buffer(
      response.body.size(), const_cast<char*>(response.body.data()), MHD_RESPMEM_MUST_COPY));
  if (made == nullptr) {
    return MHD_NO;
  }
  MHD_add_response_header(made.get(), MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type.c_str());
  if (!response.allow.empty()) {
    MHD_add_response_header(made.get(), MHD_HTTP_HEADER_ALLOW, response.allow.c_str());
  }
  return MHD_queue_response(connection, response.status, made.get());
}

HttpResponse too_large() {
  return error_response(
      MHD_HTTP_CONTENT_TOO_LARGE,
      absl::InvalidArgumentError(concat("a request has at most ", HttpServer::kMaxBodyBytes, " bytes")));
}

/// Whether the header says that there is more than is read.
bool says_too_large(MHD_Connection* connection) {
  const char* length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
  constexpr std::size_t kMaxDigits = 9;
  const std::string text = length == nullptr ? std::string() : length;
  return text.size() > kMaxDigits || (!text.empty() && std::strtoul(text.c_str(), nullptr, 10) > kMaxReadBytes);
}

int socket_of(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == nullptr ? -1 : info->connect_fd;
}

/// Of the other end; none for TCP.
std::optional<uid_t> user_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  constexpr uid_t kNobody = -1;
  const bool is_known = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid != kNobody;
  return is_known ? std::optional(peer.uid) : std::nullopt;
}

/// The path of a request's target, which has a scheme and a host in the form for proxies (RFC 9112, section 3.2.2).
std::string path_of(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (!absl::StartsWithIgnoreCase({target.data(), target.size()}, {kScheme.data(), kScheme.size()})) {
    return std::string(target);
  }
  const std::size_t path = target.find('/', kScheme.size());
  return path == std::string_view::npos ? "/" : std::string(target.substr(path));
}

bool may_do_everything(uid_t user) { return is_privileged({user, 0, {}}); }

void forget(void* /*server*/, MHD_Connection* /*connection*/, void** parts, MHD_RequestTerminationCode /*why*/) {
  delete static_cast<Parts*>(*parts);
  *parts = nullptr;
}

void log(void* /*server*/, const char* format, va_list arguments) {
  constexpr std::size_t kMaxText = 512;
  char text[kMaxText];
  if (std::vsnprintf(text, sizeof text, format, arguments) > 0) {
    spdlog::debug("http: {}", text);
  }
}

}  // namespace

/// The C side of the server, which may touch what is its own.
struct Connection {
  static MHD_Result on_part(void* context, MHD_Connection* connection, const char* target, const char* method,
                            const char* /*version*/, const char* bytes, std::size_t* count, void** kept) {
    if (*kept == nullptr) {
      if (says_too_large(connection)) {
        return answer(connection, too_large());
      }
      *kept = new Parts;
      return MHD_YES;
    }
    auto& parts = *static_cast<Parts*>(*kept);
    if (*count == 0) {
      return answer(connection,
                    parts.is_too_large()
                        ? too_large()
                        : respond(*static_cast<HttpServer*>(context),
                                  {method, path_of(target), std::move(parts.body), socket_of(connection), {}}));
    }
    parts.bytes += *count;
    if (parts.bytes > kMaxReadBytes) {
      return MHD_NO;
    }
    if (!parts.is_too_large()) {
      parts.body.append(bytes, *count);
    }
    *count = 0;
    return MHD_YES;
  }

  /// Counts connections by user, who is unknown for TCP: those that are counted keep a `uid_t`.
  static void on_connection(void* context, MHD_Connection* connection, void** kept,
                            MHD_ConnectionNotificationCode what) {
    auto& server = *static_cast<HttpServer*>(context);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
      if (const std::unique_ptr<uid_t> user(static_cast<uid_t*>(*kept)); user != nullptr) {
        server.connections_.remove(*user);
      }
      return;
    }
    const int socket = socket_of(connection);
    const std::optional<uid_t> user = user_of(socket);
    if (!user) {
      return;
    }
    if (server.connections_.add(*user)) {
      *kept = new uid_t(*user);
    } else {
      ::shutdown(socket, SHUT_RDWR);
    }
  }

  static HttpResponse respond(HttpServer& server, HttpRequest request) {
    const bool starts = request.method == "POST" || request.method == "PUT";
    const std::optional<uid_t> user = user_of(request.socket);
    const bool is_counted = starts && user && !may_do_everything(*user);
    ++server.requests_;
    HttpResponse response;
    if (!is_counted || server.starts_.add(*user)) {
      const HangUpWatch::Watched watched = server.watch_->watch(request.socket);
      request.gone = watched.gone();
      response = server.handler_(request);
      if (is_counted) {
        server.starts_.remove(*user);
      }
    } else {
      response =
          error_response(MHD_HTTP_SERVICE_UNAVAILABLE,
                         absl::UnavailableError(concat("too many requests at once: ", HttpServer::kMaxStartsOfUser,
                                                       " of one user may wait, and ", HttpServer::kMaxStarts,
                                                       " of all; end one, or end its wait")));
    }
    --server.requests_;
    return response;
  }
};

HttpResponse error_response(unsigned status, Status const& error) {
  const nlohmann::ordered_json body = {
      {"ok", false}, {"error", std::string(error.message())}, {"errors", chain::errors_of(error)}};
  return {status, body.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"};
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(int listening, Handler handler) {
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(handler)));
  server->listening_ = listening;
  CATENA_ASSIGN_OR_RETURN(server->watch_, HangUpWatch::start());
  constexpr std::size_t kConnectionBytes = 32 << 10;
  server->daemon_ = MHD_start_daemon(
      MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG,
      0, nullptr, nullptr, &Connection::on_part, server.get(),                 //
      MHD_OPTION_EXTERNAL_LOGGER, &log, nullptr,                               //
      MHD_OPTION_LISTEN_SOCKET, listening,                                     //
      MHD_OPTION_CONNECTION_LIMIT, kMaxConnections,                            //
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,                             //
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes,                    //
      MHD_OPTION_NOTIFY_COMPLETED, &forget, nullptr,                           //
      MHD_OPTION_NOTIFY_CONNECTION, &Connection::on_connection, server.get(),  //
      MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,                                    //
      MHD_OPTION_END);
  if (server->daemon_ == nullptr) {
    return absl::ResourceExhaustedError("the HTTP server does not start");
  }
  return server;
}

HttpServer::~HttpServer() { end(); }

void HttpServer::quiesce() {
  if (daemon_ != nullptr) {
    MHD_quiesce_daemon(daemon_);
  }
}

void HttpServer::end() {
  if (daemon_ != nullptr) {
    MHD_stop_daemon(std::exchange(daemon_, nullptr));
  }
  if (listening_ >= 0) {
    ::close(std::exchange(listening_, -1));
  }
}

}  // namespace catena::service
