// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "classification.hpp"
#include "evaluator.hpp"
#include "functions/match/aho_corasick.hpp"
#include "functions/match/literal_matcher.hpp"
#include "functions/match/match.layout.hpp"
#include "functions/match/match_table.hpp"
#include "functions/match/pattern_set.hpp"
#include "functions/match/string_list.hpp"

#include <catena/nf/alert.hpp>
#include <catena/nf/nf.hpp>
#include <catena/nf/refusal.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

/// Network intrusion detection: searches payloads for the contents of Snort/Suricata rules, or for plain strings.
///
/// The work has two halves. Finding literals is the same for rules and strings. It is done by Hyperscan or, on a
/// device, by the automaton of Aho and Corasick, and results in a payload's list of (pattern, end) pairs. Deciding
/// needs only these pairs and the packet's header, never the payload. One implementation serves both (evaluator.hpp),
/// on the CPU.
///
/// Every packet is inspected alone: streams and fragments are not reassembled. The payload follows the TCP, UDP or ICMP
/// header of an IPv4 packet; for other packets, and for fragments except the first, it follows the IPv4 header.
namespace catena::nids {

/// Decision about one packet.
struct Decision {
  packet::Verdict verdict = packet::Verdict::kPass;
  std::vector<std::uint32_t>
      matches;                    ///< rules (by position) in order of sid and gid, or lines of a string list; distinct
  std::uint64_t occurrences = 0;  ///< string lists: total over all strings
};

/// The rules of a file, ready for evaluation.
struct RuleSet {
  Evaluator evaluator;
};
struct StringSet {
  match::StringList list;
  packet::Verdict verdict;  ///< kAlert or kDrop
};

/// Contents of a file of rules or strings.
struct NidsFile {
  std::string path;  ///< for messages
  match::PatternSet patterns;
  std::variant<RuleSet, StringSet> what;  ///< its patterns are in `patterns`
  Classification classes;                 ///< for alerts of rules
  std::vector<std::string> report;        ///< lines of the start-up report
  std::vector<nf::Refusal> refused;
};

class Nids final : public nf::Nf, public nf::Refusing, public nf::Alerting {
 public:
  /// Errors: as LiteralMatcher::create().
  static Result<std::unique_ptr<nf::Nf>> create(NidsFile file);

  nf::Hints hints() const override;
  /// The replica uses the same rules or strings, even if their file has changed. ResourceExhausted without memory.
  Result<std::unique_ptr<nf::Nf>> replicate(std::uint32_t shard) const override;
  /// True if both use the same tables in memory.
  bool shares_tables_with(Nids const& other) const {
    return tables_ == other.tables_ && matcher_.shares_patterns_with(other.matcher_);
  }
  void compute(packet::Batch const& batch, std::span<const std::byte> aux, std::span<std::byte> results) override;
  void complete(nf::Completion const& completion) override;
  Result<nf::KernelSide> kernel_side() const override;
  void spill_requests(std::span<const std::byte> results, std::vector<nf::SpillRequest>& requests) const override;
  std::vector<std::string> start_report() const override { return tables_->file.report; }
  std::vector<nf::Refusal> const& refusals() const override { return tables_->file.refused; }
  std::size_t applied_rules() const override { return evaluator_ ? evaluator_->rules().size() : 0; }
  void keep_alerts() override { keeps_alerts_ = true; }
  std::vector<nf::AlertLine>& alerts() override { return alerts_; }

 private:
  /// Immutable. Thread rule: any number of threads.
  struct Tables {
    NidsFile file;                        ///< call match() only on copies of its evaluator
    std::vector<std::uint32_t> suffixes;  ///< see suffix_links()
  };
  Nids(std::shared_ptr<const Tables> tables, match::LiteralMatcher matcher);
  StringSet const* strings() const { return std::get_if<StringSet>(&tables_->file.what); }

  /// Reads a device's match list into matches_. False if it is incomplete or contains invalid patterns or positions.
  bool read_matches(match::MatchResult const& result, std::span<const std::byte> spilled, std::uint32_t payload_bytes);
  /// Decides by matches_, and clears it.
  void decide(packet::Packet const& packet, Decision& decision);
  void report(packet::Packet const& packet, Decision const& decision, nf::Outcome& outcome);
  std::string record_fields(Decision const& decision) const;
  std::string alert_text(std::uint32_t match) const;

  std::shared_ptr<const Tables> tables_;
  std::optional<Evaluator> evaluator_;  ///< a copy of the file's; nullopt for strings
  bool keeps_alerts_ = false;
  std::vector<nf::AlertLine> alerts_;
  match::LiteralMatcher matcher_;
  match::MatchTable matches_;
  std::vector<std::uint32_t> matched_rules_;
  std::vector<Decision> decisions_;  ///< of the last compute() batch
};

}  // namespace catena::nids

/// The NF's descriptor, type `nids`.
catena::nf::Descriptor const& catena_nf_nids();
