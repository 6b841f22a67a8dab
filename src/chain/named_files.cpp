// SPDX-License-Identifier: Apache-2.0
#include "chain/named_files.hpp"

#include "base/core/open_file.hpp"
#include "io/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <catena/core/escape.hpp>
#include <catena/core/text.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <tuple>

namespace catena::chain {
namespace {

namespace fs = std::filesystem;

/// What two names have in common if and only if they name the same file: device and inode; for a file that is not there
/// yet those of its folder, and its name.
using Identity = std::tuple<dev_t, ino_t, std::string>;

std::string folder_of(std::string const& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Where a chain of symbolic links ends, whether a file is there or not.
std::string follow_links(std::string path) {
  constexpr int kMaxLinks = 40;  // as Linux follows
  std::error_code error;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(path, error); ++i) {
    const fs::path target = fs::read_symlink(path, error);
    path = (target.is_absolute() ? target : fs::path(folder_of(path)) / target).string();
  }
  return path;
}

/// Nothing for what may be named often, and for what does not exist and cannot be made.
std::optional<Identity> identity_of(std::string const& path) {
  if (io::names_standard_output(path)) {
    return Identity{0, 0, std::string(io::kStandardStream)};
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    return S_ISCHR(status.st_mode) ? std::nullopt
                                   : std::optional(Identity{status.st_dev, status.st_ino, std::string()});
  }
  const std::string target = follow_links(path);
  if (::stat(folder_of(target).c_str(), &status) == 0) {
    return Identity{status.st_dev, status.st_ino, fs::path(target).filename().string()};
  }
  return std::nullopt;
}

std::string prefix_of(NamedFile const& file) {
  return concat(file.position.empty() ? "" : file.position + ": ", file.who, ": ");
}

std::string why_not_written(NamedFile const& file) {
  if (io::names_standard_output(file.path)) {
    return {};
  }
  if (const Status named = check_name(file.path); !named.ok()) {
    return std::string(named.message());  // what follows quotes where links lead
  }
  if (std::string error = io::socket_error(file.path); !error.empty()) {
    return error;
  }
  const std::string target = follow_links(file.path);
  std::error_code error;
  if (fs::is_directory(target, error)) {
    return concat(file.path, " is a folder; write the name of a file");
  }
  const std::string folder = folder_of(target);
  if (!fs::is_directory(folder, error)) {
    return concat(file.path, " cannot be written: no such folder: ", folder, "; create it first");
  }
  const bool is_there = fs::exists(target, error);
  if (::faccessat(AT_FDCWD, is_there ? target.c_str() : folder.c_str(), is_there ? W_OK : W_OK | X_OK, AT_EACCESS) !=
      0) {
    return concat(file.path, " cannot be written: ", is_there ? target : folder, ": ", std::strerror(errno));
  }
  return {};
}

}  // namespace

std::vector<NamedFile> named_files(ChainConfig const& config, RunOptions const& options,
                                   std::span<const nf::NamedFile> of_nfs) {
  std::vector<NamedFile> files;
  const auto add = [&files](std::string who, std::string position, std::string const& path, bool is_written) {
    // nobody is in the way of standard input
    if (!path.empty() && (is_written || path != io::kStandardStream)) {
      files.push_back({std::move(who), std::move(position), path, is_written});
    }
  };
  // the position of a name on the command line is its option
  const auto add_named = [&add](std::string const& who, std::string const& position, std::string const& path,
                                bool is_written) {
    const bool is_option = position.starts_with("--");
    add(is_option ? position : who, is_option ? "" : position, path, is_written);
  };
  OutputsConfig const& outputs = config.run.outputs;
  add("the chain file", "", config.source.file, false);
  for (IncludedFile const& included : config.source.included) {
    add("'include'", "", included.file, false);
  }
  if (options.opens_rx) {
    add_named("rx", config.rx.position, config.rx.target, false);
  }
  for (NfConfig const& nf : config.nfs) {
    add("'plugin'", nf.position, nf.plugin_here(), false);
  }
  if (config.flow.signals) {
    add("'key'", config.flow.signals->position, config.flow.signals->key_file, false);
  }
  for (nf::NamedFile const& file : of_nfs) {
    add(concat("'", file.key, "'"), file.position, file.path, file.is_written);
  }
  add_named("'profile'", config.run.transfers.profile.position, options.profile_path, false);
  if (options.opens_tx) {
    add_named("tx", config.tx.position, config.tx.target, true);
  }
  add_named("'record'", outputs.record.position, options.record_path, true);
  add_named("'eve'", outputs.eve.position, options.eve_path, true);
  add_named("'trace'", outputs.trace.position, options.trace_path, true);
  return files;
}

Status check_keys(std::span<const KeysOfNf> nfs) {
  std::map<std::string_view, std::pair<KeysOfNf const*, nf::NamedKey const*>> holders;
  std::string errors;
  for (KeysOfNf const& nf : nfs) {
    std::string error;  // the first is enough of those that a file has
    for (nf::NamedKey const& key : nf.keys) {
      if (key.id.empty()) {
        continue;
      }
      const auto [holder, is_first] = holders.try_emplace(key.id, &nf, &key);
      auto const& [other, theirs] = holder->second;
      if (!is_first && error.empty()) {
        error =
            concat(nf.position, ": NF '", nf.nf, "': ", key.what, " has the keys of ", theirs->what, " of NF '",
                   other->nf, "', and both would encrypt with the same key stream; give one of them keys of its own");
      }
    }
    errors += concat(errors.empty() || error.empty() ? "" : "\n", error);
  }
  return errors.empty() ? absl::OkStatus() : absl::InvalidArgumentError(errors);
}

Status check_new_keys(std::span<const KeysOfNf> nfs, std::set<std::uint32_t> const& new_keys) {
  std::set<std::uint32_t> unknown = new_keys;
  for (KeysOfNf const& nf : nfs) {
    for (nf::NamedKey const& key : nf.keys) {
      unknown.erase(key.spi);
    }
  }
  return unknown.empty() ? absl::OkStatus()
                         : absl::InvalidArgumentError(fmt::format(
                               "--new-keys: no association of the chain has SPI {}; write SPIs of its SA files",
                               fmt::join(unknown, ", ")));
}

bool writes_to_standard_output(ChainConfig const& config, RunOptions const& options) {
  const std::vector<NamedFile> files = named_files(config, options, {});
  return std::any_of(files.begin(), files.end(),
                     [](NamedFile const& file) { return file.is_written && io::names_standard_output(file.path); });
}

Status check_written_for_process(std::span<const nf::NamedFile> of_nf) {
  for (nf::NamedFile const& file : of_nf) {
    std::error_code error;
    if (file.is_written && fs::is_fifo(file.path, error)) {
      return absl::InvalidArgumentError(
          concat(file.position, ": '", file.key, "': ", escaped(file.path),
                 " is a FIFO, and an NF in a process of its own writes regular files only; write `isolation: none`"));
    }
  }
  return absl::OkStatus();
}

Status check_files(std::span<const NamedFile> files) {
  std::string errors;
  const auto say = [&errors](std::string const& error) { errors += (errors.empty() ? "" : "\n") + escaped(error); };
  for (NamedFile const& file : files) {
    if (const std::string why = file.is_written ? why_not_written(file) : std::string(); !why.empty()) {
      say(prefix_of(file) + why);
    }
  }
  std::map<Identity, NamedFile const*> readers;
  std::map<Identity, NamedFile const*> writers;
  for (NamedFile const& file : files) {
    if (const auto identity = identity_of(file.path); identity && !file.is_written) {
      readers.emplace(*identity, &file);
    }
  }
  for (NamedFile const& file : files) {
    const auto identity = file.is_written ? identity_of(file.path) : std::nullopt;
    if (!identity) {
      continue;
    }
    const auto [writer, is_first] = writers.emplace(*identity, &file);
    const auto reader = readers.find(*identity);
    if (is_first && reader == readers.end()) {
      continue;
    }
    NamedFile const& other = is_first ? *reader->second : *writer->second;
    say(concat(prefix_of(file), file.path, " would be overwritten: ", other.who,
               other.position.empty() ? "" : concat(" at ", other.position), other.is_written ? " writes" : " reads",
               " the same file", other.path == file.path ? "" : concat(" as ", other.path), "; name another file"));
  }
  return errors.empty() ? absl::OkStatus() : absl::InvalidArgumentError(errors);
}

}  // namespace catena::chain
