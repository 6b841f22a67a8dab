// SPDX-License-Identifier: Apache-2.0
#include "chain/isolation_keys.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace catena::chain {
namespace {

Status read_container(FileSection& section, NfConfig& nf) {
  CATENA_ASSIGN_OR_RETURN(std::string named, section.text("container"));
  named = (std::filesystem::path(section.config().file()).parent_path() / named).string();
  CATENA_RETURN_IF_ERROR(section.config().check_named("container", named));
  std::error_code error;
  if (!std::filesystem::is_directory(named, error)) {
    return section.config().error("container",
                                  concat("'container': ", named, " is no folder; unpack the image into one"));
  }
  nf.container = std::filesystem::canonical(named, error).string();
  if (nf.container.empty() || nf.container == "/") {
    return section.config().error(
        "container", concat("'container': ", named, " is this machine's own root; write `isolation: process`"));
  }
  return absl::OkStatus();
}

/// What NFs of a group say of the process that they share is the same; `first`: the first of them.
Status check_agrees(FileSection& section, NfConfig const& nf, NfConfig const& first) {
  const auto differs = [&](const char* key, auto const& own, auto const& of_first, std::string const& write) {
    const std::string what = section.has(key) ? concat("'", key, "' is ", own) : concat("no '", key, "'");
    return section.config().error(section.has(key) ? key : "group",
                                  concat(what, ", and NF '", first.name, "' of the same group '", nf.group, "' has ",
                                         of_first, "; write ", write, " at each NF of the group"));
  };
  if (nf.memory_mb != first.memory_mb) {
    return differs("memory_mb", nf.memory_mb, first.memory_mb, concat("`memory_mb: ", first.memory_mb, "`"));
  }
  if (nf.cpus != first.cpus) {
    return differs("cpus", nf.cpus, first.cpus, concat("`cpus: ", first.cpus, "`"));
  }
  if (nf.container != first.container) {
    return first.container.empty()
               ? differs("container", nf.container, "none", "the same `container`, or no `container`,")
               : differs("container", nf.container, first.container, concat("`container: ", first.container, "`"));
  }
  return absl::OkStatus();
}

/// `before`: the NFs before it in the chain.
Status read_group(FileSection& section, std::vector<NfConfig> const& before, NfConfig& nf) {
  if (!section.has("group")) {
    return absl::OkStatus();
  }
  const auto first = std::ranges::find(before, nf.group, &NfConfig::group);
  if (first == before.end()) {
    return absl::OkStatus();
  }
  if (before.back().group != nf.group) {
    return section.config().error(
        "group", concat("'group' is ", nf.group, ", as for NF '", first->name, "', and '", before.back().name,
                        "' is between them; NFs of one process must be adjacent in the chain: move this one next to '",
                        first->name, "', or write another name"));
  }
  if (static_cast<std::size_t>(before.end() - first) == kMaxGroupNfs) {
    return section.config().error("group", concat("'group' is ", nf.group, ", as for ", kMaxGroupNfs,
                                                  " NFs before; a process has no room for more: write another name"));
  }
  return check_agrees(section, nf, *first);
}

/// What a process is to have: a section of `isolation`.
Status read_process(FileSection section, std::vector<NfConfig> const& before, NfConfig& nf) {
  nf.isolation = Isolation::kProcess;
  CATENA_RETURN_IF_ERROR(section.read_into(nf));
  if (section.has("container")) {
    CATENA_RETURN_IF_ERROR(read_container(section, nf));
  }
  return read_group(section, before, nf);
}

Status read_writes(FileSection& entry, NfConfig& nf) {
  if (!entry.has("writes")) {
    return absl::OkStatus();
  }
  if (!entry.has("plugin")) {
    return entry.config().error(
        "writes", concat("'writes' is for a plugin, and the outputs of a ", nf.type.empty() ? "NF" : nf.type,
                         " come from its configuration: leave it out"));
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<FileSection> sections, entry.sections("writes"));
  for (FileSection& section : sections) {
    nf::Config& named = section.config();
    CATENA_RETURN_IF_ERROR(section.has("file")       ? named.output_path("file").status()
                           : section.has("folder")   ? named.output_folder("folder", "").status()
                           : section.has("receiver") ? named.receiver("receiver").status()
                                                     : absl::OkStatus());
    nf.writes.push_back(section.config());
  }
  return absl::OkStatus();
}

}  // namespace

Status read_isolation(FileSection& entry, std::vector<NfConfig> const& before, NfConfig& nf) {
  const bool is_plugin = entry.has("plugin");
  nf.isolation = is_plugin ? Isolation::kProcess : Isolation::kOfRun;
  if (!entry.has("isolation")) {
    return absl::OkStatus();
  }
  if (!entry.is_word("isolation")) {
    CATENA_ASSIGN_OR_RETURN(FileSection section, entry.section("isolation"));
    return read_process(std::move(section), before, nf);
  }
  CATENA_ASSIGN_OR_RETURN(const std::string word, entry.text("isolation"));
  if (is_plugin && word == "none") {
    return entry.config().error("isolation",
                                "'isolation' is none, and a plugin runs in a process of its own: write `isolation: "
                                "process`, or leave it out; `--nf-path` is for NFs loaded by the program itself");
  }
  nf.isolation = word == "process" ? Isolation::kProcess : Isolation::kNone;
  return absl::OkStatus();
}

Status read_plugin(FileSection& entry, NfConfig& nf) {
  CATENA_RETURN_IF_ERROR(read_writes(entry, nf));
  if (!entry.has("plugin")) {
    return absl::OkStatus();
  }
  std::error_code error;
  CATENA_ASSIGN_OR_RETURN(nf.plugin, entry.text("plugin"));
  nf.has_plugin_inside = !nf.container.empty() && nf.plugin.starts_with('/');
  if (nf.has_plugin_inside) {
    nf.plugin = std::filesystem::path(nf.plugin).lexically_normal().string();
    CATENA_RETURN_IF_ERROR(entry.config().check_named("plugin", nf.plugin_here()));
    return std::filesystem::is_regular_file(nf.plugin_here(), error)
               ? absl::OkStatus()
               : entry.config().error("plugin",
                                      concat("'plugin': no file ", nf.plugin, " in the container ", nf.container));
  }
  CATENA_ASSIGN_OR_RETURN(const std::string named, entry.config().path("plugin"));
  if (!std::filesystem::is_regular_file(named, error)) {
    return entry.config().error("plugin", concat("'plugin': ", named, " is no regular file"));
  }
  nf.plugin = std::filesystem::absolute(named, error).lexically_normal().string();
  return absl::OkStatus();
}

}  // namespace catena::chain
