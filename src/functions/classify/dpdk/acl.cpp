// SPDX-License-Identifier: Apache-2.0
#include "functions/classify/dpdk/acl.hpp"

#include "io/eal/eal.hpp"

#include <rte_acl.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <catena/core/text.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <vector>

namespace catena::classify {
namespace {

// rte_acl splits rules into several tries, all of which a lookup walks. Told how much memory it may take, it makes
// fewer and larger ones: lookups take up to half the time, building takes ten times as long. That pays for as many
// rules as this; a table that does not fit the memory is built the other way.
constexpr std::size_t kMaxRulesInLargeTries = 1000;
constexpr std::size_t kLargeTriesBytes = std::size_t{64} << 20;

enum FieldIndex : std::uint8_t { kProtocol = 0, kSrc, kDst, kSport, kDport, kFieldCount };
constexpr std::uint32_t kFieldsWithoutPorts = kSport;

// rte_acl reads one byte, then groups of four: fields of one group have the same input index
constexpr rte_acl_field_def kFields[kFieldCount] = {
    {RTE_ACL_FIELD_TYPE_BITMASK, 1, kProtocol, 0, offsetof(AclKey, protocol)},
    {RTE_ACL_FIELD_TYPE_MASK, 4, kSrc, 1, offsetof(AclKey, src)},
    {RTE_ACL_FIELD_TYPE_MASK, 4, kDst, 2, offsetof(AclKey, dst)},
    {RTE_ACL_FIELD_TYPE_RANGE, 2, kSport, 3, offsetof(AclKey, sport)},
    {RTE_ACL_FIELD_TYPE_RANGE, 2, kDport, 3, offsetof(AclKey, dport)},
};

RTE_ACL_RULE_DEF(AclRule, kFieldCount);

Status failure(std::string_view step, int error, std::size_t rules) {
  if (error == ENOMEM || error == ERANGE) {
    return absl::ResourceExhaustedError(
        concat("rte_acl cannot hold ", rules, " rules (", step, ": ", rte_strerror(error),
               "); start DPDK with more memory (-m MEGABYTES), or use fewer rules with wide ranges"));
  }
  return absl::InternalError(concat("rte_acl: ", step, ": ", rte_strerror(error)));
}

AclRule acl_rule(Rule const& rule, std::uint32_t position) {
  AclRule result{};
  result.data.category_mask = 1;
  result.data.priority = static_cast<std::int32_t>(kMaxRules - position);  // the highest wins
  result.data.userdata = position + 1;                                     // 0 is "no match"
  result.field[kProtocol].value.u8 = rule.protocol;
  result.field[kProtocol].mask_range.u8 = rule.protocol_mask;
  result.field[kSrc].value.u32 = rule.src.address;
  result.field[kSrc].mask_range.u32 = rule.src.length;
  result.field[kDst].value.u32 = rule.dst.address;
  result.field[kDst].mask_range.u32 = rule.dst.length;
  result.field[kSport].value.u16 = rule.sport.first;
  result.field[kSport].mask_range.u16 = rule.sport.last;
  result.field[kDport].value.u16 = rule.dport.first;
  result.field[kDport].mask_range.u16 = rule.dport.last;
  return result;
}

}  // namespace

void Acl::Free::operator()(rte_acl_ctx* context) const { rte_acl_free(context); }

Result<Acl> Acl::create(std::span<const Rule> rules) {
  CATENA_RETURN_IF_ERROR(eal::start());
  CATENA_ASSIGN_OR_RETURN(Table with_ports, build(rules, true));
  CATENA_ASSIGN_OR_RETURN(Table without_ports, build(rules, false));
  return Acl(std::move(with_ports), std::move(without_ports));
}

Result<Acl::Table> Acl::build(std::span<const Rule> rules, bool with_ports) {
  static std::atomic<std::uint32_t> instances{0};
  std::vector<AclRule> chosen;
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    if (with_ports || rules[i].matches_without_ports()) {
      chosen.push_back(acl_rule(rules[i], i));
    }
  }
  if (chosen.empty()) {
    return Table();  // rte_acl builds nothing of no rules
  }
  const std::string name = concat("catena_fw_", instances.fetch_add(1));
  const rte_acl_param parameters{name.c_str(), SOCKET_ID_ANY, RTE_ACL_RULE_SZ(kFieldCount),
                                 static_cast<std::uint32_t>(chosen.size())};
  Table table(rte_acl_create(&parameters));
  if (!table) {
    return failure("rte_acl_create", rte_errno, chosen.size());
  }
  if (const int rc = rte_acl_add_rules(table.get(), reinterpret_cast<const rte_acl_rule*>(chosen.data()),
                                       static_cast<std::uint32_t>(chosen.size()));
      rc != 0) {
    return failure("rte_acl_add_rules", -rc, chosen.size());
  }
  rte_acl_config config{};
  config.num_categories = 1;
  config.num_fields = with_ports ? std::uint32_t{kFieldCount} : kFieldsWithoutPorts;
  std::copy_n(kFields, config.num_fields, config.defs);
  config.max_size = chosen.size() <= kMaxRulesInLargeTries ? kLargeTriesBytes : 0;
  int rc = rte_acl_build(table.get(), &config);
  if (rc == -ERANGE && config.max_size != 0) {
    config.max_size = 0;
    rc = rte_acl_build(table.get(), &config);
  }
  if (rc != 0) {
    return failure("rte_acl_build", -rc, chosen.size());
  }
  return table;
}

void Acl::find(Table const& table, const std::uint8_t** keys, std::uint32_t* matches, std::uint32_t count) {
  if (!table) {
    std::fill_n(matches, count, 0U);
    return;
  }
  rte_acl_classify(table.get(), keys, matches, count, 1);
}

void Acl::find_with_ports(const std::uint8_t** keys, std::uint32_t* matches, std::uint32_t count) const {
  find(with_ports_, keys, matches, count);
}

void Acl::find_without_ports(const std::uint8_t** keys, std::uint32_t* matches, std::uint32_t count) const {
  find(without_ports_, keys, matches, count);
}

}  // namespace catena::classify
