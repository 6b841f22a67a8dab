// SPDX-License-Identifier: Apache-2.0
#include "pipeline/isolation/file_broker.hpp"

#include "nf/own_outputs.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace catena::nf_process {
namespace {

using ipc::Frame;
using OutputKind = nf::NamedOutput::Kind;

constexpr std::size_t kMaxOpened = 256;
/// Maximum refused requests of one incarnation; more are an attack.
constexpr std::uint32_t kMaxRefusals = 16;

/// Where a trial writes to.
class Nowhere final : public nf::Output {
 public:
  Status write(std::span<const std::byte> /*bytes*/) override { return absl::OkStatus(); }
  Status close() override { return absl::OkStatus(); }
};

}  // namespace

bool FileBroker::is_asked_by(Frame const& frame) {
  const auto call = static_cast<Call>(frame.call);
  return call == Call::kOpenOutput || call == Call::kWriteOutput || call == Call::kCloseOutput;
}

Status FileBroker::serve(int socket, Frame const& frame) {
  std::string kept;
  CATENA_ASSIGN_OR_RETURN(const Answer said, answer(frame, kept));
  CATENA_RETURN_IF_ERROR(send(socket, Call::kOutput, to_json(said)));
  if (said.is_kept) {
    CATENA_RETURN_IF_ERROR(send(socket, Call::kKept, kept));
  }
  return refused_ > kMaxRefusals ? absl::DataLossError("it repeatedly requests files that are not its own")
                                 : absl::OkStatus();
}

Result<Answer> FileBroker::answer(Frame const& frame, std::string& kept) {
  if (static_cast<Call>(frame.call) == Call::kOpenOutput) {
    CATENA_ASSIGN_OR_RETURN(const OpenOutput asked, read_open_output(text_of(frame.body)));
    return open(asked, kept);
  }
  CATENA_ASSIGN_OR_RETURN(const std::uint32_t handle, handle_of(frame.body));
  const auto found = opened_.find(handle);
  if (found == opened_.end()) {
    return refuse("a write to an unopened output");
  }
  if (static_cast<Call>(frame.call) == Call::kWriteOutput) {
    return Answer{found->second->write(std::span(frame.body).subspan(kHandleBytes)), handle};
  }
  Answer closed{found->second->close(), handle};
  opened_.erase(found);
  return closed;
}

Result<Answer> FileBroker::open(OpenOutput const& asked, std::string& kept) {
  if (asked.output >= rights_->outputs.size()) {
    return refuse("a file not named in its configuration");
  }
  const bool is_folder = rights_->outputs[asked.output].kind == OutputKind::kFolder;
  if (is_folder != nf::is_kept_name(asked.name) || (!is_folder && !asked.name.empty())) {
    return refuse("a file with an invalid name");
  }
  if (opened_.size() == kMaxOpened) {
    return Answer{
        absl::ResourceExhaustedError(concat(rights_->outputs[asked.output].name, ": the process of an NF has at most ",
                                            kMaxOpened, " outputs; write `isolation: none`"))};
  }
  Result<Opened> opened = open_here(asked.output, asked.name);
  if (!opened.ok()) {
    return Answer{opened.status()};
  }
  opened_[next_handle_] = std::move(opened->output);
  kept = std::move(opened->kept);
  return Answer{absl::OkStatus(), next_handle_++, opened->is_kept};
}

Result<FileBroker::Opened> FileBroker::open_here(std::uint32_t number, std::string const& name) {
  Opened opened;
  nf::NamedOutput const& output = rights_->outputs[number];
  if (rights_->is_trial) {
    opened.output = std::make_unique<Nowhere>();
    return opened;
  }
  switch (output.kind) {
    case OutputKind::kFile: {
      CATENA_ASSIGN_OR_RETURN(opened.output, nf::open_output_file(output.name, false));
      break;
    }
    case OutputKind::kReceiver: {
      CATENA_ASSIGN_OR_RETURN(opened.output, nf::connect_to_receiver(output.name));
      break;
    }
    case OutputKind::kFolder: {
      if (!rights_->keeps_files) {
        return absl::UnavailableError(concat(
            output.name, ": this run keeps no state in it, so the numbers used by the previous process are unknown"));
      }
      CATENA_ASSIGN_OR_RETURN(nf::KeptFile file, nf::open_kept_file(output.name, name));
      opened.output = std::move(file.output);
      opened.is_kept = file.text.has_value();
      opened.kept = std::move(file.text).value_or("");
      break;
    }
  }
  return opened;
}

Answer FileBroker::refuse(std::string_view what) {
  ++refused_;
  ++rights_->refusals;
  spdlog::warn("{}: its process requests {}: refused", rights_->nf, what);
  return Answer{absl::PermissionDeniedError("the configuration does not name it as an output")};
}

}  // namespace catena::nf_process
