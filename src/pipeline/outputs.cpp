// SPDX-License-Identifier: Apache-2.0
#include "pipeline/outputs.hpp"

#include "chain/port_kind.hpp"

#include <catena/core/text.hpp>

#include <unistd.h>

#include <utility>

namespace catena::runtime {
namespace {

Result<std::optional<io::OutputFile>> open_file(std::string const& path, io::OutputBegin begin,
                                                std::stop_token const& give_up) {
  std::optional<io::OutputFile> file;
  if (!path.empty()) {
    CATENA_ASSIGN_OR_RETURN(file, io::OutputFile::open(path, begin, give_up));
  }
  return file;
}

}  // namespace

Result<Outputs> Outputs::open(chain::ChainConfig const& config, RunOptions const& options,
                              std::shared_ptr<io::Sink> sink, std::vector<nf::Instance const*> nfs,
                              std::stop_token const& give_up) {
  Outputs outputs;
  outputs.sink_ = std::move(sink);
  const io::OutputBegin begin = options.keeps_captures ? io::OutputBegin::kNextPart : io::OutputBegin::kReplaced;
  std::optional<io::OutputFile> tx;
  if (!outputs.sink_) {
    if (io::names_standard_output(config.tx.target) && ::isatty(STDOUT_FILENO) == 1) {
      return absl::FailedPreconditionError(
          "tx: standard output is a terminal; send the capture to a file or a program, as `| tcpdump -r -`");
    }
    CATENA_ASSIGN_OR_RETURN(tx, open_file(config.tx.target, begin, give_up));
  }
  CATENA_ASSIGN_OR_RETURN(std::optional<io::OutputFile> record,
                          open_file(options.record_path, io::OutputBegin::kAppended, give_up));
  CATENA_ASSIGN_OR_RETURN(std::optional<io::OutputFile> eve,
                          open_file(options.eve_path, io::OutputBegin::kAppended, give_up));
  CATENA_ASSIGN_OR_RETURN(outputs.trace_, open_file(options.trace_path, begin, give_up));
  for (std::optional<io::OutputFile>* file : {&tx, &record, &eve, &outputs.trace_}) {
    CATENA_RETURN_IF_ERROR(file->has_value() ? (*file)->start() : absl::OkStatus());
  }
  if (tx) {
    outputs.sink_ = config.tx.kind->tx.write(*std::move(tx));
  }
  if (record || eve) {
    RecorderOptions lines{config.name, !config.rx.target.empty(), std::move(nfs)};
    outputs.recorder_ = std::make_unique<Recorder>(std::move(lines), std::move(record), std::move(eve));
  }
  return outputs;
}

Status Outputs::finish(std::span<const StageTrace> stages) {
  Status status = sink_->finish();
  status.Update(recorder_ ? recorder_->finish() : absl::OkStatus());
  status.Update(trace_ ? write_trace(stages) : absl::OkStatus());
  return status;
}

Status Outputs::write_trace(std::span<const StageTrace> stages) {
  Status status;
  for (StageTrace const& stage : stages) {
    if (!stage.log->status().ok()) {
      status.Update(absl::DataLossError(concat("the trace lacks times on the device of NF '", stage.name,
                                               "': ", std::string(stage.log->status().message()))));
    }
  }
  const std::string text = to_chrome_trace(stages);
  status.Update(trace_->write(text.data(), text.size()));
  status.Update(trace_->close());
  return status;
}

}  // namespace catena::runtime
