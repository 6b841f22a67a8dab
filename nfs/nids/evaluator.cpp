// SPDX-License-Identifier: Apache-2.0
#include "evaluator.hpp"

#include <algorithm>
#include <limits>

namespace catena::nids {
namespace {

constexpr std::int32_t kNoLimit = std::numeric_limits<std::int32_t>::max();

/// Ends that an occurrence of `content` may have if the content before it ended at `previous`: [first, last].
struct Window {
  std::int32_t first;
  std::int32_t last;
};
Window window_of(match::Content const& content, std::int32_t previous, std::int32_t payload_bytes) {
  const auto length = static_cast<std::int32_t>(content.bytes.size());
  Window window{};
  if (content.relative) {
    const std::int32_t begin = previous + content.distance;
    window = {begin + length, content.within ? begin + *content.within : kNoLimit};
  } else {
    window = {content.offset + length, content.depth ? content.offset + *content.depth : kNoLimit};
  }
  if (content.at_end) {
    window.first = std::max(window.first, payload_bytes);
  }
  return window;
}

bool side_matches(match::Rule const& rule, packet::FlowKey const& key, bool has_ports) {
  if (!rule.source->contains(key.source.v4()) || !rule.destination->contains(key.destination.v4())) {
    return false;
  }
  if (!has_ports) {
    return rule.source_ports->is_all(match::kMaxPort) && rule.destination_ports->is_all(match::kMaxPort);
  }
  return rule.source_ports->contains(key.source_port) && rule.destination_ports->contains(key.destination_port);
}

bool holds(match::SharedSet const& set, std::uint32_t value) { return set == nullptr || set->contains(value); }

}  // namespace

bool conditions_match(match::Conditions const& conditions, PacketHeader const& packet, std::uint32_t payload_bytes) {
  if (!holds(conditions.payload_bytes, payload_bytes)) {
    return false;
  }
  if (conditions.icmp_type != nullptr || conditions.icmp_code != nullptr) {
    if (packet.protocol != match::Protocol::kIcmp || !holds(conditions.icmp_type, packet.icmp_type) ||
        !holds(conditions.icmp_code, packet.icmp_code)) {
      return false;
    }
  }
  return conditions.tcp_flags.empty() ||
         (packet.protocol == match::Protocol::kTcp &&
          std::all_of(conditions.tcp_flags.begin(), conditions.tcp_flags.end(),
                      [&](match::TcpFlags const& asked) { return asked.match(packet.tcp_flags); }));
}

bool header_matches(match::Rule const& rule, PacketHeader const& packet) {
  if (rule.protocol != match::Protocol::kIp && rule.protocol != packet.protocol) {
    return false;
  }
  auto const& [key, has_ports] = packet.flow;
  return side_matches(rule, key, has_ports) || (rule.both_directions && side_matches(rule, key.reversed(), has_ports));
}

Evaluator::Evaluator(std::vector<match::Rule> rules, match::PatternSet& patterns)
    : tables_(std::make_shared<const Tables>(make_tables(std::move(rules), patterns))) {}

Evaluator::Tables Evaluator::make_tables(std::vector<match::Rule> rules, match::PatternSet& patterns) {
  Tables tables;
  tables.rules = std::move(rules);
  for (std::uint32_t number = 0; number < tables.rules.size(); ++number) {
    tables.first_content.push_back(static_cast<std::uint32_t>(tables.content_patterns.size()));
    match::Rule const& rule = tables.rules[number];
    tables.needs_tcp_flags = tables.needs_tcp_flags || !rule.conditions.tcp_flags.empty();
    tables.needs_icmp =
        tables.needs_icmp || rule.conditions.icmp_type != nullptr || rule.conditions.icmp_code != nullptr;
    // The content that the rule calls its fast pattern, else the longest that must occur, is taken as the rarest.
    std::size_t longest = 0;
    std::uint32_t anchor = 0;
    for (std::size_t i = 0; i < rule.contents.size(); ++i) {
      match::Content const& content = rule.contents[i];
      const std::uint32_t pattern = patterns.add(content.bytes, content.nocase);
      tables.content_patterns.push_back(pattern);
      const bool named = rule.search_content == i;
      if (!content.negated && (named || (!rule.search_content && content.bytes.size() > longest))) {
        longest = content.bytes.size();
        anchor = pattern;
      }
    }
    if (longest == 0) {
      tables.always.push_back(number);
      continue;
    }
    tables.rules_by_anchor.resize(std::max<std::size_t>(tables.rules_by_anchor.size(), patterns.size()));
    tables.rules_by_anchor[anchor].push_back(number);
  }
  tables.rules_by_anchor.resize(patterns.size());
  return tables;
}

bool Evaluator::may_match(match::MatchTable const& matches) const {
  return !tables_->always.empty() ||
         std::any_of(matches.found().begin(), matches.found().end(),
                     [this](std::uint32_t pattern) { return !tables_->rules_by_anchor[pattern].empty(); });
}

std::vector<bool> Evaluator::deciding_patterns() const {
  std::vector<bool> deciding(tables_->rules_by_anchor.size());
  for (std::size_t pattern = 0; pattern < deciding.size(); ++pattern) {
    deciding[pattern] = !tables_->rules_by_anchor[pattern].empty();
  }
  for (std::uint32_t rule : tables_->always) {
    for (std::size_t i = 0; i < tables_->rules[rule].contents.size(); ++i) {
      deciding[tables_->content_patterns[tables_->first_content[rule] + i]] = true;
    }
  }
  return deciding;
}

void Evaluator::match(PacketHeader const& header, std::uint32_t payload_bytes, match::MatchTable& matches,
                      std::vector<std::uint32_t>& matched) {
  const auto add = [&](std::uint32_t rule) {
    if (this->matches(rule, header, payload_bytes, matches)) {
      matched.push_back(rule);
    }
  };
  for (std::uint32_t pattern : matches.found()) {
    std::for_each(tables_->rules_by_anchor[pattern].begin(), tables_->rules_by_anchor[pattern].end(), add);
  }
  std::for_each(tables_->always.begin(), tables_->always.end(), add);
}

bool Evaluator::matches(std::uint32_t rule, PacketHeader const& header, std::uint32_t payload_bytes,
                        match::MatchTable& matches) {
  match::Rule const& asked = tables_->rules[rule];
  return (payload_bytes > 0 || !asked.needs_payload) && header_matches(asked, header) &&
         conditions_match(asked.conditions, header, payload_bytes) && contents_match(rule, payload_bytes, matches);
}

bool Evaluator::contents_match(std::uint32_t rule, std::uint32_t payload_bytes, match::MatchTable& matches) {
  matches.index();
  const auto length = static_cast<std::int32_t>(payload_bytes);
  std::vector<match::Content> const& contents = tables_->rules[rule].contents;
  ends_.assign(1, 0);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    match::Content const& content = contents[i];
    const std::span<const std::uint16_t> found =
        matches.ends(tables_->content_patterns[tables_->first_content[rule] + i]);
    if (!content.relative) {
      const Window window = window_of(content, 0, length);
      const auto first = std::lower_bound(found.begin(), found.end(), window.first);
      const auto last = std::upper_bound(first, found.end(), window.last);
      if (!content.negated) {
        ends_.assign(first, last);
      } else if (first != last) {
        return false;
      }
    } else if (content.negated) {
      // Keeps the ends after which the content does not occur. Windows move on with the ends.
      auto next = found.begin();
      std::erase_if(ends_, [&](std::int32_t previous) {
        const Window window = window_of(content, previous, length);
        next = std::lower_bound(next, found.end(), window.first);
        return next != found.end() && *next <= window.last;
      });
    } else {
      // Takes each occurrence that lies in the window of at least one end: the earliest window that does not lie
      // wholly before it also begins first.
      next_ends_.clear();
      auto previous = ends_.begin();
      for (std::uint16_t end : found) {
        while (previous != ends_.end() && window_of(content, *previous, length).last < end) {
          ++previous;
        }
        if (previous == ends_.end()) {
          break;
        }
        if (window_of(content, *previous, length).first <= end) {
          next_ends_.push_back(end);
        }
      }
      ends_.swap(next_ends_);
    }
    for (match::DataAt const& data : content.data_after) {
      std::erase_if(ends_, [&](std::int32_t previous) { return (previous + data.bytes <= length) == data.negated; });
    }
    if (ends_.empty()) {
      return false;
    }
  }
  return true;
}

}  // namespace catena::nids
