// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nf/named_files.hpp"
#include "nf_program/host.hpp"

#include <catena/nf/outputs.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace catena::nf_program {

/// What one NF of this process writes: asked of who started the process, one thing after another.
class HostOutputs final : public nf::Outputs {
 public:
  /// `host` outlives it and what it opened. `outputs`: as nf_process::NfSetup; `first`: how many the NFs before have.
  HostOutputs(Host& host, std::vector<nf::NamedOutput> outputs, std::size_t first)
      : host_(&host), outputs_(std::move(outputs)), first_(first) {}

  Result<std::unique_ptr<nf::Output>> open_file(std::string const& path) override;
  Result<std::unique_ptr<nf::Output>> connect(std::string const& receiver) override;
  Result<nf::KeptFile> open_kept(std::string const& folder, std::string const& name) override;

 private:
  Result<nf::KeptFile> open(nf::NamedOutput const& what, std::string const& name);

  Host* host_;
  std::vector<nf::NamedOutput> outputs_;
  std::size_t first_;
};

}  // namespace catena::nf_program
