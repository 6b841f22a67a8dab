// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chain/chain_file.hpp"
#include "io/shared_port.hpp"
#include "nf/registry.hpp"
#include "pipeline/run_options.hpp"
#include "service/apply_record.hpp"
#include "service/caller.hpp"
#include "service/spec_history.hpp"

#include <catena/core/status.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace catena::service {

/// A resource of one chain at a time, or of several if shared: a port, or a written file.
struct Resource {
  std::string name;  ///< as shown to users
  bool is_shared = false;
  io::PortMember member = {};  ///< of a shared port, the chain there
};

/// A chain after reading and checking, without any resources yet.
struct ValidatedSpec {
  chain::ChainConfig config;
  runtime::RunOptions options;
  std::vector<Resource> resources;
  Caller caller;
  std::string fifo = {};      ///< an output that may wait for its reader; empty: no such output
  bool accepts_loss = false;  ///< see RequestOptions
  bool restarts = false;      ///< the same
  std::vector<HashedFile> files = {};
  std::vector<std::string> warnings = {};  ///< see key_file_warnings()
};

/// Reads and checks a spec with the rights of `caller`, in its own thread.
/// Errors: as load_chain(), run_options_of() and check(); InvalidArgument if packets or lines use a standard stream,
/// which belongs to the service; PermissionDenied for a DPDK device named by an unprivileged caller;
/// FailedPrecondition if a file of an earlier spec has another content now; ResourceExhausted without a thread.
Result<ValidatedSpec> prepare(SpecSource const& spec, RequestOptions const& options, Caller const& caller,
                              nf::Registry const& registry);

/// Why two chains cannot have their resources at a time: the first conflict of `a` with `b`, of chain `of_b`, as text;
/// empty: they can.
std::string clash(std::vector<Resource> const& a, std::vector<Resource> const& b, std::string_view of_b);

}  // namespace catena::service
