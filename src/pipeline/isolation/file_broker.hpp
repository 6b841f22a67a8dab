// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ipc/frames.hpp"
#include "nf/named_files.hpp"
#include "pipeline/isolation/protocol.hpp"

#include <catena/core/status.hpp>
#include <catena/nf/outputs.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace catena::nf_process {

/// The outputs permitted to an NF process, over all of its incarnations. Other requests are refused and counted.
struct OutputRights {
  std::string nf;                        ///< its name, for messages
  std::vector<nf::NamedOutput> outputs;  ///< named by its configuration; files and folders with absolute paths
  bool is_trial = false;                 ///< nothing is opened, and writes are discarded
  bool keeps_files = true;               ///< false: the previous incarnation kept no files to continue with
  std::atomic<std::uint64_t> refusals{0};
};

/// Writes outputs for one incarnation of an NF process, with the rights of the calling thread. The process has no
/// descriptor of its outputs. So it can only append to a file, replace a kept file, and send to the receivers. Its
/// requests are untrusted. One thread at a time.
class FileBroker {
 public:
  /// `rights` outlive it.
  explicit FileBroker(OutputRights& rights) : rights_(&rights) {}

  static bool is_asked_by(ipc::Frame const& frame);
  /// Executes the request in the frame and replies on `socket`. Errors end the incarnation: DataLoss if the frame
  /// cannot be parsed, or after too many refusals for a mistake; as send().
  Status serve(int socket, ipc::Frame const& frame);
  /// Closes all outputs. Another process may then open these files.
  void close_all() { opened_.clear(); }

 private:
  struct Opened {
    std::unique_ptr<nf::Output> output;
    std::string kept;
    bool is_kept = false;
  };
  Result<Answer> answer(ipc::Frame const& frame, std::string& kept);
  Result<Answer> open(OpenOutput const& asked, std::string& kept);
  Result<Opened> open_here(std::uint32_t number, std::string const& name);
  Answer refuse(std::string_view what);

  OutputRights* rights_;
  std::map<std::uint32_t, std::unique_ptr<nf::Output>> opened_;  ///< by handle
  std::uint32_t next_handle_ = 1;
  std::uint32_t refused_ = 0;
};

}  // namespace catena::nf_process
