// SPDX-License-Identifier: Apache-2.0
#include "service/validated_spec.hpp"

#include "base/core/open_file.hpp"
#include "chain/check.hpp"
#include "chain/named_files.hpp"
#include "io/interface.hpp"
#include "io/output_file.hpp"
#include "service/key_files.hpp"
#include "service/user_limits.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <system_error>
#include <thread>
#include <utility>

namespace catena::service {
namespace {

using chain::PortConfig;

Status check_standard_streams(chain::ChainConfig const& config, runtime::RunOptions const& options) {
  const bool reads = config.rx.target == io::kStandardStream;
  if (!reads && !chain::writes_to_standard_output(config, options)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(concat(config.source.file, ": a service has no standard ",
                                           reads ? "input" : "output", " for chains; name a file or a FIFO (mkfifo)"));
}

/// Interfaces carry the packets of all users; a driver of DPDK takes file names, sockets and programs as parameters,
/// and works on them in threads of its own.
Status check_devices(chain::ChainConfig const& config, Caller const& caller) {
  for (PortConfig const* port : {&config.rx, &config.tx}) {
    if (!port->devices.empty() && has_other_rights(caller)) {
      return absl::PermissionDeniedError(concat(config.source.file, ": '", port->devices.front(),
                                                "': only root may give interfaces and DPDK devices to a service"));
    }
  }
  return absl::OkStatus();
}

std::vector<Resource> resources_of(chain::ChainConfig const& config, std::vector<chain::NamedFile> const& files) {
  std::vector<Resource> resources;
  for (PortConfig const* port : {&config.rx, &config.tx}) {
    for (std::string const& device : port->devices) {
      resources.push_back({io::shared_name(device), port->is_shared, {config.name, port->matches}});
    }
  }
  if (config.flow.signals && config.flow.signals->listen) {
    resources.push_back({concat("UDP ", config.flow.signals->listen->text)});
  }
  for (chain::NamedFile const& file : files) {
    std::error_code error;
    // what is no file, as /dev/null, has room for all
    if (file.is_written &&
        (!std::filesystem::exists(file.path, error) || std::filesystem::is_regular_file(file.path, error))) {
      const std::filesystem::path path = std::filesystem::weakly_canonical(file.path, error);
      resources.push_back({error ? file.path : path.string()});
    }
  }
  return resources;
}

/// The first output that is a FIFO; empty: there is none.
std::string fifo_of(std::vector<chain::NamedFile> const& files) {
  const auto is_fifo = [](chain::NamedFile const& file) {
    std::error_code error;
    return file.is_written && std::filesystem::is_fifo(file.path, error);
  };
  const auto found = std::ranges::find_if(files, is_fifo);
  return found == files.end() ? std::string() : found->path;
}

Result<chain::ChainConfig> load(SpecSource const& spec, chain::GivenOptions const& options, Caller const& caller) {
  const nf::YamlScope scope(chain_file_limits(caller));
  if (!spec.kept) {
    return chain::load_chain(spec.file, options);
  }
  CATENA_RETURN_IF_ERROR(check_unchanged(spec.kept->files));
  chain::ChainSource source = spec.kept->source;
  source.options = options;
  return chain::parse_chain(std::move(source));
}

Result<ValidatedSpec> prepare_here(SpecSource const& spec, RequestOptions const& request, Caller const& caller,
                                   nf::Registry const& registry) {
  CATENA_RETURN_IF_ERROR(take_rights_of(caller));
  const nf::YamlScope scope(yaml_limits(caller));
  ValidatedSpec validated;
  validated.caller = caller;
  validated.restarts = request.restarts;
  validated.accepts_loss = request.accepts_loss || request.restarts;
  CATENA_ASSIGN_OR_RETURN(validated.config, load(spec, request.over_file, caller));
  chain::set_default_isolation(validated.config, chain::Isolation::kProcess);
  CATENA_ASSIGN_OR_RETURN(chain::RunOptions options, chain::run_options_of(validated.config));
  options.new_keys = request.new_keys;
  options.keeps_captures = true;
  validated.options = {std::move(options)};
  CATENA_RETURN_IF_ERROR(check_standard_streams(validated.config, validated.options));
  CATENA_RETURN_IF_ERROR(check_devices(validated.config, caller));
  std::vector<chain::RefusedRules> refused;
  std::vector<chain::NamedFile> files;
  const Status checked = chain::check(validated.config, validated.options, nullptr, registry, refused, &files);
  for (chain::NamedFile const& named : files) {
    CATENA_RETURN_IF_ERROR(check_name(named.path));  // errors of the check quote where links lead
  }
  CATENA_RETURN_IF_ERROR(checked);
  validated.resources = resources_of(validated.config, files);
  validated.fifo = fifo_of(files);
  validated.warnings = key_file_warnings(files);
  CATENA_ASSIGN_OR_RETURN(validated.files, hash_files(validated.config.source, files));
  return validated;
}

}  // namespace

Result<ValidatedSpec> prepare(SpecSource const& spec, RequestOptions const& options, Caller const& caller,
                              nf::Registry const& registry) {
  Result<ValidatedSpec> validated = absl::UnknownError("");
  try {
    std::thread([&] {
      try {
        validated = prepare_here(spec, options, caller, registry);
      } catch (std::exception const& error) {
        validated = absl::ResourceExhaustedError(error.what());
      }
    }).join();
  } catch (std::system_error const& error) {
    return absl::ResourceExhaustedError(concat("no thread to read the spec: ", error.what()));
  }
  return validated;
}

std::string clash(std::vector<Resource> const& a, std::vector<Resource> const& b, std::string_view of_b) {
  for (Resource const& of_a : a) {
    for (Resource const& other : b) {
      if (of_a.name != other.name) {
        continue;
      }
      if (!of_a.is_shared || !other.is_shared) {
        const bool is_half_shared = of_a.is_shared || other.is_shared;
        return concat(of_a.name, " is used by chain '", of_b, "'",
                      is_half_shared ? "; both chains must say `shared: true` to have it at a time" : "");
      }
      if (const std::string why = io::conflict(of_a.member, other.member); !why.empty()) {
        return concat(of_a.name, ": ", why);
      }
    }
  }
  return {};
}

}  // namespace catena::service
