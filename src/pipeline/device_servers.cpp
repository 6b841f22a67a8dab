// SPDX-License-Identifier: Apache-2.0
#include "pipeline/device_servers.hpp"

#include "base/core/process_work.hpp"

#include <catena/core/text.hpp>

#include <spdlog/spdlog.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace catena::runtime {
namespace {

/// A client in quarantine has no device, and the reason says what helps.
template <typename Opened>
Result<Opened> unless_in_quarantine(Result<Opened> opened, std::string_view client, std::string* why) {
  if (absl::IsFailedPrecondition(opened.status())) {
    *why = concat(std::string(opened.status().message()), "; `catena nf reset ", client, "` lifts it");
    return Opened();
  }
  return opened;
}

/// The groups of device servers that a chain and the processes of its NFs use. Any thread.
class ServerGroups {
 public:
  using Group = std::shared_ptr<device::remote::ServerPool::Group>;  ///< null: the common server

  /// `shares`: its NFs share a GPU in a way that needs one server.
  ServerGroups(device::remote::ServerPool& servers, ServerClient client, bool shares)
      : servers_(&servers), client_(std::move(client)), shares_(shares) {
    if (client_.servers == ServersFor::kTenant) {
      groups_[client_.chain] = servers.group(client_.tenant);
    } else if (client_.servers == ServersFor::kProcess) {
      groups_[client_.chain] = servers.group(client_.chain);
    }
  }

  /// Of the process `name`; the chain's own process has the chain's name. nullopt, with the reason: it has no device.
  std::optional<Group> of(std::string const& name, std::string* why) {
    const std::scoped_lock lock(mutex_);
    if (client_.servers == ServersFor::kDevice) {
      return own_or_common(why);
    }
    Group& group = groups_[client_.servers == ServersFor::kProcess ? name : client_.chain];
    if (group == nullptr) {
      group = servers_->group(name);
    }
    return group;
  }

 private:
  /// The common server, or that of a user who has taken it down.
  std::optional<Group> own_or_common(std::string* why) {
    Group& own = groups_[client_.owner];
    if (own == nullptr) {
      const std::string separation = servers_->separation_of(client_.owner);
      if (separation.empty()) {
        return nullptr;
      }
      if (shares_) {
        *why = concat(separation, ", and a shared GPU needs the common device server");
        return std::nullopt;
      }
      spdlog::warn("{} has a device server of its user's own: {}", client_.chain, separation);
      own = servers_->group(client_.owner);
    }
    return own;
  }

  device::remote::ServerPool* servers_;
  ServerClient client_;
  bool shares_;
  std::mutex mutex_;
  std::map<std::string, Group, std::less<>> groups_;  ///< by process, or the user's
};

}  // namespace

device::remote::ServerLimits server_limits(std::optional<chain::SharingOptions> const& sharing) {
  device::remote::ServerLimits limits;
  limits.one_at_a_time = sharing && sharing->mode == share::Mode::kTemporal;
  return limits;
}

Result<ServersFor> parse_servers_for(std::string_view text) {
  if (text == "device") {
    return ServersFor::kDevice;
  }
  if (text == "tenant") {
    return ServersFor::kTenant;
  }
  if (text == "process") {
    return ServersFor::kProcess;
  }
  return absl::InvalidArgumentError(concat("--device-servers is device, tenant or process, and not '", text, "'"));
}

Status check_servers(ServersFor servers, std::optional<chain::SharingOptions> const& sharing) {
  if (servers == ServersFor::kDevice || !sharing || sharing->mode == share::Mode::kUncoordinated) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      concat("--share ", share::to_string(sharing->mode),
             " divides the device of one device server; it needs `--device-servers device`, or leave --share out"));
}

void use_servers(device::remote::ServerPool& servers, ServerClient const& client, RunOptions& options) {
  // held for as long as the chain may start its processes again
  const auto groups =
      std::make_shared<ServerGroups>(servers, client, !check_servers(ServersFor::kTenant, options.sharing).ok());
  options.device_returns = true;
  options.processes.connect_device = [&servers, client, groups](std::string const& nf, std::string const& text,
                                                                std::string* why) -> Result<FileDescriptor> {
    CATENA_ASSIGN_OR_RETURN(const device::DevicePreference preference, device::parse_preference(text));
    const std::string name = concat(client.chain, "/", nf);
    const std::optional<ServerGroups::Group> group = groups->of(name, why);
    if (!group) {
      return FileDescriptor();
    }
    return unless_in_quarantine(do_process_work([&] {
                                  return servers.connect(preference, {name, client.owner}, why, group->get());
                                }),
                                client.chain, why);
  };
  options.open_device = [&servers, client, groups](device::DevicePreference const& preference,
                                                   std::string* why) -> Result<std::unique_ptr<device::Device>> {
    const std::optional<ServerGroups::Group> group = groups->of(client.chain, why);
    if (!group) {
      return nullptr;
    }
    return unless_in_quarantine(do_process_work([&] {
                                  return servers.open(preference, {client.chain, client.owner}, why, group->get());
                                }),
                                client.chain, why);
  };
}

}  // namespace catena::runtime
