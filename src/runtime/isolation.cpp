// SPDX-License-Identifier: Apache-2.0
#include "runtime/isolation.hpp"

#include "chain/instances.hpp"

#include <catena/core/text.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace catena::runtime {
namespace {

Status at(chain::NfConfig const& config, Status const& status) {
  return {status.code(),
          concat(config.position, ": NF '", config.name, "', isolation: process: ", std::string(status.message()))};
}

/// Those of `files` that the caller, whoever this thread acts for, may read.
std::vector<std::string> readable(std::vector<std::string> files) {
  std::erase_if(files, [](std::string const& file) {
    const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 || ::close(fd) != 0;
  });
  return files;
}

bool is_isolated(chain::NfConfig const& config) { return config.isolation == chain::Isolation::kProcess; }

}  // namespace

namespace {

Result<std::unique_ptr<nf_process::IsolatedNf>> start_process(chain::NfConfig const& config,
                                                              chain::NfProcesses const& processes) {
  nf_process::ProcessOptions process;
  process.program = processes.program;
  process.name = config.name;
  process.position = config.position;
  process.wanted = {config.type, config.plugin};
  std::vector<std::string> paths;
  for (auto const& [key, path] : config.config.files()) {
    paths.push_back(path);
  }
  process.files = readable(std::move(paths));
  process.container = config.container;
  if (!config.plugin.empty() && !config.has_plugin_inside) {
    process.files.push_back(config.plugin);
  }
  process.uid = processes.uid;
  process.gid = processes.gid;
  if (processes.connect_device) {
    process.connect_device = [connect = processes.connect_device, nf = config.name](std::string const& preference,
                                                                                    std::string* why) {
      return connect(nf, preference, why);
    };
  }
  Result<std::unique_ptr<nf_process::IsolatedNf>> nf = nf_process::IsolatedNf::create(std::move(process));
  if (!nf.ok()) {
    return absl::IsNotFound(nf.status())
               ? Status(nf.status().code(), concat(config.position, ": ", std::string(nf.status().message())))
               : at(config, nf.status());
  }
  if (config.on == plan::Processor::kGpu && !(*nf)->descriptor().has_kernel) {
    chain::NfConfig named = config;
    named.type = (*nf)->descriptor().type;
    return chain::no_kernel(named);
  }
  return nf;
}

Status try_out(chain::NfConfig const& config, chain::ChainConfig const& chain, chain::NfProcesses const& processes) {
  CATENA_ASSIGN_OR_RETURN(const auto nf, start_process(config, processes));
  nf_process::Setup setup = setup_of(config, chain);
  setup.on_gpu = false;
  if (setup.unit_packets == chain::kAutoUnitPackets) {
    setup.unit_packets = memory::kDefaultUnitPackets;
    setup.slots = nf_process::ChannelShape::of(setup.unit_packets).slots();
  }
  nf->prepare(setup);
  return nf->start(nf::RunContext{});
}

}  // namespace

Status allow_processes(chain::ChainConfig const& chain, chain::RunOptions& options) {
  if (std::any_of(chain.nfs.begin(), chain.nfs.end(), is_isolated)) {
    CATENA_ASSIGN_OR_RETURN(options.processes.program, nf_process::find_nf_program());
    options.processes.try_out = [processes = options.processes](chain::NfConfig const& config,
                                                                chain::ChainConfig const& in) {
      return try_out(config, in, processes);
    };
  }
  return absl::OkStatus();
}

bool needs_servers(chain::ChainConfig const& chain) {
  return std::any_of(chain.nfs.begin(), chain.nfs.end(), [](chain::NfConfig const& config) {
    return is_isolated(config) && (config.is_auto || config.on == plan::Processor::kGpu);
  });
}

Result<std::unique_ptr<nf::Instance>> make_isolated(chain::NfConfig const& config, chain::RunOptions const& options) {
  if (options.processes.program.empty()) {
    return at(config, absl::UnavailableError("nobody here starts processes of NFs; write `isolation: none`"));
  }
  CATENA_ASSIGN_OR_RETURN(std::unique_ptr<nf_process::IsolatedNf> nf, start_process(config, options.processes));
  nf::Descriptor const& descriptor = nf->descriptor();
  return std::make_unique<nf::Instance>(config.name, descriptor, std::move(nf), nf::OnUnsupported::kPass,
                                        !options.record_path.empty());
}

nf_process::Setup setup_of(chain::NfConfig const& config, chain::ChainConfig const& chain) {
  nf_process::Setup setup;
  std::error_code error;
  setup.file = std::filesystem::absolute(chain.file, error).lexically_normal().string();
  setup.text = chain.text;
  setup.name = config.name;
  setup.on_gpu = config.on == plan::Processor::kGpu;
  setup.device = device::to_string(chain.devices.front());
  setup.ends = chain::ends_of(chain.rx, chain.tx);
  setup.unit_packets = chain.tuning.unit_packets;
  setup.slots = nf_process::ChannelShape::of(setup.unit_packets).slots();
  setup.units_per_launch = chain.tuning.units_per_launch;
  setup.launches_in_flight = chain.tuning.launches_in_flight;
  setup.device_limit_ms = chain.tuning.device_limit_ms;
  setup.max_batch_delay_us = chain.tuning.max_batch_delay_us;
  return setup;
}

}  // namespace catena::runtime
