// SPDX-License-Identifier: Apache-2.0
#include "functions/classify/bit_vector.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "functions/classify/classify.layout.hpp"

namespace catena::classify {
namespace {

constexpr std::uint32_t kWordBits = 32;
constexpr std::uint32_t kPorts = 65536;
constexpr std::uint32_t kProtocolNumbers = 256;

constexpr std::uint32_t words_for(std::size_t bits) {
  return static_cast<std::uint32_t>((bits + kWordBits - 1) / kWordBits);
}

/// One bit for each rule.
class RuleBits {
 public:
  explicit RuleBits(std::size_t rules) : words_(words_for(rules)) {}
  void flip(std::uint32_t rule) { words_[rule / kWordBits] ^= 1U << (rule % kWordBits); }
  std::vector<std::uint32_t> const& words() const { return words_; }

 private:
  std::vector<std::uint32_t> words_;
};

/// Collects rows, each content once.
class RowSet {
 public:
  explicit RowSet(std::size_t rules) : words_(words_for(rules)), summary_words_(words_for(words_)) {}

  std::uint32_t words() const { return words_; }
  std::uint32_t summary_words() const { return summary_words_; }
  std::vector<std::uint32_t> take() { return std::move(rows_); }

  /// The number of the row with these bits.
  std::uint32_t add(RuleBits const& bits) {
    std::vector<std::uint32_t> const& content = bits.words();
    const std::size_t hash = std::hash<std::string_view>{}(
        {reinterpret_cast<const char*>(content.data()), content.size() * sizeof(std::uint32_t)});
    const auto [first, last] = numbers_.equal_range(hash);
    const auto same = std::find_if(first, last, [&](auto const& entry) {
      return std::equal(content.begin(), content.end(), rows_.begin() + begin_of(entry.second) + summary_words_);
    });
    if (same != last) {
      return same->second;
    }
    const auto number = static_cast<std::uint32_t>(rows_.size() / (summary_words_ + words_));
    rows_.resize(rows_.size() + summary_words_);
    for (std::uint32_t word = 0; word < words_; ++word) {
      const std::uint32_t bit = content[word] != 0 ? 1U : 0U;
      rows_[static_cast<std::size_t>(begin_of(number)) + word / kWordBits] |= bit << (word % kWordBits);
    }
    rows_.insert(rows_.end(), content.begin(), content.end());
    numbers_.emplace(hash, number);
    return number;
  }

 private:
  std::ptrdiff_t begin_of(std::uint32_t number) const {
    return static_cast<std::ptrdiff_t>(number) * (summary_words_ + words_);
  }

  std::uint32_t words_;
  std::uint32_t summary_words_;
  std::vector<std::uint32_t> rows_;
  std::unordered_multimap<std::size_t, std::uint32_t> numbers_;
};

/// A trie of address bytes. Prefixes must come in the order of (address, length): each overwrites what the shorter
/// one around it left.
class AddressTrie {
 public:
  explicit AddressTrie(std::uint32_t row) : entries_(kNodeEntries, row) {}
  std::vector<std::uint32_t> take() { return std::move(entries_); }

  void paint(packet::Ipv4Prefix const& prefix, std::uint32_t row) {
    std::size_t node = 0;
    std::uint32_t shift = 24;
    for (; prefix.length + shift > 32; shift -= 8) {
      node = child(node * kNodeEntries + byte_at(prefix.address, shift));
    }
    const std::uint32_t count = 1U << (32 - prefix.length - shift);
    const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(node * kNodeEntries) +
                       static_cast<std::ptrdiff_t>(byte_at(prefix.address, shift));
    std::fill_n(first, count, row);
  }

 private:
  static std::size_t byte_at(std::uint32_t address, std::uint32_t shift) { return (address >> shift) & 0xFFU; }

  /// The node below an entry; a new one starts with the entry's row everywhere.
  std::size_t child(std::size_t entry) {
    if ((entries_[entry] & kNodeFlag) == 0) {
      const auto node = static_cast<std::uint32_t>(entries_.size() / kNodeEntries);
      entries_.resize(entries_.size() + kNodeEntries, entries_[entry]);
      entries_[entry] = node | kNodeFlag;
    }
    return entries_[entry] & ~kNodeFlag;
  }

