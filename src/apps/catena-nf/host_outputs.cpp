// SPDX-License-Identifier: Apache-2.0
#include "apps/catena-nf/host_outputs.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace catena::nf_program {
namespace {

using nf_process::Call;
using Kind = nf::NamedOutput::Kind;

/// Of one call: a frame has as much.
constexpr std::size_t kMaxBytes = nf_process::kMaxFrameBytes / 2;

class HostOutput final : public nf::Output {
 public:
  HostOutput(Host& host, std::string name, Kind kind, std::uint32_t handle)
      : host_(&host), name_(std::move(name)), kind_(kind), handle_(handle) {}
  ~HostOutput() override { close().IgnoreError(); }

  Status write(std::span<const std::byte> bytes) override {
    if (kind_ != Kind::kFile && bytes.size() > kMaxBytes) {
      return absl::InvalidArgumentError(concat(name_, ": ", bytes.size(), " bytes are too many at once"));
    }
    do {
      const std::span<const std::byte> part = bytes.first(std::min(bytes.size(), kMaxBytes));
      CATENA_RETURN_IF_ERROR(ask(Call::kWriteOutput, part));
      bytes = bytes.subspan(part.size());
    } while (!bytes.empty());
    return absl::OkStatus();
  }

  Status close() override {
    if (std::exchange(is_open_, false)) {
      return ask(Call::kCloseOutput, {});
    }
    return absl::OkStatus();
  }

 private:
  Status ask(Call call, std::span<const std::byte> bytes) {
    CATENA_ASSIGN_OR_RETURN(const Host::Opened answer, host_->ask(call, nf_process::with_handle(handle_, bytes)));
    return answer.answer.status;
  }

  Host* host_;
  std::string name_;
  Kind kind_;
  std::uint32_t handle_;
  bool is_open_ = true;
};

}  // namespace

Result<std::unique_ptr<nf::Output>> HostOutputs::open_file(std::string const& path) {
  CATENA_ASSIGN_OR_RETURN(nf::KeptFile file, open({Kind::kFile, path}, ""));
  return std::move(file.output);
}

Result<std::unique_ptr<nf::Output>> HostOutputs::connect(std::string const& receiver) {
  CATENA_ASSIGN_OR_RETURN(nf::KeptFile file, open({Kind::kReceiver, receiver}, ""));
  return std::move(file.output);
}

Result<nf::KeptFile> HostOutputs::open_kept(std::string const& folder, std::string const& name) {
  return open({Kind::kFolder, folder}, name);
}

Result<nf::KeptFile> HostOutputs::open(nf::NamedOutput const& what, std::string const& name) {
  const auto found = std::ranges::find(outputs_, what);
  if (found == outputs_.end()) {
    return absl::PermissionDeniedError(
        concat(what.name,
               ": an NF in a process of its own writes only to outputs named in its configuration, and a plugin "
               "only to outputs also named in `writes` of its entry"));
  }
  const std::size_t number = first_ + static_cast<std::size_t>(found - outputs_.begin());
  const nf_process::OpenOutput asked{static_cast<std::uint32_t>(number), name};
  const std::string text = nf_process::to_json(asked);
  CATENA_ASSIGN_OR_RETURN(Host::Opened opened, host_->ask(Call::kOpenOutput, std::as_bytes(std::span(text))));
  CATENA_RETURN_IF_ERROR(opened.answer.status);
  nf::KeptFile file;
  file.output = std::make_unique<HostOutput>(*host_, what.name, what.kind, opened.answer.handle);
  file.text = std::move(opened.kept);
  return file;
}

}  // namespace catena::nf_program
