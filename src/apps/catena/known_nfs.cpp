// SPDX-License-Identifier: Apache-2.0
#include "apps/catena/known_nfs.hpp"

#include "nf/plugins.hpp"

#include <filesystem>
#include <system_error>

namespace catena::cli {
namespace {

/// Where `make install` puts NFs that other projects install: lib/catena/nfs beside the folder of this program.
std::string installed_folder() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : (program.parent_path().parent_path() / "lib" / "catena" / "nfs").string();
}

}  // namespace

Result<nf::Registry> known_nfs(std::string const& nf_path) {
  nf::Registry registry = nf::builtin_nfs();
  std::vector<std::string> folders = nf::split_search_path(nf_path);
  if (std::string installed = installed_folder(); !installed.empty()) {
    folders.push_back(std::move(installed));
  }
  CATENA_RETURN_IF_ERROR(nf::load_plugins(registry, folders));
  return registry;
}

}  // namespace catena::cli
