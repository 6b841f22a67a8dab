// SPDX-License-Identifier: Apache-2.0
#include <catena/core/text.hpp>
#include <catena/nf/nf.hpp>
#include <catena/packet/headers.hpp>

#include "catena_kernel_classify.hpp"
#include "functions/classify/bit_vector.hpp"
#include "functions/classify/classify.layout.hpp"
#include "functions/classify/device_state.hpp"
#include "functions/classify/rule_parser.hpp"
#include "functions/classify/rule_tree.hpp"
#include "nca/function.hpp"

#include <memory>
#include <mutex>
#include <utility>

// The kernel of the firewall NF; on the host another algorithm, so that each judges the other.
namespace catena::nca {
namespace {

/// The first rule that matches; below 0 where none does, or none may.
i32 find_rule(classify::RuleTree const& tree, std::span<const std::uint8_t> packet, packet::Layers const& layers) {
  const packet::PacketFlow flow = packet::flow_of(packet.data(), layers);
  if (const i32 refusal = classify::refusal(layers.flags, flow.key.protocol); refusal != classify::kNoRule) {
    return refusal;
  }
  return tree.find(classify::key_of(flow));
}

void list(std::uint32_t packet, i32 rule, FunctionResults& results) {
  if (rule >= 0) {
    results.rules.push_back({packet, static_cast<std::uint32_t>(rule)});
  }
}

class ClassifyWorker final : public HostWorker {
 public:
  explicit ClassifyWorker(classify::RuleTree const& tree) : tree_(&tree) {}
  Status run(kernel::PackedPackets const& packets, FunctionResults& results) override {
    for (std::uint32_t row = 0; row < packets.count(); ++row) {
      if ((packets.layers(row).flags & packet::kIpv4) != 0) {
        list(row, find_rule(*tree_, packets.bytes(row), packets.layers(row)), results);
      }
    }
    return absl::OkStatus();
  }

 private:
  classify::RuleTree const* tree_;
};

class ClassifyFunction final : public Function {
 public:
  explicit ClassifyFunction(std::vector<classify::Rule> rules) : rules_(std::move(rules)) {}

  nca_kind kind() const override { return NCA_CLASSIFY; }
  bool reads_headers() const override { return true; }
  Result<std::unique_ptr<HostWorker>> host_worker() const override {
    const std::lock_guard lock(mutex_);
    if (!tree_) {
      CATENA_ASSIGN_OR_RETURN(classify::RuleTree tree, classify::RuleTree::create(rules_));
      tree_ = std::make_unique<classify::RuleTree>(std::move(tree));
    }
    return std::make_unique<ClassifyWorker>(*tree_);
  }

  Result<FunctionKernel> kernel_side() const override {
    FunctionKernel side;
    side.spec.source = catena_kernel_classify();
    side.spec.name = "classify";
    side.plan.reads = packet::fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Protocol, packet::kL4Sport,
                                     packet::kL4Dport, packet::kMetaLayers);
    side.plan.result_bytes = sizeof(classify::ClassifyResult);
    side.state = classify::device_state(classify::build_bit_vector(rules_));
    return side;
  }

  Status collect(kernel::PackedLaunch& launch, std::size_t number, FunctionResults& results) const override {
    const auto rows = nf::array_of<classify::ClassifyResult>(launch.results(number));
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      if (!has_result(launch, number, row, results)) {
        continue;
      }
      if (rows[row].rule < classify::kUnreadable || rows[row].rule >= static_cast<std::int64_t>(rules_.size())) {
        return absl::InternalError(concat("the device found rule ", rows[row].rule, " of ", rules_.size()));
      }
      list(row, rows[row].rule, results);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<classify::Rule> rules_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<classify::RuleTree> tree_;  ///< streams on the host share it
};

Result<classify::Rule> rule_of(nca_rule const& rule, std::size_t number) {
  const packet::Ipv4Prefix source{rule.source, rule.source_length};
  const packet::Ipv4Prefix destination{rule.destination, rule.destination_length};
  const bool good = source.length <= 32 && destination.length <= 32 && (source.address & ~source.mask()) == 0 &&
                    (destination.address & ~destination.mask()) == 0 && (rule.protocol & ~rule.protocol_mask) == 0 &&
                    rule.source_port_first <= rule.source_port_last &&
                    rule.destination_port_first <= rule.destination_port_last;
  if (!good) {
    return absl::InvalidArgumentError(concat("rule ", number,
                                             ": bits set after a prefix or outside the protocol's mask, a prefix "
                                             "longer than 32, or a range that ends before it begins"));
  }
  return classify::Rule{.src = source,
                        .dst = destination,
                        .sport = {rule.source_port_first, rule.source_port_last},
                        .dport = {rule.destination_port_first, rule.destination_port_last},
                        .protocol = rule.protocol,
                        .protocol_mask = rule.protocol_mask,
                        .action = classify::Action::kDeny};
}

}  // namespace

Result<std::unique_ptr<Function>> make_classify(nca_classify_config const& config) {
  if ((config.rules != nullptr) == (config.rules_file != nullptr)) {
    return absl::InvalidArgumentError("a classification needs one of rules and rules_file");
  }
  if (config.rules_file != nullptr) {
    CATENA_ASSIGN_OR_RETURN(classify::RuleFile file, classify::load_rules(config.rules_file, classify::Action::kDeny));
    return std::make_unique<ClassifyFunction>(std::move(file.rules));
  }
  if (config.rule_count == 0 || config.rule_count > classify::kMaxRules) {
    return absl::InvalidArgumentError(
        concat(config.rule_count, " rules; a classification takes 1 to ", classify::kMaxRules));
  }
  std::vector<classify::Rule> rules;
  for (std::size_t i = 0; i < config.rule_count; ++i) {
    CATENA_ASSIGN_OR_RETURN(const classify::Rule rule, rule_of(config.rules[i], i));
    rules.push_back(rule);
  }
  return std::make_unique<ClassifyFunction>(std::move(rules));
}

}  // namespace catena::nca
