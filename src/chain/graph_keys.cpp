// SPDX-License-Identifier: Apache-2.0
#include "chain/graph_keys.hpp"

#include "chain/diagnostics.hpp"
#include "chain/match_keys.hpp"

#include <catena/core/text.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace catena::chain {
namespace {

/// What may stand where a graph names an NF.
class Names {
 public:
  explicit Names(std::vector<NfConfig> const& nfs) {
    std::ranges::transform(nfs, std::back_inserter(nfs_), &NfConfig::name);
  }
  std::vector<std::string> const& nfs() const { return nfs_; }

  /// The number of an NF, or what one of `words` stands for.
  struct Word {
    std::string_view text;
    std::size_t stands_for;
  };
  Result<std::size_t> number(FileSection& section, std::string_view key, std::string const& name,
                             std::span<const Word> words) const {
    for (Word const& word : words) {
      if (name == word.text) {
        return word.stands_for;
      }
    }
    if (const auto nf = std::ranges::find(nfs_, name); nf != nfs_.end()) {
      return static_cast<std::size_t>(nf - nfs_.begin());
    }
    std::vector<std::string> known = nfs_;
    std::string allowed = "the name of an NF";
    for (Word const& word : words) {
      known.emplace_back(word.text);
      allowed += concat(", or ", word.text);
    }
    const std::string near = nf::nearest(name, known);
    return section.config().error(key, concat("'", key, "' is '", name, "'; write ", allowed,
                                              near.empty() ? "" : concat("; did you mean '", near, "'?")));
  }

 private:
  std::vector<std::string> nfs_;
};

constexpr Names::Word kFromRx{kRxWord, kRx};
constexpr std::array<Names::Word, 1> kFromWords{kFromRx};
constexpr std::array<Names::Word, 2> kToWords{Names::Word{kTxWord, kTx}, Names::Word{kDropWord, kDrop}};
constexpr std::array<Names::Word, 1> kMirrorWords{Names::Word{kTxWord, kTx}};

Result<std::optional<std::uint16_t>> read_port(FileSection& section, std::string_view key) {
  if (!section.has(key)) {
    return std::nullopt;
  }
  CATENA_ASSIGN_OR_RETURN(const std::int64_t port, section.integer(key));
  return static_cast<std::uint16_t>(port);
}

Result<NextNodeMatch> read_next_node_match(FileSection& row) {
  NextNodeMatch match;
  if (row.has("output")) {
    CATENA_ASSIGN_OR_RETURN(match.output, row.text("output"));
  }
  if (!row.has("match")) {
    return match;
  }
  CATENA_ASSIGN_OR_RETURN(FileSection section, row.section("match"));
  CATENA_ASSIGN_OR_RETURN(match.traffic, read_match(section));
  CATENA_ASSIGN_OR_RETURN(match.rx_port, read_port(section, "rx_port"));
  CATENA_ASSIGN_OR_RETURN(match.tx_port, read_port(section, "tx_port"));
  if (section.has("verdict")) {
    CATENA_ASSIGN_OR_RETURN(const std::string verdict, section.text("verdict"));
    match.verdict = verdict == "alert" ? packet::Verdict::kAlert : packet::Verdict::kPass;
  }
  if (!match.has_conditions() || match == NextNodeMatch{.output = match.output}) {
    return row.config().error("match", "'match' has no condition; leave it out for all packets");
  }
  return match;
}

/// The rows that one entry stands for.
Result<std::vector<NextNodeRow>> read_row(FileSection row, Names const& names) {
  NextNodeRow read;
  read.position = row.config().position();
  CATENA_ASSIGN_OR_RETURN(read.match, read_next_node_match(row));
  if (row.is_word("to")) {
    CATENA_ASSIGN_OR_RETURN(const std::string to, row.text("to"));
    CATENA_ASSIGN_OR_RETURN(read.to, names.number(row, "to", to, kToWords));
  } else {
    CATENA_ASSIGN_OR_RETURN(FileSection section, row.section("to"));
    CATENA_ASSIGN_OR_RETURN(const std::string to, section.text("mirror"));
    CATENA_ASSIGN_OR_RETURN(read.to, names.number(section, "mirror", to, kMirrorWords));
    read.is_mirror = true;
  }
  CATENA_ASSIGN_OR_RETURN(const std::vector<std::string> from, row.texts("from"));
  std::vector<NextNodeRow> rows;
  for (std::string const& name : from) {
    CATENA_ASSIGN_OR_RETURN(read.from, names.number(row, "from", name, kFromWords));
    if (read.from == kRx && !read.match.output.empty()) {
      return row.config().error("output", "'output' is for NFs, and rx is not an NF; write `match`");
    }
    rows.push_back(read);
  }
  return rows;
}

/// Whether every packet that meets `later` meets `earlier`, too.
bool is_inside(NextNodeMatch const& later, NextNodeMatch const& earlier) {
  const io::Overlap overlap = io::overlap(later.traffic, earlier.traffic);
  const auto is_as_narrow = [](auto const& own, auto const& of_other) { return !of_other || own == of_other; };
  return (overlap == io::Overlap::kSame || overlap == io::Overlap::kInside) &&
         is_as_narrow(later.rx_port, earlier.rx_port) && is_as_narrow(later.tx_port, earlier.tx_port) &&
         is_as_narrow(later.verdict, earlier.verdict) && (earlier.output.empty() || later.output == earlier.output);
}

std::string line_of(std::string const& position) {
  const std::size_t column = position.rfind(':');
  const std::size_t line = position.rfind(':', column - 1);
  return position.substr(line + 1, column - line - 1);
}

/// Rows that no packet gets as far as, and packets that no row is for.
/// `has_unmatched`: the file says what becomes of the latter.
void check_rows(Graph const& graph, bool has_unmatched, std::size_t from, std::string const& name,
                std::string const& position, Diagnostics& diagnostics) {
  std::vector<NextNodeRow const*> before;
  bool takes_all = false;
  for (NextNodeRow const& row : graph.rows) {
    if (row.from != from) {
      continue;
    }
    const auto in_front = std::ranges::find_if(before, [&row](NextNodeRow const* other) {
      return (!other->is_mirror || (row.is_mirror && other->to == row.to)) && is_inside(row.match, other->match);
    });
    if (in_front != before.end()) {
      diagnostics.add(absl::InvalidArgumentError(
          concat(row.position, ": no packet reaches this row: the row at line ", line_of((*in_front)->position),
                 (*in_front)->is_mirror ? " copies them to the same NF or tx already"
                                        : " takes all its packets; write this row before it")));
    }
    before.push_back(&row);
    takes_all = takes_all || (!row.is_mirror && !row.match.has_conditions());
  }
  if (!takes_all && !has_unmatched) {
    diagnostics.add(absl::InvalidArgumentError(
        concat(position, ": packets may leave ", name, " without a matching row of 'graph'; write `{from: ", name,
               ", to: ...}` without `match` as its last row, or `unmatched: drop` for the chain")));
  }
}

/// That the NFs of each group are in a row; they are next to each other in the list.
void check_groups(Graph const& graph, std::span<const NfConfig> nfs, Diagnostics& diagnostics) {
  for (std::size_t nf = 1; nf < nfs.size(); ++nf) {
    if (!nfs[nf].group.empty() && nfs[nf].group == nfs[nf - 1].group && !is_in_a_row(graph, nf - 1, nf)) {
      diagnostics.add(absl::InvalidArgumentError(
          concat(nfs[nf].position, ": 'group' is ", nfs[nf].group, ", as for NF '", nfs[nf - 1].name,
                 "'; in a graph all packets of one must go to the other, which receives no others")));
    }
  }
}

void check_reached(Graph const& graph, std::span<const NfConfig> nfs, Diagnostics& diagnostics) {
  std::vector<bool> is_reached(nfs.size());
  for (plan::PlanEdge const& edge : edges_of(graph, nfs.size())) {
    if (edge.to < nfs.size() && (edge.from == kRx || is_reached[edge.from])) {
      is_reached[edge.to] = true;  // NFs are in their order
    }
  }
  for (std::size_t nf = 0; nf < nfs.size(); ++nf) {
    if (!is_reached[nf]) {
      diagnostics.add(absl::InvalidArgumentError(concat(nfs[nf].position, ": no packet comes to NF '", nfs[nf].name,
                                                        "'; write a row of 'graph' with `to: ", nfs[nf].name,
                                                        "`, or leave the NF out")));
    }
  }
}

/// Names that a graph could not tell from words.
void check_names(FileSection& spec, Names const& names, Diagnostics& diagnostics) {
  for (const std::string_view word : {kRxWord, kTxWord, kDropWord}) {
    if (std::ranges::find(names.nfs(), word) != names.nfs().end()) {
      diagnostics.add(spec.config().error(
          "graph", concat("an NF is named '", word, "', which means something else in a graph; give it another name")));
    }
  }
}

}  // namespace

