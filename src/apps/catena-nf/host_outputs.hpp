// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/catena-nf/host.hpp"
#include "nf/named_files.hpp"

#include <catena/nf/outputs.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace catena::nf_program {

/// The outputs of one NF of this process, opened and written by requests to the parent process, one at a time.
class HostOutputs final : public nf::Outputs {
 public:
  /// `host` outlives it and its open outputs. `outputs`: as nf_process::NfSetup. `first`: number of outputs of the NFs
  /// before.
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
