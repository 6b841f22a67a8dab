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
Window window_of(Content const& content, std::int32_t previous) {
  const auto length = static_cast<std::int32_t>(content.bytes.size());
  if (content.relative) {
    const std::int32_t begin = previous + content.distance;
    return {begin + length, content.within ? begin + *content.within : kNoLimit};
  }
  return {content.offset + length, content.depth ? content.offset + *content.depth : kNoLimit};
}

bool side_matches(Rule const& rule, std::uint32_t source, std::uint16_t source_port, std::uint32_t destination,
                  std::uint16_t destination_port, bool has_ports) {
  if (!rule.source->contains(source) || !rule.destination->contains(destination)) {
    return false;
  }
  if (!has_ports) {
    return rule.source_ports->is_all(kMaxPort) && rule.destination_ports->is_all(kMaxPort);
  }
  return rule.source_ports->contains(source_port) && rule.destination_ports->contains(destination_port);
}

}  // namespace

bool header_matches(Rule const& rule, PacketHeader const& packet) {
  if (rule.protocol != Protocol::kIp && rule.protocol != packet.protocol) {
    return false;
  }
  return side_matches(rule, packet.source, packet.source_port, packet.destination, packet.destination_port,
                      packet.has_ports) ||
         (rule.both_directions && side_matches(rule, packet.destination, packet.destination_port, packet.source,
                                               packet.source_port, packet.has_ports));
}

Evaluator::Evaluator(std::vector<Rule> rules, PatternSet& patterns) : rules_(std::move(rules)) {
  for (std::uint32_t number = 0; number < rules_.size(); ++number) {
    first_content_.push_back(static_cast<std::uint32_t>(content_patterns_.size()));
    // The longest content that must occur is taken as the rarest.
    std::size_t longest = 0;
    std::uint32_t anchor = 0;
    for (Content const& content : rules_[number].contents) {
      const std::uint32_t pattern = patterns.add(content.bytes, content.nocase);
      content_patterns_.push_back(pattern);
      if (!content.negated && content.bytes.size() > longest) {
        longest = content.bytes.size();
        anchor = pattern;
      }
    }
    if (longest == 0) {
      always_.push_back(number);
      continue;
    }
    rules_by_anchor_.resize(std::max<std::size_t>(rules_by_anchor_.size(), patterns.size()));
    rules_by_anchor_[anchor].push_back(number);
  }
  rules_by_anchor_.resize(patterns.size());
}

bool Evaluator::may_match(MatchTable const& matches) const {
  return !always_.empty() || std::any_of(matches.found().begin(), matches.found().end(),
                                         [this](std::uint32_t pattern) { return !rules_by_anchor_[pattern].empty(); });
}

std::vector<bool> Evaluator::deciding_patterns() const {
  std::vector<bool> deciding(rules_by_anchor_.size());
  for (std::size_t pattern = 0; pattern < deciding.size(); ++pattern) {
    deciding[pattern] = !rules_by_anchor_[pattern].empty();
  }
  for (std::uint32_t rule : always_) {
    for (std::size_t i = 0; i < rules_[rule].contents.size(); ++i) {
      deciding[content_patterns_[first_content_[rule] + i]] = true;
    }
  }
  return deciding;
}

void Evaluator::match(PacketHeader const& header, std::uint32_t payload_bytes, MatchTable& matches,
                      std::vector<std::uint32_t>& matched) {
  for (std::uint32_t pattern : matches.found()) {
    for (std::uint32_t rule : rules_by_anchor_[pattern]) {
      if (header_matches(rules_[rule], header) && contents_match(rule, matches)) {
        matched.push_back(rule);
      }
    }
  }
  for (std::uint32_t rule : always_) {
    const bool possible = rules_[rule].contents.empty() || payload_bytes > 0;
    if (possible && header_matches(rules_[rule], header) && contents_match(rule, matches)) {
      matched.push_back(rule);
    }
  }
}

bool Evaluator::contents_match(std::uint32_t rule, MatchTable& matches) {
  matches.index();
  std::vector<Content> const& contents = rules_[rule].contents;
  ends_.assign(1, 0);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    Content const& content = contents[i];
    const std::span<const std::uint16_t> found = matches.ends(content_patterns_[first_content_[rule] + i]);
    if (!content.relative) {
      const Window window = window_of(content, 0);
      const auto first = std::lower_bound(found.begin(), found.end(), window.first);
      const auto last = std::upper_bound(first, found.end(), window.last);
      if (content.negated) {
        if (first != last) {
          return false;
        }
        continue;
      }
      ends_.assign(first, last);
    } else if (content.negated) {
      // Keeps the ends behind which the content does not occur. Windows move on with the ends.
      auto next = found.begin();
      std::erase_if(ends_, [&](std::int32_t previous) {
        const Window window = window_of(content, previous);
        next = std::lower_bound(next, found.end(), window.first);
        return next != found.end() && *next <= window.last;
      });
    } else {
      // Takes each occurrence that lies in the window of at least one end: the earliest window that does not lie
      // wholly before it also begins first.
      next_ends_.clear();
      auto previous = ends_.begin();
      for (std::uint16_t end : found) {
        while (previous != ends_.end() && window_of(content, *previous).last < end) {
          ++previous;
        }
        if (previous == ends_.end()) {
          break;
        }
        if (window_of(content, *previous).first <= end) {
          next_ends_.push_back(end);
        }
      }
      ends_.swap(next_ends_);
    }
    if (ends_.empty()) {
      return false;
    }
  }
  return true;
}

}  // namespace catena::nids
