// SPDX-License-Identifier: Apache-2.0
#include "firewall.hpp"

#include <catena/core/text.hpp>
#include <catena/packet/flow_key.hpp>

#include <algorithm>
#include <iterator>

#include "catena_kernel_classify.hpp"
#include "functions/classify/bit_vector.hpp"
#include "functions/classify/device_state.hpp"

namespace catena::firewall {
namespace {

enum Reason : std::uint32_t { kDenied = 0, kFragment = 1, kMalformed = 2 };
constexpr std::array<nf::DropReason, 3> kDropReasons{{
    {"denied", "the first matching rule, or the default, denies the packet"},
    {"fragment", "a first fragment without its whole TCP, UDP or ICMP header, or a TCP fragment starting inside one"},
    {"malformed", "TCP or UDP with a truncated header or a wrong length, so the ports are unknown"},
}};

constexpr std::array<nf::ConfigKey, 3> kConfig{{
    {"rules", "file", "",
     "up to 10,000 rules, one per line: `action protocol source destination source-port destination-port`, or "
     "ClassBench"},
    {"default", "allow | deny", "", "action for packets without a matching rule"},
    {"classbench_action", "allow | deny", "deny", "action of ClassBench lines, which name no action"},
}};

Result<classify::Action> read_action(nf::Config& config, std::string_view key, std::string_view fallback) {
  CATENA_ASSIGN_OR_RETURN(const std::string word, config.one_of(key, {"allow", "deny"}, fallback));
  return word == "allow" ? classify::Action::kAllow : classify::Action::kDeny;
}

/// The Action of the default, then of each rule.
std::vector<std::uint8_t> actions_of(std::vector<classify::Rule> const& rules, classify::Action fallback) {
  std::vector<std::uint8_t> actions{static_cast<std::uint8_t>(fallback)};
  std::transform(rules.begin(), rules.end(), std::back_inserter(actions),
                 [](classify::Rule const& rule) { return static_cast<std::uint8_t>(rule.action); });
  return actions;
}

/// rte_acl's answer, 0 or 1 + position, as ours.
std::int32_t rule_of(std::uint32_t match) { return static_cast<std::int32_t>(match) - 1; }

}  // namespace

Firewall::Firewall(std::shared_ptr<const Tables> tables) : tables_(std::move(tables)) {
  std::transform(keys_.begin(), keys_.end(), key_pointers_.begin(),
                 [](classify::AclKey const& key) { return reinterpret_cast<const std::uint8_t*>(&key); });
}

Result<std::unique_ptr<nf::Nf>> Firewall::create(nf::Config& config) {
  CATENA_ASSIGN_OR_RETURN(const std::string path, config.path("rules"));
  CATENA_ASSIGN_OR_RETURN(const classify::Action fallback, read_action(config, "default", ""));
  CATENA_ASSIGN_OR_RETURN(const classify::Action classbench_action, read_action(config, "classbench_action", "deny"));
  CATENA_RETURN_IF_ERROR(config.finish());
  CATENA_ASSIGN_OR_RETURN(classify::RuleFile file, classify::load_rules(path, classbench_action));
  CATENA_ASSIGN_OR_RETURN(classify::Acl acl, classify::Acl::create(file.rules));
  std::vector<std::uint8_t> actions = actions_of(file.rules, fallback);
  return std::unique_ptr<nf::Nf>(new Firewall(std::make_shared<const Tables>(
      Tables{std::move(file), std::move(acl), std::move(actions), config.on_unsupported()})));
}

Result<std::unique_ptr<nf::Nf>> Firewall::replicate(std::uint32_t /*shard*/) const {
  return std::unique_ptr<nf::Nf>(new Firewall(tables_));
}

nf::Hints Firewall::hints() const {
  nf::Hints hints;
  hints.cr = packet::fields(packet::kIpv4Src, packet::kIpv4Dst, packet::kIpv4Protocol, packet::kL4Sport,
                            packet::kL4Dport, packet::kMetaLayers);
  hints.gr = hints.cr;
  return hints;
}

void Firewall::compute(packet::Batch const& batch, std::span<const std::byte>, std::span<std::byte> results) {
  std::int32_t* rules = &nf::array_of<classify::ClassifyResult>(results).data()->rule;
  for (std::uint32_t first = 0; first < batch.size(); first += kChunk) {
    classify(batch, first, std::min(kChunk, batch.size() - first), rules + first);
  }
}

void Firewall::classify(packet::Batch const& batch, std::uint32_t first, std::uint32_t count, std::int32_t* rules) {
  // a copy of the batch's pointers: through a reference the compiler would load them again after each key it writes
  const packet::MetaColumns meta = batch.meta();
  const packet::Batch packets(batch.memory(), meta, batch.slots().subspan(first, count));
  std::uint32_t with_ports = 0;
  std::uint32_t without_ports = kChunk;
  for (std::uint32_t i = 0; i < count; ++i) {
    const packet::Packet packet = packets[i];
    const packet::PacketFlow flow = packet::flow_of(packet.frame(), packet.layers());
    const std::uint32_t at = flow.has_ports ? with_ports++ : --without_ports;
    classify::write_acl_key(flow.key, keys_[at]);
    positions_[at] = i;
  }
  tables_->acl.find_with_ports(key_pointers_.data(), matches_.data(), with_ports);
  if (with_ports == count) {
    std::transform(matches_.begin(), matches_.begin() + count, rules, rule_of);
    return;
  }
  tables_->acl.find_without_ports(key_pointers_.data() + without_ports, matches_.data() + without_ports,
                                  kChunk - without_ports);
  for (std::uint32_t at = 0; at < with_ports; ++at) {
    rules[positions_[at]] = rule_of(matches_[at]);
  }
  for (std::uint32_t at = without_ports; at < kChunk; ++at) {
    const std::int32_t refused = classify::refusal(packets[positions_[at]].layers().flags, keys_[at].protocol);
    rules[positions_[at]] = refused != classify::kNoRule ? refused : rule_of(matches_[at]);
  }
}

bool Firewall::allows(classify::ClassifyResult result) const {
  // a number that no rule has can only come from a device gone wrong: deny
  const std::uint32_t number = static_cast<std::uint32_t>(result.rule) + 1U;
  std::vector<std::uint8_t> const& actions = tables_->actions;
  return number < actions.size() && actions[number] == static_cast<std::uint8_t>(classify::Action::kAllow);
}

void Firewall::complete(nf::Completion const& completion) {
  packet::Batch const& batch = completion.batch();
  nf::Outcome& outcome = completion.outcome();
  const std::span<const classify::ClassifyResult> decisions = completion.results<classify::ClassifyResult>();
  std::size_t allowed = 0;
  for (classify::ClassifyResult const& decision : decisions) {
    allowed += allows(decision) ? 1U : 0U;
  }
  if (allowed == decisions.size() && !outcome.recording()) {
    return;
  }
  for (std::uint32_t i = 0; i < batch.size(); ++i) {
    const std::int32_t rule = decisions[i].rule;
    const bool is_allowed = allows(decisions[i]);
    const std::uint32_t reason = rule == classify::kSplitFragment ? kFragment
                                 : rule == classify::kUnreadable  ? kMalformed
                                                                  : kDenied;
    if (!is_allowed) {
      outcome.drop(batch[i], reason);
    }
    if (outcome.recording()) {
      outcome.record(batch[i], is_allowed ? packet::Verdict::kPass : packet::Verdict::kDrop,
                     is_allowed ? -1 : static_cast<std::int32_t>(reason),
                     reason == kDenied ? concat("\"rule\":", rule) : std::string());
    }
  }
}

Result<nf::KernelSide> Firewall::kernel_side() const {
  nf::KernelSide side;
  side.spec.source = catena_kernel_classify();
  side.spec.name = "classify";
  side.state = classify::device_state(classify::build_bit_vector(tables_->file.rules));
  return side;
}

std::vector<std::string> Firewall::start_report() const {
  classify::RuleFile const& file = tables_->file;
  const auto allowing = std::count_if(file.rules.begin(), file.rules.end(), [](classify::Rule const& rule) {
    return rule.action == classify::Action::kAllow;
  });
  const bool allows_others = tables_->actions[0] == static_cast<std::uint8_t>(classify::Action::kAllow);
  std::vector<std::string> lines{concat(file.rules.size(), " rules: ", allowing, " allow, ",
                                        file.rules.size() - static_cast<std::size_t>(allowing), " deny; default ",
                                        allows_others ? "allow" : "deny")};
  if (!allows_others && tables_->on_unsupported == nf::OnUnsupported::kPass) {
    lines.push_back(concat(nf::kWarning,
                           "`default: deny`, but `on_unsupported: pass` lets packets that are not IPv4 pass "
                           "without a rule, IPv6 among them. Write `on_unsupported: drop`"));
  }
  if (file.flagged_lines > 0) {
    lines.push_back(concat("the TCP flags of ", file.flagged_lines, " ClassBench rules are ignored"));
  }
  return lines;
}

}  // namespace catena::firewall

catena::nf::Descriptor const& catena_nf_firewall() {
  static constexpr catena::nf::Descriptor kDescriptor{
      .type = "firewall",
      .help = "allows or denies packets by rules over addresses, ports and protocol; the first match wins",
      .needs = catena::packet::kIpv4,
      .refuses = 0,
      .on_unsupported_default = catena::nf::OnUnsupported::kDrop,
      .is_inspector = true,
      .drop_reasons = catena::firewall::kDropReasons,
      .config = catena::firewall::kConfig,
      .aux_bytes = 0,
      .result_bytes = sizeof(catena::classify::ClassifyResult),
      .has_kernel = true,
      .sharding = catena::nf::Sharding::kPacket,
      .create = &catena::firewall::Firewall::create,
  };
  return kDescriptor;
}
