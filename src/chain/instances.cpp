// SPDX-License-Identifier: Apache-2.0
#include "chain/instances.hpp"

#include "chain/diagnostics.hpp"
#include "chain/port_kind.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <iterator>

namespace catena::chain {

nf::Ends ends_of(PortConfig const& rx, PortConfig const& tx) {
  return {.live_rx = rx.kind->is_live, .live_tx = tx.kind->is_live};
}

namespace {

class UnknownNf final : public nf::Nf {
 public:
  nf::Hints hints() const override { return {.cr = packet::kAllFields, .cw = packet::kAllFields}; }
  void compute(packet::Batch const& /*batch*/, std::span<const std::byte> /*aux*/,
               std::span<std::byte> /*results*/) override {}
};

}  // namespace

std::unique_ptr<nf::Instance> stand_in_for_plugin(NfConfig const& config) {
  static constexpr nf::Descriptor kUnknown{
      .type = "plugin", .help = "an NF known only to its process", .drop_reasons = {}, .config = {}};
  return std::make_unique<nf::Instance>(config.name, kUnknown, std::make_unique<UnknownNf>(), nf::OnUnsupported::kPass,
                                        false);
}

Status as_refusal(Status const& of_nf) {
  return absl::IsFailedPrecondition(of_nf) ? absl::InvalidArgumentError(of_nf.message()) : of_nf;
}

Result<std::unique_ptr<nf::Instance>> make_instance(NfConfig const& config, nf::Registry const& registry,
                                                    bool recording, nf::Ends ends, nf::Shard shard) {
  Result<nf::Descriptor const*> descriptor = registry.find(config.type);
  if (!descriptor.ok()) {
    return absl::NotFoundError(concat(config.position, ": ", std::string(descriptor.status().message())));
  }
  nf::Config own = config.config;
  const nf::OnUnsupported on_unsupported = config.on_unsupported.value_or((*descriptor)->on_unsupported_default);
  own.set_ends(ends);
  own.set_on_unsupported(on_unsupported);
  own.set_shard(shard);
  Result<std::unique_ptr<nf::Nf>> nf = (*descriptor)->create(own);
  if (!nf.ok()) {
    // create() ends with its first error: keys that are unknown are said with it
    for (nf::ConfigKey const& key : (*descriptor)->config) {
      own.has(key.name);  // not so those that it did not come to
    }
    Diagnostics diagnostics;
    diagnostics.add(as_refusal(nf.status()));
    diagnostics.add(own.finish());
    return diagnostics.status();
  }
  if (config.on == plan::Processor::kGpu && !(*descriptor)->has_kernel) {
    return no_kernel(config);
  }
  return std::make_unique<nf::Instance>(config.name, **descriptor, std::move(nf).value(), on_unsupported, recording,
                                        config.link_local);
}

Status no_kernel(NfConfig const& config) {
  return absl::InvalidArgumentError(
      concat(config.position, ": NF '", config.name, "': type '", config.type, "' has no kernel; write `on: cpu`"));
}

Status can_run_on_gpu(NfConfig const& config, nf::Instance& instance) {
  return instance.descriptor().has_kernel
             ? make_kernel_side(config, instance).status()
             : absl::InvalidArgumentError(concat("type '", config.type, "' has no kernel"));
}

Result<std::unique_ptr<nf::Instance>> replicate(NfConfig const& config, nf::Instance const& first, nf::Shard shard) {
  Result<std::unique_ptr<nf::Nf>> nf = first.nf().replicate(shard.index);
  if (nf.ok() && *nf == nullptr) {
    nf::Config own = config.config;  // with what the first one was told of the chain
    own.set_shard(shard);
    nf = first.descriptor().create(own);
  }
  CATENA_RETURN_IF_ERROR(as_refusal(nf.status()));
  return std::make_unique<nf::Instance>(config.name, first.descriptor(), *std::move(nf),
                                        config.on_unsupported.value_or(first.descriptor().on_unsupported_default),
                                        first.outcome().recording(), config.link_local);
}

std::vector<nf::Instance*> pointers_to(std::span<const std::unique_ptr<nf::Instance>> instances) {
  std::vector<nf::Instance*> pointers;
  std::ranges::transform(instances, std::back_inserter(pointers), [](auto const& instance) { return instance.get(); });
  return pointers;
}

std::vector<nf::Refusal> refusals_of(nf::Instance& instance) {
  auto const* refusing = dynamic_cast<nf::Refusing const*>(&instance.nf());
  return refusing == nullptr ? std::vector<nf::Refusal>() : refusing->refusals();
}

std::vector<std::string> warnings_of(nf::Instance const& instance) {
  std::vector<std::string> warnings;
  for (std::string const& line : instance.nf().start_report()) {
    if (line.starts_with(nf::kWarning)) {
      warnings.push_back(concat("NF '", instance.name(), "': ", line.substr(nf::kWarning.size())));
    }
  }
  return warnings;
}

Result<nf::KernelSide> make_kernel_side(NfConfig const& config, nf::Instance& instance) {
  Result<nf::KernelSide> side = instance.nf().kernel_side();
  if (!side.ok()) {
    return Status(as_refusal(side.status()).code(),
                  concat(config.position, ": NF '", config.name,
                         "' cannot run on the gpu: ", std::string(side.status().message())));
  }
  return side;
}

Result<std::vector<NextNodeTable>> next_node_tables(ChainConfig const& config,
                                                    std::span<nf::Instance* const> instances) {
  std::vector<NextNodeTable> tables;
  if (!config.graph) {
    return tables;
  }
  Diagnostics diagnostics;
  const auto add = [&](std::size_t from, std::span<const nf::PacketOutput> outputs) {
    Result<NextNodeTable> table = NextNodeTable::create(*config.graph, from, outputs);
    diagnostics.add(table.status());
    if (table.ok()) {
      tables.push_back(*std::move(table));
    }
  };
  add(kRx, {});
  for (std::size_t nf = 0; nf < instances.size(); ++nf) {
    add(nf, instances[nf]->descriptor().packet_outputs);
  }
  CATENA_RETURN_IF_ERROR(diagnostics.status());
  return tables;
}

}  // namespace catena::chain
