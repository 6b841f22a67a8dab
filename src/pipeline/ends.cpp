// SPDX-License-Identifier: Apache-2.0
#include "pipeline/ends.hpp"

#include "chain/port_kind.hpp"
#include "io/eal/eal.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace catena::runtime {

using chain::PortConfig;

namespace {

/// "0000:03:00.0" or "03:00.0", with or without parameters after it.
bool is_pci_address(std::string const& device) {
  const std::string head = device.substr(0, device.find(','));
  return std::count(head.begin(), head.end(), ':') >= 1 && head.find('.') != std::string::npos &&
         head.find_first_not_of("0123456789abcdefABCDEF:.") == std::string::npos;
}

Result<chain::Sources> open_sources(PortConfig const& rx, std::span<io::DpdkPort> ports, ShardMap& shard_map,
                                    std::stop_token const& give_up) {
  if (!rx.kind->is_for_rx()) {
    return absl::InvalidArgumentError(concat("rx cannot be ", rx.kind->name));
  }
  const io::PartOf part_of = [&shard_map](packet::Packet const& packet) { return shard_map.shard_of(packet); };
  return rx.kind->rx.open({rx, ports, part_of, give_up});
}

/// Null for a kind that writes a file.
std::unique_ptr<io::Sink> open_sink(PortConfig const& tx, io::DpdkPort& port) {
  return tx.kind->tx.open == nullptr ? nullptr : tx.kind->tx.open(tx, port);
}

}  // namespace

Status start_eal_for(PortConfig const& rx, PortConfig const& tx) {
  std::vector<std::string> arguments;
  for (PortConfig const* port : {&rx, &tx}) {
    for (std::string const& device : port->devices) {
      if (!is_pci_address(device)) {
        continue;
      }
      if (arguments.empty()) {
        arguments.emplace_back("--in-memory");
      }
      if (std::string allow = concat("--allow=", device);
          std::find(arguments.begin(), arguments.end(), allow) == arguments.end()) {
        arguments.push_back(std::move(allow));
      }
    }
  }
  return arguments.empty() ? absl::OkStatus() : eal::start(arguments);
}

Status Ends::make_pools(std::size_t number, PoolSize const& size, Ends const* before) {
  if (before != nullptr && before->pools_.size() != number) {
    return absl::FailedPreconditionError("its shards divide packets differently");
  }
  for (std::size_t i = 0; i < number; ++i) {
    CATENA_ASSIGN_OR_RETURN(
        std::shared_ptr<memory::PacketPool> pool,
        before != nullptr
            ? memory::PacketPool::create_beside(before->pools_[i], size.unit_packets, size.queues, size.parts)
            : memory::PacketPool::create(size.slots, size.unit_packets, size.queues, size.parts));
    add_pool(std::move(pool));
  }
  return absl::OkStatus();
}

void Ends::add_pool(std::shared_ptr<memory::PacketPool> pool) {
  reserves_.push_back(std::make_unique<BufferReservation>(*pool));
  pools_.push_back(std::move(pool));
}

Status Ends::open_ports(chain::ChainConfig const& config, RunOptions const& options, ShardMap shard_map,
                        Ends const* before) {
  if (before != nullptr) {
    for (auto const& source : before->sources_) {
      sources_.push_back(io::SharedSource::after(*source));
    }
    return absl::OkStatus();
  }
  const std::vector<std::string> none;
  std::vector<memory::PacketPool*> of;
  for (auto const& pool : pools_) {
    of.push_back(pool.get());
  }
  io::SharedEnds shared{nullptr, config.rx.is_shared, config.tx.is_shared, config.name, config.rx.matches};
  if (shared.rx || shared.tx) {
    shared.switches = options.switches != nullptr ? options.switches : io::make_shared_port_registry();
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<io::DpdkPort> ports,
                          io::open_dpdk_ports(options.make_source ? none : config.rx.devices,
                                              options.make_sink ? none : config.tx.devices, of, shared));
  chain::Sources sources;
  if (options.make_source) {
    CATENA_ASSIGN_OR_RETURN(sources.emplace_back(), options.make_source());
  } else {
    CATENA_ASSIGN_OR_RETURN(sources, open_sources(config.rx, ports, shard_map, options.processes.give_up));
  }
  for (auto& source : sources) {
    sources_.push_back(std::make_unique<io::SharedSource>(std::move(source)));
  }
  if (options.make_sink) {
    CATENA_ASSIGN_OR_RETURN(opened_sinks_.emplace_back(), options.make_sink());
  } else {
    std::transform(ports.begin(), ports.end(), std::back_inserter(opened_sinks_),
                   [&config](io::DpdkPort& port) { return open_sink(config.tx, port); });
  }
  return absl::OkStatus();
}

Status Ends::open_outputs(chain::ChainConfig const& config, RunOptions const& options,
                          std::vector<nf::Instance const*> nfs, std::stop_token const& give_up, Ends const* before) {
  if (before != nullptr) {
    outputs_ = before->outputs_;
    for (auto const& sink : before->sinks_) {
      sinks_.push_back(io::SharedSink::after(*sink));
    }
    return absl::OkStatus();
  }
  CATENA_ASSIGN_OR_RETURN(Outputs outputs,
                          Outputs::open(config, options, std::move(opened_sinks_.front()), std::move(nfs), give_up));
  outputs_ = std::make_shared<Outputs>(std::move(outputs));
  opened_sinks_.front() = outputs_->sink();
  for (std::shared_ptr<io::Sink>& sink : opened_sinks_) {
    sinks_.push_back(std::make_unique<io::SharedSink>(std::move(sink)));
  }
  opened_sinks_.clear();
  return absl::OkStatus();
}

std::uint64_t Ends::slots() const {
  std::uint64_t slots = 0;
  for (auto const& pool : pools_) {
    slots += pool->slots();
  }
  return slots;
}

std::uint64_t Ends::used_slots() const {
  std::uint64_t used = 0;
  for (auto const& pool : pools_) {
    used += pool->slots() - pool->free_slots();
  }
  return used;
}

void Ends::start() {
  for (auto const& source : sources_) {
    source->start();
  }
}

void Ends::stop() {
  for (auto const& source : sources_) {
    source->stop();
  }
}

bool Ends::pass_on_sources() {
  bool all = true;
  for (auto const& source : sources_) {
    all = source->transfer() && all;
  }
  return all;
}

void Ends::pass_on_sinks() {
  for (auto const& sink : sinks_) {
    sink->transfer();
  }
}

Status Ends::finish(std::span<const StageTrace> stages, bool is_passed_on) {
  if (!is_passed_on) {
    return outputs_->finish(stages);
  }
  Status status;
  for (auto const& sink : sinks_) {
    status.Update(sink->finish());
  }
  return status;
}

}  // namespace catena::runtime