  std::vector<std::uint32_t> entries_;
};

bool covers(packet::Ipv4Prefix const& outer, packet::Ipv4Prefix const& inner) {
  return outer.length <= inner.length && ((outer.address ^ inner.address) & outer.mask()) == 0;
}

/// A prefix's row: the rules of the prefix itself and of all that cover it.
std::vector<std::uint32_t> build_trie(std::span<const Rule> rules, packet::Ipv4Prefix Rule::*field, RowSet& rows) {
  const auto prefix_of = [&](std::uint32_t rule) -> packet::Ipv4Prefix const& { return rules[rule].*field; };
  std::vector<std::uint32_t> order(rules.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(prefix_of(a).address, prefix_of(a).length) < std::pair(prefix_of(b).address, prefix_of(b).length);
  });
  struct Enclosing {
    packet::Ipv4Prefix prefix;
    RuleBits bits;
  };
  std::vector<Enclosing> path{{{0, 0}, RuleBits(rules.size())}};  // from the root down to the last prefix
  AddressTrie trie(rows.add(path.back().bits));
  for (std::size_t i = 0; i < order.size();) {
    const packet::Ipv4Prefix prefix = prefix_of(order[i]);
    while (!covers(path.back().prefix, prefix)) {
      path.pop_back();
    }
    RuleBits bits = path.back().bits;
    for (; i < order.size() && prefix_of(order[i]) == prefix; ++i) {
      bits.flip(order[i]);
    }
    trie.paint(prefix, rows.add(bits));
    path.push_back({prefix, std::move(bits)});
  }
  return trie.take();
}

/// Walks the ports upwards; bits change where ranges start and end.
std::vector<std::uint32_t> build_ports(std::span<const Rule> rules, PortRange Rule::*field, RowSet& rows) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> changes;  // port, rule
  changes.reserve(rules.size() * 2);
  for (std::uint32_t rule = 0; rule < rules.size(); ++rule) {
    changes.emplace_back((rules[rule].*field).first, rule);
    changes.emplace_back((rules[rule].*field).last + 1U, rule);
  }
  std::sort(changes.begin(), changes.end());
  std::vector<std::uint32_t> result;
  result.reserve(kPorts);
  RuleBits bits(rules.size());
  for (std::size_t i = 0; i < changes.size();) {
    const std::uint32_t port = changes[i].first;
    if (result.size() < port) {
      result.resize(port, rows.add(bits));
    }
    for (; i < changes.size() && changes[i].first == port; ++i) {
      bits.flip(changes[i].second);
    }
  }
  result.resize(kPorts, rows.add(bits));
  return result;
}

std::vector<std::uint32_t> build_protocols(std::span<const Rule> rules, RowSet& rows) {
  std::vector<std::uint32_t> result;
  for (std::uint32_t protocol = 0; protocol < kProtocolNumbers; ++protocol) {
    RuleBits bits(rules.size());
    for (std::uint32_t rule = 0; rule < rules.size(); ++rule) {
      if ((protocol & rules[rule].protocol_mask) == rules[rule].protocol) {
        bits.flip(rule);
      }
    }
    result.push_back(rows.add(bits));
  }
  return result;
}

std::uint32_t add_no_ports_row(std::span<const Rule> rules, RowSet& rows) {
  RuleBits bits(rules.size());
  for (std::uint32_t rule = 0; rule < rules.size(); ++rule) {
    if (rules[rule].matches_without_ports()) {
      bits.flip(rule);
    }
  }
  return rows.add(bits);
}

}  // namespace

BitVector build_bit_vector(std::span<const Rule> rules) {
  RowSet rows(rules.size());
  BitVector result;
  result.src_trie = build_trie(rules, &Rule::src, rows);
  result.dst_trie = build_trie(rules, &Rule::dst, rows);
  result.sport_rows = build_ports(rules, &Rule::sport, rows);
  result.dport_rows = build_ports(rules, &Rule::dport, rows);
  result.protocol_rows = build_protocols(rules, rows);
  result.no_ports_row = add_no_ports_row(rules, rows);
  result.words = rows.words();
  result.summary_words = rows.summary_words();
  result.rows = rows.take();
  return result;
}

}  // namespace catena::classify
