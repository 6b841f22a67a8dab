// SPDX-License-Identifier: Apache-2.0
#include "service_table.hpp"

#include <algorithm>
#include <map>

namespace catena::lb {
namespace {

/// Hands out the numbers that nobody uses, lowest first, then new ones up to a limit.
class NumberPool {
 public:
  NumberPool(std::vector<bool> used, std::size_t limit) : used_(std::move(used)), limit_(limit) {}

  bool take(std::uint16_t& number) {
    while (next_ < used_.size() && used_[next_]) {
      ++next_;
    }
    if (next_ >= limit_) {
      return false;
    }
    number = static_cast<std::uint16_t>(next_++);
    return true;
  }

 private:
  std::vector<bool> used_;
  std::size_t limit_;
  std::size_t next_ = 0;
};

}  // namespace

struct ServiceTable::Draft {
  std::vector<std::uint16_t> services;               ///< by position in the list
  std::vector<std::vector<std::uint16_t>> backends;  ///< by position of the service, then in its list
};

Status ServiceTable::update(std::span<const Service> services, FlowCount const& flows_of) {
  if (const auto mistake = find_mistake(services, table_size_)) {
    return absl::InvalidArgumentError(mistake->message);
  }
  CATENA_ASSIGN_OR_RETURN(const Draft draft, number(services, flows_of));
  apply(services, draft);
  return absl::OkStatus();
}

ServiceTable ServiceTable::without_counts() const {
  ServiceTable same(table_size_);
  same.services_ = services_;
  for (BackendRecord const& backend : backends_) {
    same.backends_.push_back({.name = backend.name,
                              .endpoint = backend.endpoint,
                              .service = backend.service,
                              .weight = backend.weight,
                              .state = backend.state,
                              .listed = backend.listed});
  }
  same.rebuild_indexes();
  return same;
}

void ServiceTable::take_counts(ServiceTable const& before) {
  for (std::size_t i = 0; i < before.backends_.size(); ++i) {
    BackendRecord const& theirs = before.backends_[i];
    BackendRecord& mine = backends_[i];
    // else the number went to another one
    const bool is_same = mine.service == theirs.service && mine.name == theirs.name &&
                         mine.endpoint == theirs.endpoint && mine.service < services_.size() &&
                         theirs.service < before.services_.size() &&
                         services_[mine.service].endpoint == before.services_[theirs.service].endpoint;
    mine.packets = is_same ? theirs.packets : mine.packets;
  }
}

Result<ServiceTable::Draft> ServiceTable::number(std::span<const Service> services, FlowCount const& flows_of) const {
  std::vector<bool> services_used(services_.size());
  std::vector<bool> backends_used(backends_.size());
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    if (flows_of(static_cast<std::uint16_t>(i)) > 0) {
      backends_used[i] = true;
      services_used[backends_[i].service] = true;
    }
  }
  Draft draft{std::vector<std::uint16_t>(services.size(), kNone), {}};
  for (std::size_t i = 0; i < services.size(); ++i) {
    const auto same = std::find_if(services_.begin(), services_.end(), [&](ServiceRecord const& record) {
      return record.endpoint == services[i].endpoint;
    });
    if (same != services_.end()) {
      draft.services[i] = static_cast<std::uint16_t>(same - services_.begin());
      services_used[draft.services[i]] = true;
    }
    std::vector<std::uint16_t>& numbers = draft.backends.emplace_back(services[i].backends.size(), kNone);
    for (std::size_t j = 0; j < numbers.size() && same != services_.end(); ++j) {
      Backend const& wanted = services[i].backends[j];
      const auto found = std::find_if(backends_.begin(), backends_.end(), [&](BackendRecord const& record) {
        return record.service == draft.services[i] && record.name == wanted.name &&
               record.endpoint.address == wanted.address && record.endpoint.port == wanted.port;
      });
      if (found != backends_.end()) {
        numbers[j] = static_cast<std::uint16_t>(found - backends_.begin());
        backends_used[numbers[j]] = true;
      }
    }
  }
  NumberPool service_numbers(std::move(services_used), kServiceNumbers);
  NumberPool backend_numbers(std::move(backends_used), kBackendNumbers);
  for (std::size_t i = 0; i < services.size(); ++i) {
    bool enough = draft.services[i] != kNone || service_numbers.take(draft.services[i]);
    for (std::uint16_t& backend : draft.backends[i]) {
      enough = enough && (backend != kNone || backend_numbers.take(backend));
    }
    if (!enough) {
      return absl::ResourceExhaustedError(
          "too many removed services and backends still have flows; update again when these have ended");
    }
  }
  return draft;
}

