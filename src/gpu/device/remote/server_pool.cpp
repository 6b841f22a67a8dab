// SPDX-License-Identifier: Apache-2.0
#include "gpu/device/remote/server_pool.hpp"

#include <catena/core/text.hpp>

#include "gpu/device/remote/device.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>

namespace catena::device::remote {
namespace {

/// How long a server may take to open its device, or to say that there is none.
constexpr std::chrono::seconds kStartLimit{30};
constexpr std::chrono::milliseconds kStartPeriod{5};

/// Whether `name` is `client` or a part of it.
bool is_of(std::string_view client, std::string_view name) {
  return name.starts_with(client) && (name.size() == client.size() || name[client.size()] == '/');
}

}  // namespace

void ServerPool::judge(std::string const& server, Supervisor::Death const& death) {
  const std::scoped_lock lock(mutex_);
  for (auto& [name, suspicion] : suspicions_) {
    if (suspicion.server == server) {
      suspicion.let_in_at.reset();  // whoever was on probation begins anew
    }
  }
  if (!death.is_fault) {
    return;
  }
  for (Supervisor::Suspect const& suspect : death.suspects) {
    std::string const& name = suspect.client.name;
    Suspicion& suspicion = suspicions_[name];
    suspicion.server = server;
    if (death.suspects.size() == 1) {
      suspicion.quarantine = concat("its work (", suspect.kernels, ") took the device down: ", death.reason);
      spdlog::error("{} is in quarantine: {}", name, suspicion.quarantine);
      if (!suspect.client.owner.empty()) {
        std::vector<Clock::time_point>& offences = offences_[suspect.client.owner];
        std::erase_if(offences, [&](Clock::time_point at) { return at < Clock::now() - options_.offence_memory; });
        offences.push_back(Clock::now());
      }
    } else {
      spdlog::warn("{} is one of {} whose kernel may have taken the device down: it is let back alone", name,
                   death.suspects.size());
    }
  }
}

/// With the lock held.
Status ServerPool::admit(std::string_view client) {
  const Clock::time_point now = Clock::now();
  const auto is_cleared = [&](Suspicion const& suspicion) {
    return suspicion.quarantine.empty() && suspicion.let_in_at && now - *suspicion.let_in_at > options_.probation;
  };
  std::erase_if(suspicions_, [&](auto const& entry) { return is_cleared(entry.second); });
  const auto own = suspicions_.find(client);
  if (own == suspicions_.end()) {
    return absl::OkStatus();
  }
  if (!own->second.quarantine.empty()) {
    return absl::FailedPreconditionError(concat(client, " is in quarantine: ", own->second.quarantine));
  }
  for (auto const& [name, other] : suspicions_) {
    if (name != client && other.server == own->second.server && other.let_in_at) {
      return absl::UnavailableError(concat(client, " waits for its turn: ", name, " is on probation"));
    }
  }
  if (!own->second.let_in_at) {
    own->second.let_in_at = now;
  }
  return absl::OkStatus();
}

std::shared_ptr<ServerPool::Group> ServerPool::group(std::string const& name) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(groups_, [](auto const& entry) { return entry.second.expired(); });
  std::weak_ptr<Group>& known = groups_[name];
  std::shared_ptr<Group> group = known.lock();
  if (group == nullptr) {
    group = std::make_shared<Group>();
    group->name_ = name;
    known = group;
  }
  return group;
}

/// With the lock held.
Result<Supervisor*> ServerPool::server_of(DevicePreference const& preference, Group* group) {
  Group& owner = group == nullptr ? common_ : *group;
  std::unique_ptr<Supervisor>& server = owner.servers_[to_string(preference)];
  if (server == nullptr) {
    CATENA_ASSIGN_OR_RETURN(server, Supervisor::start({options_.program, to_string(preference), options_.limits},
                                                      [this, name = concat(to_string(preference), " of ", owner.name_)](
                                                          Supervisor::Death const& death) { judge(name, death); }));
  }
  return server.get();
}

Result<std::unique_ptr<Device>> ServerPool::open(DevicePreference const& preference, Client const& client,
                                                 std::string* why, Group* group) {
  if (preference.kind == DevicePreference::Kind::kNone) {
    return nullptr;
  }
  Supervisor* server = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    CATENA_ASSIGN_OR_RETURN(server, server_of(preference, group));
    CATENA_RETURN_IF_ERROR(admit(client.name));
  }
  const Clock::time_point begin = Clock::now();
  for (;;) {
    Result<FileDescriptor> socket = server->connect(client);
    Result<std::unique_ptr<Device>> device =
        socket.ok() ? remote::connect(*std::move(socket)) : Result<std::unique_ptr<Device>>(socket.status());
    if (device.ok()) {
      return device;
    }
    if (const std::string reason = server->no_device_reason(); !reason.empty()) {
      if (preference.kind == DevicePreference::Kind::kAuto) {
        if (why != nullptr) {
          *why = reason;
        }
        return nullptr;
      }
      return absl::UnavailableError(reason);
    }
    if (server->has_served() || Clock::now() - begin > kStartLimit) {
      return device.status();
    }
    std::this_thread::sleep_for(kStartPeriod);
  }
}

Result<FileDescriptor> ServerPool::connect(DevicePreference const& preference, Client const& client, std::string* why,
                                           Group* group) {
  // whether there is a device shows when it is opened
  CATENA_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, open(preference, client, why, group));
  if (device == nullptr) {
    return FileDescriptor();
  }
  Supervisor* server = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    CATENA_ASSIGN_OR_RETURN(server, server_of(preference, group));
  }
  return server->connect(client, Trust::kStranger);
}

Status ServerPool::reset(std::string_view client) {
  const std::scoped_lock lock(mutex_);
  const std::size_t lifted = std::erase_if(suspicions_, [client](auto const& entry) {
    return is_of(client, entry.first) && !entry.second.quarantine.empty();
  });
  return lifted > 0 ? absl::OkStatus() : absl::NotFoundError(concat("'", client, "' is not in quarantine"));
}

std::string ServerPool::quarantine_of(std::string_view client) const {
  const std::scoped_lock lock(mutex_);
  for (auto const& [name, suspicion] : suspicions_) {
    if (is_of(client, name) && !suspicion.quarantine.empty()) {
      return name == client ? suspicion.quarantine
                            : concat("NF '", name.substr(client.size() + 1), "': ", suspicion.quarantine);
    }
  }
  return "";
}

std::string ServerPool::separation_of(std::string_view owner) const {
  const std::scoped_lock lock(mutex_);
  const auto known = offences_.find(owner);
  if (known == offences_.end()) {
    return "";
  }
  const Clock::time_point since = Clock::now() - options_.offence_memory;
  const auto recent = std::ranges::count_if(known->second, [since](Clock::time_point at) { return at >= since; });
  return static_cast<std::size_t>(recent) < options_.max_offences
             ? ""
             : concat(recent, " clients of ", owner, " have taken a device down within ",
                      std::chrono::ceil<std::chrono::minutes>(options_.offence_memory).count(), " minutes");
}

int ServerPool::pid_of(DevicePreference const& preference, Group const* group) const {
  const std::scoped_lock lock(mutex_);
  auto const& servers = (group == nullptr ? common_ : *group).servers_;
  const auto found = servers.find(to_string(preference));
  return found == servers.end() || found->second == nullptr ? -1 : found->second->pid();
}

}  // namespace catena::device::remote