Status read_graph(FileSection& spec, ChainConfig& chain) {
  if (!spec.has("graph")) {
    return spec.has("unmatched")
               ? spec.config().error("unmatched",
                                     "'unmatched' goes with `graph`: in a list each packet goes to the next NF")
               : absl::OkStatus();
  }
  const Names names(chain.nfs);
  Diagnostics diagnostics;
  check_names(spec, names, diagnostics);
  Graph graph;
  graph.position = spec.config().position("graph");
  const bool has_unmatched = spec.has("unmatched");
  std::size_t unmatched = kDrop;
  if (has_unmatched) {
    CATENA_ASSIGN_OR_RETURN(const std::string to, spec.text("unmatched"));
    unmatched = diagnostics.take(names.number(spec, "unmatched", to, kToWords));
  }
  CATENA_ASSIGN_OR_RETURN(std::vector<FileSection> entries, spec.sections("graph"));
  for (FileSection& entry : entries) {
    std::vector<NextNodeRow> rows = diagnostics.take(read_row(entry, names));
    std::ranges::move(rows, std::back_inserter(graph.rows));
  }
  CATENA_RETURN_IF_ERROR(diagnostics.status());
  check_rows(graph, has_unmatched, kRx, std::string(kRxWord), graph.position, diagnostics);
  for (std::size_t nf = 0; nf < chain.nfs.size(); ++nf) {
    check_rows(graph, has_unmatched, nf, chain.nfs[nf].name, chain.nfs[nf].position, diagnostics);
  }
  add_rows_of_rest(graph, chain.nfs.size(), unmatched,
                   has_unmatched ? spec.config().position("unmatched") : graph.position);
  const Result<std::vector<std::size_t>> found = order_of(graph, names.nfs());
  diagnostics.add(found.status());
  CATENA_RETURN_IF_ERROR(diagnostics.status());
  std::vector<std::size_t> const& order = *found;
  std::vector<NfConfig> ordered;
  for (const std::size_t nf : order) {
    ordered.push_back(std::move(chain.nfs[nf]));
  }
  chain.nfs = std::move(ordered);
  graph = renumbered(std::move(graph), order);
  check_reached(graph, chain.nfs, diagnostics);
  check_groups(graph, chain.nfs, diagnostics);
  chain.graph = std::move(graph);
  return diagnostics.status();
}

}  // namespace catena::chain
