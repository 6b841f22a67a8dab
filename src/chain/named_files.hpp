// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "nf/named_files.hpp"

#include <catena/core/status.hpp>

#include <span>
#include <string>
#include <vector>

/// The files that a run reads and writes, wherever they are named.
namespace catena::chain {

struct NamedFile {
  std::string who;       ///< "tx", "--record", "'rules'": what names it
  std::string position;  ///< file:line:column of the name; empty on the command line
  std::string path;
  bool is_written = false;
};

/// Those of the chain file, its NFs (`of_nfs`: what nf::NamedFiles collected while they were made) and the command
/// line. Standard input is not among them; standard output has the path "-".
std::vector<NamedFile> named_files(ChainConfig const& config, RunOptions const& options,
                                   std::span<const nf::NamedFile> of_nfs);

/// The keys that an NF of a chain encrypts with.
struct KeysOfNf {
  std::string nf;        ///< its name
  std::string position;  ///< of its entry in the chain file
  std::vector<nf::NamedKey> keys;
};

/// Whether no two NFs encrypt with the same key: they would encrypt different packets with the same key stream. The
/// InvalidArgument has a line for each NF with a key of one before it, with the names of both and what has the key.
Status check_keys(std::span<const KeysOfNf> nfs);

/// Whether packets, or lines about them, go to standard output: nothing else may then.
bool writes_to_standard_output(ChainConfig const& config, RunOptions const& options);

/// Whether those of `of_nf` that are written can be written for an NF in a process of its own: InvalidArgument with the
/// position of a FIFO, whose reader nobody could wait for.
Status check_written_for_process(std::span<const nf::NamedFile> of_nf);

/// Whether each file that is written can be: its folder is there, it is no folder and may be written to, and nobody
/// else reads or writes it, under whichever name (symbolic and hard links are followed; devices such as /dev/null may
/// be named often). Opens nothing. InvalidArgument says all that is wrong, one line each, with the positions.
Status check_files(std::span<const NamedFile> files);

}  // namespace catena::chain
