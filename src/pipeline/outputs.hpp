// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/output_file.hpp"
#include "io/sink.hpp"
#include "pipeline/chrome_trace.hpp"
#include "pipeline/recorder.hpp"
#include "pipeline/run_options.hpp"

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

namespace catena::runtime {

/// The output files of a session. They are opened together, after everything else that can fail. So a run that cannot
/// start has truncated no file. Captures and traces replace their content, lines are appended.
class Outputs {
 public:
  /// `sink`: of the port; null: a capture is opened. `nfs`: of the chain, which outlive this. Errors: the system's
  /// if a file cannot be created; FailedPrecondition for a capture to a terminal; Cancelled if `give_up` ended the wait
  /// for the reader of a FIFO.
  static Result<Outputs> open(chain::ChainConfig const& config, RunOptions const& options,
                              std::shared_ptr<io::Sink> sink, std::vector<nf::Instance const*> nfs,
                              std::stop_token const& give_up);

  std::shared_ptr<io::Sink> const& sink() const { return sink_; }
  /// Null if no lines are wanted.
  Recorder* recorder() const { return recorder_.get(); }
  /// Null if no trace is wanted.
  std::string const* trace_path() const { return trace_ ? &trace_->path() : nullptr; }
  /// Flushes all buffers, also after an error ended the run, and writes the trace of `stages` if wanted. DataLoss on
  /// failure, or if the trace is incomplete.
  Status finish(std::span<const StageTrace> stages);

 private:
  Outputs() = default;
  Status write_trace(std::span<const StageTrace> stages);

  std::shared_ptr<io::Sink> sink_;
  std::unique_ptr<Recorder> recorder_;
  std::optional<io::OutputFile> trace_;
};

}  // namespace catena::runtime
