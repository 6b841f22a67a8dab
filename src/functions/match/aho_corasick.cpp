// SPDX-License-Identifier: Apache-2.0
#include "functions/match/aho_corasick.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace catena::match {
namespace {

constexpr std::uint32_t kRoot = 0;

std::uint8_t lower(std::uint8_t byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<std::uint8_t>(byte - 'A' + 'a') : byte;
}

/// One class for each byte that occurs in a pattern, and one for all others.
void assign_classes(std::span<const Pattern> patterns, bool nocase, Automaton& automaton) {
  std::array<bool, 256> used{};
  for (Pattern const& pattern : patterns) {
    if (pattern.nocase == nocase) {
      for (char c : pattern.bytes) {
        used[static_cast<std::uint8_t>(c)] = true;
      }
    }
  }
  std::uint32_t count = 0;
  std::array<std::uint32_t, 256> own{};
  for (std::size_t byte = 0; byte < used.size(); ++byte) {
    own[byte] = used[byte] ? count++ : 0;
  }
  const std::uint32_t other = count;  // not needed, and not reached, if all 256 bytes are used
  for (std::size_t byte = 0; byte < used.size(); ++byte) {
    const std::size_t same = nocase ? lower(static_cast<std::uint8_t>(byte)) : byte;
    automaton.classes[byte] = static_cast<std::uint8_t>(used[same] ? own[same] : other);
  }
  automaton.class_count = std::min<std::uint32_t>(count + 1, 256);
}

/// The trie of the patterns while it grows into the automaton; a state is its number here.
struct Builder {
  explicit Builder(std::uint32_t class_count) : classes(class_count) { add_state(); }

  std::uint32_t add_state() {
    next.resize(next.size() + classes, kRoot);
    longest.push_back(kNoPattern);
    deciding.push_back(false);
    depths.push_back(0);
    return static_cast<std::uint32_t>(longest.size() - 1);
  }
  std::uint32_t& edge(std::uint32_t state, std::uint32_t column) { return next[std::size_t{state} * classes + column]; }

  std::uint32_t classes;
  std::vector<std::uint32_t> next;  ///< kRoot: no edge, as long as this is a trie
  std::vector<std::uint16_t> longest;
  std::vector<bool> deciding;
  std::vector<std::uint16_t> depths;
};

}  // namespace

Result<Automaton> build_automaton(std::span<const Pattern> patterns, bool nocase, std::vector<bool> const& deciding) {
  if (patterns.size() > kMaxPatterns) {
    return absl::ResourceExhaustedError(
        fmt::format("{} different contents or strings; a kernel takes at most {}", patterns.size(), kMaxPatterns));
  }
  Automaton automaton;
  assign_classes(patterns, nocase, automaton);
  const std::uint32_t classes = automaton.class_count;

  Builder trie(classes);
  for (std::size_t number = 0; number < patterns.size(); ++number) {
    if (patterns[number].nocase != nocase) {
      continue;
    }
    std::uint32_t state = kRoot;
    for (char c : patterns[number].bytes) {
      const std::uint32_t column = automaton.classes[static_cast<std::uint8_t>(c)];
      std::uint32_t child = trie.edge(state, column);
      if (child == kRoot) {
        child = trie.add_state();
        trie.depths[child] = static_cast<std::uint16_t>(trie.depths[state] + 1);
        trie.edge(state, column) = child;
      }
      state = child;
      if (trie.next.size() > kMaxTableEntries) {
        return absl::ResourceExhaustedError(
            fmt::format("the contents or strings need an automaton of more than {} entries ({} classes of bytes); "
                        "split them over several NFs",
                        kMaxTableEntries, classes));
      }
    }
    trie.longest[state] = static_cast<std::uint16_t>(number);
    trie.deciding[state] = deciding[number];
  }
  const auto states = static_cast<std::uint32_t>(trie.longest.size());
  if (states == 1) {
    return automaton;
  }

  // Breadth first: when a state is visited, the state of its longest proper suffix is complete.
  std::vector<std::uint32_t> fail(states, kRoot);
  std::vector<std::uint32_t> queue;
  queue.reserve(states);
  queue.push_back(kRoot);
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::uint32_t state = queue[head];
    if (state != kRoot) {
      if (trie.longest[state] == kNoPattern) {
        trie.longest[state] = trie.longest[fail[state]];
      }
      trie.deciding[state] = trie.deciding[state] || trie.deciding[fail[state]];
    }
    for (std::uint32_t column = 0; column < classes; ++column) {
      std::uint32_t& edge = trie.edge(state, column);
      const std::uint32_t fallback = state == kRoot ? kRoot : trie.edge(fail[state], column);
      if (edge == kRoot) {
        edge = fallback;
      } else {
        fail[edge] = fallback;
        queue.push_back(edge);
      }
    }
  }

  enum Kind { kDeciding, kMatching, kOther };
  const auto kind_of = [&trie](std::uint32_t state) {
    return trie.deciding[state] ? kDeciding : trie.longest[state] != kNoPattern ? kMatching : kOther;
  };
  std::vector<std::uint32_t> rows(states);
  std::uint32_t row = 0;
  for (const Kind kind : {kDeciding, kMatching, kOther}) {
    for (std::uint32_t state = 0; state < states; ++state) {
      if (kind_of(state) == kind) {
        rows[state] = row;
        row += classes;
        automaton.depths.push_back(trie.depths[state]);
        if (kind != kOther) {
          automaton.longest.push_back(trie.longest[state]);
        }
      }
    }
    if (kind == kDeciding) {
      automaton.deciding_rows = row;
    } else if (kind == kMatching) {
      automaton.match_rows = row;
    }
  }
  automaton.start = rows[kRoot];
  automaton.next.resize(trie.next.size());
  for (std::uint32_t state = 0; state < states; ++state) {
    for (std::uint32_t column = 0; column < classes; ++column) {
      automaton.next[rows[state] + column] = rows[trie.edge(state, column)];
    }
  }
  return automaton;
}

std::vector<std::uint32_t> suffix_links(std::span<const Pattern> patterns) {
  // Read backwards, a suffix is a prefix, and in sorted order every prefix of a text is before it with only other
  // texts that begin with it in between.
  struct Reversed {
    std::string bytes;
    std::uint32_t number;
  };
  std::vector<Reversed> sorted;
  for (std::uint32_t number = 0; number < patterns.size(); ++number) {
    Pattern const& pattern = patterns[number];
    sorted.push_back(
        {(pattern.nocase ? '1' : '0') + std::string(pattern.bytes.rbegin(), pattern.bytes.rend()), number});
  }
  std::sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) { return a.bytes < b.bytes; });
  std::vector<std::uint32_t> links(patterns.size(), kNoSuffix);
  std::vector<Reversed const*> open;
  for (Reversed const& next : sorted) {
    while (!open.empty() && !next.bytes.starts_with(open.back()->bytes)) {
      open.pop_back();
    }
    if (!open.empty()) {
      links[next.number] = open.back()->number;
    }
    open.push_back(&next);
  }
  return links;
}

}  // namespace catena::match
