#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes of a running chain: the cells of the matrix (matrix.py) of the gate, some of the cells at live ports, and the
choice of these cells.

`make matrix` runs all cells. CATENA_BIN names the program.
"""

import itertools
import unittest

import live_matrix_run
import matrix
from live_traffic import reason_for_none
from matrix_run import run_cells

RATE_AT_LIVE_PORTS = 10_000  # packets a second, which a loaded machine has time for
NO_LIVE_PORTS = reason_for_none()


class Choice(unittest.TestCase):
    def test_the_gate_has_each_pair_of_values(self):
        cells = matrix.gate_cells()
        dimensions = (matrix.NFS, matrix.SHARDS, matrix.ISOLATIONS, matrix.CHANGES)
        for (one, ones), (other, others) in itertools.combinations(enumerate(dimensions), 2):
            have = {(cell[one], cell[other]) for cell in cells}
            self.assertEqual(have, set(itertools.product(ones, others)))

    def test_the_gate_has_each_stateful_nf_with_each_change_at_two_shards(self):
        have = {(cell.nf, cell.change) for cell in matrix.gate_cells() if cell.shards == "2"}
        self.assertLessEqual(set(itertools.product(matrix.STATEFUL, matrix.CHANGES)), have)

    def test_the_gate_is_the_same_each_time_and_has_no_cell_twice(self):
        cells = matrix.gate_cells()
        self.assertEqual(cells, matrix.gate_cells())
        self.assertEqual(len(cells), len(set(cells)))
        self.assertLess(len(cells), 80)

    def test_live_cells_lose_nothing(self):
        cells = matrix.live_cells()
        self.assertEqual(len(cells), len(set(cells)))
        self.assertEqual({(cell.nf, matrix.expected(cell).outcome) for cell in cells},
                         {(nf, "lives") for nf in (*matrix.STATEFUL, "firewall")})
        self.assertEqual({cell.isolation for cell in cells}, set(matrix.ISOLATIONS))

    def test_each_rule_has_a_cell(self):
        reasons = {matrix.expected(cell).reason for cell in matrix.all_cells()}
        self.assertEqual(reasons, {reason for _, _, reason in matrix.RULES})


class Gate(unittest.TestCase):
    def test_each_change_keeps_or_says(self):
        for cell, expected, outcome in run_cells(matrix.gate_cells()):
            with self.subTest(cell=str(cell)):
                self.assertEqual(outcome.outcome, expected.outcome, f"{outcome}; expected: {expected.reason}")


@unittest.skipIf(NO_LIVE_PORTS, f"no live ports here: {NO_LIVE_PORTS}")
class LivePorts(unittest.TestCase):
    def test_a_change_loses_no_packet_of_a_source_in_another_process(self):
        cells = [cell for cell in matrix.live_cells() if cell.change == "shards"]
        for cell, expected, outcome in live_matrix_run.run_live_cells(cells, RATE_AT_LIVE_PORTS):
            with self.subTest(cell=str(cell)):
                self.assertEqual(outcome.outcome, expected.outcome, str(outcome))


if __name__ == "__main__":
    unittest.main(verbosity=2)
