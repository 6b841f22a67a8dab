// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/run_options.hpp"
#include "io/output_file.hpp"
#include "io/sink.hpp"
#include "runtime/chrome_trace.hpp"
#include "runtime/recorder.hpp"

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

namespace catena::runtime {

/// The files that a session writes. They are opened together and last, after everything else that can fail: a run that
/// cannot start has emptied no file.
class Outputs {
 public:
  /// `sink`: of open_ends(); null: a capture is opened. `nfs`: of the chain, which outlive this. Errors: what the
  /// system says where a file cannot be created; FailedPrecondition for a capture to a terminal; Cancelled where
  /// `give_up` ended the wait for the reader of a FIFO.
  static Result<Outputs> open(chain::ChainConfig const& config, chain::RunOptions const& options,
                              std::shared_ptr<io::Sink> sink, std::vector<nf::Instance const*> nfs,
                              std::stop_token const& give_up);

  std::shared_ptr<io::Sink> const& sink() const { return sink_; }
  /// Null where no lines are wanted.
  Recorder* recorder() const { return recorder_.get(); }
  /// Null where none is wanted.
  std::string const* trace_path() const { return trace_ ? &trace_->path() : nullptr; }
  /// Writes out what is buffered, after a run that an error ended, too; and the trace of `stages` where one is wanted.
  /// DataLoss if that fails, or the trace lacks something.
  Status finish(std::span<const StageTrace> stages);

 private:
  Outputs() = default;
  Status write_trace(std::span<const StageTrace> stages);

  std::shared_ptr<io::Sink> sink_;
  std::unique_ptr<Recorder> recorder_;
  std::optional<io::OutputFile> trace_;
};

}  // namespace catena::runtime
