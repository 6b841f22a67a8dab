// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "nf/named_files.hpp"

#include <catena/core/status.hpp>

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

/// The files read and written by a run, wherever they are named.
namespace catena::chain {

struct NamedFile {
  std::string who;       ///< "tx", "--record", "'rules'": the key or option naming it
  std::string position;  ///< file:line:column of the name; empty for an option
  std::string path;
  bool is_written = false;
};

/// The files of the chain file, its NFs (`of_nfs`: collected by nf::NamedFiles while they were created) and the command
/// line. Standard input is left out; standard output has the path "-".
std::vector<NamedFile> named_files(ChainConfig const& config, RunOptions const& options,
                                   std::span<const nf::NamedFile> of_nfs);

/// The keys of an NF of a chain.
struct KeysOfNf {
  std::string nf;        ///< its name
  std::string position;  ///< of its entry in the chain file
  std::vector<nf::NamedKey> keys;
};

/// Whether no two NFs encrypt with the same key: they would encrypt different packets with the same key stream.
/// InvalidArgument has one line per NF with a key of an earlier NF, with the names of both and the holders of the key.
Status check_keys(std::span<const KeysOfNf> nfs);

/// Whether the NFs have keys with these SPIs (`--new-keys`). InvalidArgument names the others.
Status check_new_keys(std::span<const KeysOfNf> nfs, std::set<std::uint32_t> const& new_keys);

/// Whether packets, or lines about them, go to standard output, which may then have no other use.
bool writes_to_standard_output(ChainConfig const& config, RunOptions const& options);

/// Whether an NF in its own process can have the written files among `of_nf`. InvalidArgument, with the position, for a
/// FIFO: no thread could wait for its reader.
Status check_written_for_process(std::span<const nf::NamedFile> of_nf);

/// Whether each written file is writable: its folder exists, it is not a folder, its permissions allow it, and no other
/// part of the run reads or writes it, under any name (symbolic and hard links are followed; devices such as /dev/null
/// may be named often). Opens nothing. InvalidArgument lists all errors, one per line, with the positions.
Status check_files(std::span<const NamedFile> files);

}  // namespace catena::chain