void ServiceTable::apply(std::span<const Service> services, Draft const& draft) {
  for (ServiceRecord& record : services_) {
    record.listed = false;
    record.maglev = MaglevTable();
  }
  for (BackendRecord& record : backends_) {
    record.listed = false;
    record.state = BackendState::kDown;
  }
  for (std::size_t i = 0; i < services.size(); ++i) {
    const std::uint16_t service = draft.services[i];
    services_.resize(std::max<std::size_t>(services_.size(), service + 1U));
    services_[service].endpoint = services[i].endpoint;
    services_[service].listed = true;
    for (std::size_t j = 0; j < services[i].backends.size(); ++j) {
      Backend const& wanted = services[i].backends[j];
      const std::uint16_t backend = draft.backends[i][j];
      const Endpoint endpoint{wanted.address, wanted.port, services[i].endpoint.protocol};
      backends_.resize(std::max<std::size_t>(backends_.size(), backend + 1U));
      BackendRecord& record = backends_[backend];
      const bool stays = record.service == service && record.name == wanted.name && record.endpoint == endpoint;
      record = {.name = wanted.name,
                .endpoint = endpoint,
                .service = service,
                .weight = wanted.weight,
                .state = wanted.state,
                .listed = true,
                .packets = stays ? record.packets : 0};
    }
    rebuild_maglev(service);
  }
  rebuild_indexes();
}

void ServiceTable::rebuild_maglev(std::uint16_t service) {
  std::vector<MaglevMember> members;
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    BackendRecord const& backend = backends_[i];
    if (backend.service == service && backend.state == BackendState::kUp) {
      members.push_back({backend.name, backend.weight, static_cast<std::uint16_t>(i)});
    }
  }
  services_[service].maglev = MaglevTable(members, table_size_);
}

void ServiceTable::rebuild_indexes() {
  std::vector<EndpointIndex::Entry> endpoints;
  std::vector<EndpointIndex::Entry> addresses;
  for (std::size_t i = 0; i < services_.size(); ++i) {
    if (services_[i].listed) {
      const Endpoint endpoint = services_[i].endpoint;
      endpoints.push_back({endpoint, static_cast<std::uint16_t>(i)});
      addresses.push_back({{endpoint.address, 0, endpoint.protocol}, static_cast<std::uint16_t>(i)});
    }
  }
  std::vector<EndpointIndex::Entry> backends;
  std::map<std::uint64_t, std::uint32_t> listings;  // how many services list the endpoint
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    backends.push_back({backends_[i].endpoint, static_cast<std::uint16_t>(i)});
    listings[backends_[i].endpoint.key()] += backends_[i].listed ? 1U : 0U;
  }
  std::vector<EndpointIndex::Entry> only;
  for (std::size_t i = 0; i < backends_.size(); ++i) {
    if (backends_[i].listed && listings[backends_[i].endpoint.key()] == 1) {
      only.push_back(backends[i]);
    }
  }
  only_backends_ = EndpointIndex(only);
  by_endpoint_ = EndpointIndex(endpoints);
  addresses_ = EndpointIndex(addresses);
  backend_endpoints_ = EndpointIndex(backends);
}

std::uint64_t ServiceTable::record_bytes() const {
  return backends_.size() * sizeof(BackendRecord) + services_.size() * sizeof(ServiceRecord);
}

std::uint64_t ServiceTable::maglev_bytes() const {
  std::uint64_t bytes = 0;
  for (ServiceRecord const& service : services_) {
    bytes += service.maglev.entries().size_bytes();
  }
  return bytes;
}

}  // namespace catena::lb
