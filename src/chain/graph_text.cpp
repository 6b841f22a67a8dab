// SPDX-License-Identifier: Apache-2.0
#include "chain/graph_text.hpp"

#include <catena/core/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace catena::chain {
namespace {

/// A row of the table, or what becomes of packets that meet none.
struct Edge {
  std::size_t from;
  std::size_t to;
  std::string label;  ///< of which packets; empty: all that are left
  bool is_mirror;
  bool is_of_rest;  ///< of packets that meet no row
};

/// From rx on, NF by NF.
std::vector<Edge> edges_of(ChainConfig const& chain) {
  std::vector<Edge> edges;
  if (!chain.graph) {
    for (plan::PlanEdge const& edge : plan::edges_of({.nfs = std::vector<plan::PlacedNf>(chain.nfs.size())})) {
      edges.push_back({edge.from, edge.to, {}, false, false});
    }
    return edges;
  }
  const auto add_from = [&](std::size_t from) {
    for (NextNodeRow const& row : chain.graph->rows) {
      if (row.from == from) {
        edges.push_back(
            {from, row.to, row.is_of_rest ? "no row" : to_string(row.match), row.is_mirror, row.is_of_rest});
      }
    }
  };
  add_from(kRx);
  for (std::size_t nf = 0; nf < chain.nfs.size(); ++nf) {
    add_from(nf);
  }
  return edges;
}

std::string name_of(ChainConfig const& chain, std::size_t node) {
  return node == kRx     ? std::string(kRxWord)
         : node == kTx   ? std::string(kTxWord)
         : node == kDrop ? std::string(kDropWord)
                         : chain.nfs[node].name;
}

std::string_view placement_of(NfConfig const& nf) {
  return nf.is_auto ? "auto" : nf.on == plan::Processor::kGpu ? "gpu" : "cpu";
}

std::string describe(NfConfig const& nf) {
  return concat(nf.type.empty() ? "plugin" : nf.type, " on ", placement_of(nf),
                nf.isolation == Isolation::kProcess ? ", in a process" : "");
}

std::string text_of(ChainConfig const& chain) {
  std::string text;
  std::size_t last = kDrop;
  for (Edge const& edge : edges_of(chain)) {
    if (edge.from != last) {
      text += name_of(chain, edge.from);
      text += edge.from == kRx ? "\n" : concat("  (", describe(chain.nfs[edge.from]), ")\n");
      last = edge.from;
    }
    const std::string which = edge.label.empty() ? "all" : edge.label;
    text += fmt::format("  {:<40} {} {}\n", which, edge.is_mirror ? "=> copy to" : "->", name_of(chain, edge.to));
  }
  return text;
}

/// What stands for a node: names may be words of the language.
std::string id_of(std::size_t node) {
  return node == kRx ? "rx" : node == kTx ? "tx" : node == kDrop ? "dropped" : concat("nf", node);
}

bool drops(std::vector<Edge> const& edges) { return std::ranges::find(edges, kDrop, &Edge::to) != edges.end(); }

/// What stands at its arrow.
std::string label_of(Edge const& edge) {
  return concat(edge.is_mirror ? "copy" : "", edge.is_mirror && !edge.label.empty() ? ": " : "", edge.label);
}

std::string mermaid_of(ChainConfig const& chain) {
  const std::vector<Edge> edges = edges_of(chain);
  std::string text = "flowchart LR\n  rx([rx])\n  tx([tx])\n";
  const auto out = std::back_inserter(text);
  for (std::size_t nf = 0; nf < chain.nfs.size(); ++nf) {
    fmt::format_to(out, "  {}[\"{}<br>{}\"]\n", id_of(nf), chain.nfs[nf].name, describe(chain.nfs[nf]));
  }
  if (drops(edges)) {
    text += "  dropped([drop])\n";
  }
  for (Edge const& edge : edges) {
    const std::string_view arrow = edge.is_mirror ? "-.->" : "-->";
    const std::string label = label_of(edge);
    fmt::format_to(out, "  {} {}{} {}\n", id_of(edge.from), arrow, label.empty() ? "" : fmt::format("|\"{}\"|", label),
                   id_of(edge.to));
  }
  return text;
}

std::string dot_of(ChainConfig const& chain) {
  const std::vector<Edge> edges = edges_of(chain);
  std::string text =
      "digraph chain {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\", fontsize=11];\n"
      "  edge [fontname=\"sans-serif\", fontsize=9];\n  rx [shape=oval];\n  tx [shape=oval];\n";
  const auto out = std::back_inserter(text);
  for (std::size_t nf = 0; nf < chain.nfs.size(); ++nf) {
    fmt::format_to(out, "  {} [label=\"{}\\n{}\"];\n", id_of(nf), chain.nfs[nf].name, describe(chain.nfs[nf]));
  }
  if (drops(edges)) {
    text += "  dropped [shape=oval, style=dashed, label=\"drop\"];\n";
  }
  for (Edge const& edge : edges) {
    fmt::format_to(out, "  {} -> {} [label=\"{}\"{}];\n", id_of(edge.from), id_of(edge.to), label_of(edge),
                   edge.is_mirror    ? ", style=dashed"
                   : edge.is_of_rest ? ", style=dotted"
                                     : "");
  }
  return text + "}\n";
}

}  // namespace

std::string draw(ChainConfig const& chain, GraphFormat format) {
  switch (format) {
    case GraphFormat::kText:
      return text_of(chain);
    case GraphFormat::kMermaid:
      return mermaid_of(chain);
    case GraphFormat::kDot:
      return dot_of(chain);
  }
  return {};
}

}  // namespace catena::chain
