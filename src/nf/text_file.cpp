// SPDX-License-Identifier: Apache-2.0
#include <catena/nf/text_file.hpp>

#include "base/core/open_file.hpp"

namespace catena::nf {

Result<std::string> read_text_file(std::string const& path, std::size_t max_bytes) {
  return read_file(path, max_bytes, kRegularFile | kCharacterDevice);
}

}  // namespace catena::nf
