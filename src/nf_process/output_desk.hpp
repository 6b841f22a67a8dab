// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/remote/socket.hpp"
#include "nf/named_files.hpp"
#include "nf_process/protocol.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/outputs.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace catena::nf_process {

/// What an NF's process may have written, over all of its lives. Who asks for something else is refused, and counted.
struct OutputRights {
  std::string nf;                        ///< its name, for messages
  std::vector<nf::NamedOutput> outputs;  ///< that its configuration names; names of files and folders are whole
  bool is_trial = false;                 ///< nothing is opened, and what is written goes nowhere
  bool keeps_files = true;               ///< else the life before had none that this one could go on with
  std::set<std::uint32_t> begun;         ///< numbers of files that an earlier life emptied
  std::atomic<std::uint64_t> refusals{0};
};

/// Writes for one life of an NF's process, with the rights of the thread that calls. The process has no descriptor of
/// what is written, so it can add to a file, replace one that is kept, and send to the receivers, and nothing else.
/// Whatever it says is hostile. One thread at a time.
class OutputDesk {
 public:
  /// `rights` outlive it.
  explicit OutputDesk(OutputRights& rights) : rights_(&rights) {}

  static bool is_asked_by(device::remote::Frame const& frame);
  /// Does what the frame asks for, and answers on `socket`. Errors end the life: DataLoss where it cannot be read, or
  /// where so much was refused before that nobody asks by mistake; as send().
  Status serve(int socket, device::remote::Frame const& frame);
  /// Whoever has a right to these files may have it from now on.
  void close_all() { opened_.clear(); }

 private:
  struct Opened {
    std::unique_ptr<nf::Output> output;
    std::string kept;
    bool is_kept = false;
  };
  Result<Answer> answer(device::remote::Frame const& frame, std::string& kept);
  Result<Answer> open(OpenOutput const& asked, std::string& kept);
  Result<Opened> open_here(std::uint32_t number, std::string const& name);
  Answer refuse(std::string_view what);

  OutputRights* rights_;
  std::map<std::uint32_t, std::unique_ptr<nf::Output>> opened_;  ///< by handle
  std::uint32_t next_handle_ = 1;
  std::uint32_t refused_ = 0;
};

}  // namespace catena::nf_process
