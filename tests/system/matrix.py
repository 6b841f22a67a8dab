# SPDX-License-Identifier: Apache-2.0
"""The cells of the matrix of changes to a running chain, those of the gate, those at live ports, and the expected outcome
of each cell.

A cell is one NF, the number of shards before and after the change, the isolation of the NF, and one change. Nothing here
runs a chain.
"""

import itertools
from typing import NamedTuple

NFS = ("nat", "lb", "ipsec", "monitor", "firewall", "nids", "router")
STATEFUL = NFS[:4]
SHARDS = ("1", "2", "3", "1 to 4", "4 to 2")
ISOLATIONS = ("none", "process", "group")
CHANGES = ("config", "added", "removed", "moved", "placement", "shards", "graph", "outputs")
LIVE_NFS = (*STATEFUL, "firewall")
LIVE_CHANGES = ("config", "added", "removed", "shards", "moved")  # the last in place of one that says a loss
LIVE_CELLS_OF_NF = 4
SHARDS_OF_GATE = "2"  # of the cells with each stateful NF and each change


class Cell(NamedTuple):
    nf: str
    shards: str
    isolation: str
    change: str

    def __str__(self):
        return f"{self.nf}, shards {self.shards}, isolation {self.isolation}, {self.change}"

    def shards_before(self):
        return int(self.shards.split()[0])

    def shards_after(self):
        """The change of the shards alone is one shard more."""
        steps = self.shards.split()
        return int(steps[-1]) + (self.change == "shards" and len(steps) == 1)

    def is_in_process(self):
        return self.isolation != "none"

    def changes_group(self):
        """Whether the process of the NF has other NFs, or another order of them, after the change."""
        return self.isolation == "group" and self.change in ("removed", "moved")

    def keeps_process(self):
        """Whether the process of the NF goes on as it is."""
        changes_others = self.change in ("added", "removed", "moved", "graph")
        is_in_same_shards = self.shards_before() == self.shards_after()
        return self.is_in_process() and changes_others and is_in_same_shards and not self.changes_group()


class Expected(NamedTuple):
    """`outcome`: of OUTCOMES. `reason`: in words."""
    outcome: str
    reason: str


OUTCOMES = {
    "lives": "no packet and no state is lost",
    "said": "something is lost, and the dry run and the answer of the apply say so",
    "refused": "the change is refused, and the chain runs unchanged",
    "missing": "the cell does not exist",
    "unsaid": "a known defect: something is lost, and the dry run does not say so",
    "wrong": "a known defect: the output is wrong",
}

# The first row with a true condition has the outcome of a cell: condition, outcome, reason.
RULES = (
    (lambda cell: cell.change == "outputs", "said",
     "outputs are opened at the start of a chain: other outputs take a restart"),
    (lambda cell: cell.nf not in STATEFUL, "lives", "the NF keeps no state"),
    (lambda cell: cell.nf == "monitor" and cell.change == "config", "said",
     "exports keep the configuration of their start"),
    (lambda cell: cell.keeps_process(), "lives", "an unchanged process goes on"),
    (lambda cell: cell.nf == "monitor" and cell.is_in_process(), "said",
     "a monitor of an own process exports its flows and restarts empty"),
    (lambda cell: cell.changes_group(), "said", "the state of a group is kept as a whole, with the same NFs"),
    (lambda cell: True, "lives", "the state migrates, to other shards too"),
)


def expected(cell, has_device=True):
    if cell.change == "placement" and not has_device:
        return Expected("missing", "no OpenCL device: an NF has one place only")
    return next(Expected(outcome, reason) for condition, outcome, reason in RULES if condition(cell))


def all_cells():
    return [Cell(*values) for values in itertools.product(NFS, SHARDS, ISOLATIONS, CHANGES)]


def pairs_of(cell):
    return set(itertools.combinations(enumerate(cell), 2))


def cover_pairs(cells, chosen=()):
    """`chosen`, then further ones of `cells`: each pair of values of two dimensions, which any of `cells` has, is in one
    of them. The next one always has the most uncovered pairs, the first of equals."""
    cover = list(chosen)
    uncovered = set().union(*map(pairs_of, cells)) - set().union(*map(pairs_of, cover))
    while uncovered:
        best = max(cells, key=lambda cell: len(pairs_of(cell) & uncovered))
        cover.append(best)
        uncovered -= pairs_of(best)
    return cover


def gate_cells():
    """All pairs of values, and each stateful NF with each change at two shards. The isolations take turns."""
    turns = itertools.cycle(ISOLATIONS)
    each = [Cell(nf, SHARDS_OF_GATE, next(turns), change) for nf in STATEFUL for change in CHANGES]
    return cover_pairs(all_cells(), each)


def live_cells():
    """Four changes of a chain at live ports for each stateful NF and the firewall, none of which may lose anything. The
    isolations take turns."""
    turns = itertools.cycle(ISOLATIONS)
    cells = []
    for nf in LIVE_NFS:
        of_nf = []
        for change in LIVE_CHANGES:
            in_turn = [Cell(nf, SHARDS_OF_GATE, next(turns), change) for _ in ISOLATIONS]
            of_nf += [cell for cell in in_turn if expected(cell).outcome == "lives"][:1]
            next(turns)
        cells += of_nf[:LIVE_CELLS_OF_NF]
    return cells
