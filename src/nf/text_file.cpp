// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/text_file.hpp>

#include "base/core/open_file.hpp"

#include <string_view>
#include <utility>

namespace catena::nf {

std::string plain_text(std::string bytes) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  const std::size_t first = bytes.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  if (first == 0 && bytes.find('\r') == std::string::npos) {
    return bytes;
  }
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t at = first; at < bytes.size(); ++at) {
    const bool ends_line = at + 1 == bytes.size() || bytes[at + 1] == '\n';
    if (bytes[at] != '\r' || !ends_line) {
      text += bytes[at];
    }
  }
  return text;
}

Result<std::string> read_text_file(std::string const& path, std::size_t max_bytes) {
  CATENA_ASSIGN_OR_RETURN(std::string bytes, read_file(path, max_bytes, kRegularFile | kCharacterDevice));
  return plain_text(std::move(bytes));
}

}  // namespace catena::nf
