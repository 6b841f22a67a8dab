// SPDX-License-Identifier: Apache-2.0
#include "nf/plugins.hpp"

#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>
#include <catena/nf/plugin.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace catena::nf {

Result<Descriptor const*> load_plugin(Registry& registry, std::string const& path) {
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    return absl::NotFoundError(escaped(concat(path, ": cannot be loaded as a network function: ", dlerror())));
  }
  const auto* plugin = static_cast<Plugin const*>(dlsym(object, kPluginSymbol));
  if (plugin == nullptr) {
    dlclose(object);
    return absl::InvalidArgumentError(concat(escaped(path), ": is no network function: it does not export ",
                                             kPluginSymbol, "; build it with catena_add_nf()"));
  }
  if (plugin->interface != kPluginInterface) {
    Status status = absl::FailedPreconditionError(concat(escaped(path), ": was built against Catena ", plugin->version,
                                                         " (interface ", plugin->interface, "), this is interface ",
                                                         kPluginInterface, ": build it again"));
    dlclose(object);
    return status;
  }
  Descriptor const& descriptor = plugin->descriptor();
  if (Status status = registry.add(descriptor, path); !status.ok()) {
    return Status(status.code(), concat(path, ": ", std::string(status.message())));
  }
  return &descriptor;
}

std::vector<std::string> split_search_path(std::string_view path) {
  std::vector<std::string> folders;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    if (end > 0) {
      folders.emplace_back(path.substr(0, end));
    }
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return folders;
}

Status load_plugins(Registry& registry, std::vector<std::string> const& folders) {
  for (std::string const& folder : folders) {
    std::vector<std::string> files;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      if (entry->path().extension() == ".so") {
        files.push_back(entry->path().string());
      }
    }
    if (error && error != std::errc::no_such_file_or_directory) {
      return absl::NotFoundError(
          concat(escaped(folder), ": cannot be searched for network functions: ", error.message()));
    }
    std::sort(files.begin(), files.end());
    for (std::string const& file : files) {
      CATENA_RETURN_IF_ERROR(load_plugin(registry, file).status());
    }
  }
  return absl::OkStatus();
}

}  // namespace catena::nf
