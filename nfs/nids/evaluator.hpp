// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "functions/match/match_table.hpp"
#include "functions/match/pattern_set.hpp"
#include "functions/match/rule.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace catena::nids {

/// What rule headers inspect.
struct PacketHeader {
  match::Protocol protocol = match::Protocol::kIp;  ///< kIp: none of TCP, UDP, ICMP
  bool has_ports = false;
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint8_t tcp_flags = 0;  ///< with kTcp
  std::uint8_t icmp_type = 0;  ///< with kIcmp, as the code
  std::uint8_t icmp_code = 0;
};

/// Turns the literal matches of one packet into the rules that match it.
///
/// A rule matches if its header does and some choice of one occurrence for each content satisfies all modifiers at
/// once. Contents only look back at the end of the one before, so it is enough to carry, content by content, the set
/// of ends that the chain so far can have; every step is one pass over two sorted lists, and no choice is tried twice.
/// A rule without contents and `isdataat` matches by its header and conditions alone; the others need a payload of at
/// least one byte, even if all their contents are negated (as in Suricata).
///
/// Not thread safe: match() uses memory of the object. A copy shares the rules, which do not change, and has such
/// memory of its own: one for another thread.
class Evaluator {
 public:
  /// Adds the contents of `rules` to `patterns`.
  Evaluator(std::vector<match::Rule> rules, match::PatternSet& patterns);

  /// False if no rule can match, whatever the header.
  bool may_match(match::MatchTable const& matches) const;

  /// For each pattern whether it can make a rule match: without any such pattern in a packet, only rules without
  /// contents match it, and no other match of the packet needs to be known.
  std::vector<bool> deciding_patterns() const;

  /// Appends the rules that match to `matched` (positions in rules()), in no order, each once.
  /// `payload_bytes`: length of the payload. Indexes `matches` where positions matter.
  void match(PacketHeader const& header, std::uint32_t payload_bytes, match::MatchTable& matches,
             std::vector<std::uint32_t>& matched);

  std::vector<match::Rule> const& rules() const { return tables_->rules; }
  /// Whether some rule inspects the flags of TCP, or type and code of ICMP.
  bool needs_tcp_flags() const { return tables_->needs_tcp_flags; }
  bool needs_icmp() const { return tables_->needs_icmp; }

 private:
  /// Immutable: any number of threads.
  struct Tables {
    std::vector<match::Rule> rules;
    bool needs_tcp_flags = false;
    bool needs_icmp = false;
    std::vector<std::uint32_t> content_patterns;              ///< pattern of every content, rule after rule
    std::vector<std::uint32_t> first_content;                 ///< of each rule, in content_patterns
    std::vector<std::vector<std::uint32_t>> rules_by_anchor;  ///< by pattern: rules that are inspected where it occurs
    std::vector<std::uint32_t> always;                        ///< rules without a content that must occur
  };
  static Tables make_tables(std::vector<match::Rule> rules, match::PatternSet& patterns);
  bool matches(std::uint32_t rule, PacketHeader const& header, std::uint32_t payload_bytes, match::MatchTable& matches);
  bool contents_match(std::uint32_t rule, std::uint32_t payload_bytes, match::MatchTable& matches);

  std::shared_ptr<const Tables> tables_;
  std::vector<std::int32_t> ends_;  ///< ends that the chain so far can have, ascending
  std::vector<std::int32_t> next_ends_;
};

/// Whether the header of `rule` fits.
bool header_matches(match::Rule const& rule, PacketHeader const& packet);
/// Whether the conditions do, for a payload of `payload_bytes` bytes.
bool conditions_match(match::Conditions const& conditions, PacketHeader const& packet, std::uint32_t payload_bytes);

}  // namespace catena::nids
