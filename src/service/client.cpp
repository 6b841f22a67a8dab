// SPDX-License-Identifier: Apache-2.0
#include "service/client.hpp"

#include "service/route.hpp"

#include <catena/core/text.hpp>

#include <curl/curl.h>

#include <cerrno>
#include <memory>

namespace catena::service {
namespace {

struct CurlEnd {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
struct ListEnd {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct TextEnd {
  void operator()(char* text) const { curl_free(text); }
};

std::size_t append(char* bytes, std::size_t size, std::size_t count, void* text) {
  static_cast<std::string*>(text)->append(bytes, size * count);
  return size * count;
}

Status failure(CURL* curl, CURLcode code, std::string const& socket) {
  long error = 0;
  curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &error);
  if (code == CURLE_COULDNT_CONNECT && error == EACCES) {
    return absl::PermissionDeniedError(
        concat(socket, " is not for this user: its group may use it, see `ls -l ", socket, "`"));
  }
  return absl::UnavailableError(
      code == CURLE_COULDNT_CONNECT
          ? concat("no service listens at ", socket, "; start one: catena serve --socket ", socket)
          : concat("the service at ", socket, ": ", curl_easy_strerror(code)));
}

}  // namespace

std::string resource_path(std::string_view path, std::string const& name) {
  constexpr std::string_view kName = "NAME";
  const std::size_t at = path.find(kName);
  if (at == std::string_view::npos) {
    return std::string(path);
  }
  const std::unique_ptr<char, TextEnd> escaped(curl_easy_escape(nullptr, name.data(), static_cast<int>(name.size())));
  return concat(path.substr(0, at), escaped ? escaped.get() : "", path.substr(at + kName.size()));
}

Result<Answer> ask(std::string const& socket, std::string const& method, std::string const& path,
                   std::string const& body) {
  const std::unique_ptr<CURL, CurlEnd> curl(curl_easy_init());
  if (curl == nullptr) {
    return absl::ResourceExhaustedError("libcurl does not start");
  }
  Answer answer;
  const std::unique_ptr<curl_slist, ListEnd> headers(curl_slist_append(nullptr, "Content-Type: application/json"));
  const std::string url = concat("http://catena", path);
  curl_easy_setopt(curl.get(), CURLOPT_UNIX_SOCKET_PATH, socket.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PATH_AS_IS, 1L);  // a chain may be called ".."
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &append);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  if (!body.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
  }
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK) {
    return failure(curl.get(), code, socket);
  }
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

}  // namespace catena::service
