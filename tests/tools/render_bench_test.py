#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages, figures and tables that tools/render-bench makes of what catena-bench has written."""

import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "tests" / "data" / "bench" / "simmer.json"
sys.path.insert(0, str(ROOT / "tools"))
from bench_pages import adaptchain, change, gnet, havs, havs_nginx, isoptr, nca, sharing, simmer, table  # noqa: E402
from bench_pages.page import Page, Results, Spread, bars, lines, plain, spread, times  # noqa: E402

PHASES = ("fill", "submit", "to device", "kernel", "to host", "deliver")
COPY_STAGED, COPY, SHARED, ADAPTIVE_STAGED, ADAPTIVE = "copy, staged", "copy", "shared", "adaptive, staged", "adaptive"


def results(part, cells, run=None, **fields):
    """Of one run of the part."""
    run = {"machine": "a machine", "device": "a device", "command": "as typed", "cost_profile": "built in", **(run or {})}
    return Results({"part": part, "commit": "abc", "seconds": 2, "repeats": 1, "settings": {"tuning": "pool_slots: 1"},
                    "runs": [run], "notes": [], "chains": {}, "cells": cells, **fields})


class Spreads(unittest.TestCase):
    def test_are_median_and_extremes(self):
        self.assertEqual(spread([3, 1, 2]), Spread(2, 1, 3))
        self.assertEqual(spread([4, 1, 2, 3]).median, 2.5)
        self.assertEqual(spread([]), Spread(0, 0, 0))
        self.assertEqual(spread([3, 1, 2]).text(".1f"), "2.0 (1.0 .. 3.0)")
        self.assertEqual(spread([3, -1, 2]).percent(), "+2.0 % (-1.0 .. +3.0)")
        self.assertEqual([plain(number) for number in (2.0, 2.8, 0.05, 10)], ["2", "2.8", "0.05", "10"])


class Charts(unittest.TestCase):
    def test_bars_keep_value_and_spread(self):
        drawn = bars(("t", "x", "y"), ("one", "two"), [("s", [Spread(10, 5, 15), Spread(math.nan, -1, math.inf)])], stacked=True)
        self.assertEqual(drawn["series"][0]["bars"], [[10, 5, 15], [0, 0, 0]])
        self.assertEqual((drawn["kind"], drawn["title"], drawn["y_title"], drawn["stacked"]), ("bars", "t", "y", True))

    def test_lines_leave_out_what_has_no_place_on_a_logarithmic_axis(self):
        drawn = lines(("t", "x", "y"), [("s", [(0, 0), (1, 0), (math.nan, 5), (10, 50)]), ("e", [])])
        self.assertEqual(drawn["series"], [{"name": "s", "points": [[1, 0], [10, 50]]}])

    def test_boxes_of_time_are_cut_at_the_ends(self):
        drawn = times("t", {"kinds": ["a", "b"], "length": 100, "rows": [
            {"name": "r", "boxes": [[0, 0, 50], [1, 50, 75], [0, -10, 0], [1, 90, 500]]},
            {"name": "s", "boxes": [[0, 25, 75], [2, 0, 1], [0, 101, 102], [0, None, 1]]}]})
        self.assertEqual(drawn["rows"][0]["boxes"], [[0, 0, 50], [1, 50, 75], [1, 90, 100]])
        self.assertEqual(drawn["rows"][1]["boxes"], [[0, 25, 75]])

    def test_there_is_none_without_anything_in_it(self):
        for drawn in (bars(("t", "x", "y"), (), []), lines(("t", "x", "y"), []),
                      times("t", {"kinds": [], "length": 0, "rows": []}),
                      bars(("t", "x", "y"), ("a", "b"), [("s", [math.nan, None]), ("s", [-1, math.inf])]),
                      lines(("t", "x", "y"), [("s", [(math.nan, 1), (-1, 1), (1, math.nan), (None, 1)])]),
                      times("t", {"kinds": ["a"], "length": 10, "rows": [{"name": "r", "boxes": []}]})):
            self.assertIsNone(drawn)
        page = Page()
        page.figure("stem", None)
        self.assertEqual((page.markdown(), page.figures), ("", {}))


# ---- adaptchain

def in_mode(mode, size, speeds, to_device=0, group="throughput", chain="C1", nfs=(), **fields):
    return {"group": group, "chain": chain, "mode": mode, "wire_bytes": size, "unit_packets": 0, "offered_gbps": 0, "run": 0,
            "replicas": 1, "planned_ns": 0, "samples": {"compared": 256, "different": 0},
            "repeats": [{"packets_per_s": speed, "bytes_to_device": to_device, "bytes_to_host": 0, "received": 10, "dropped": 0,
                         "offered_per_s": 0, "taken": 1, "seconds": 2, "cores": 3.5, "process_cores": 4, "latency_us": {"p50": 0, "p95": 0, "p99": 0}, "stages": [],
                         "nfs": [{"name": name, "bytes_to_device": moved, "bytes_to_host": 9} for name, moved in nfs]}
                        for speed in speeds], **fields}


def launches(name, us):
    """Ten launches of full batches, each with these times of its parts."""
    return {"name": name, "launches": 10, "packets": 10 * 1024, "median_us": dict(zip(PHASES, us)),
            "total_us": dict(zip(PHASES, (10 * one for one in us)))}


def at_10_gbps(cell):
    """Takes what 10 Gbps bring of its frames."""
    for repeat in cell["repeats"]:
        repeat["packets_per_s"] = 10e9 / 8 / cell["wire_bytes"]
        repeat["received"] = 10 * 1024
    cell["offered_gbps"] = 10
    return cell


CHAINS = {"C1": {"title": "firewall(C) ipsec(G) nids(G)", "decrypts": False,
                 "nfs": [{"name": "fw", "type": "firewall", "on_gpu": False}, {"name": "vpn", "type": "ipsec", "on_gpu": True},
                         {"name": "ids", "type": "nids", "on_gpu": True}]}}


def adaptchain_page(*cells, **fields):
    return adaptchain.page(results("adaptchain", list(cells), {"copy_gb_per_s": 45}, chains=CHAINS, **fields))


class AdaptChain(unittest.TestCase):
    def test_counts_frames_with_fcs(self):
        self.assertAlmostEqual(adaptchain.gbps(in_mode(COPY, 1250, [1e6])).median, 10)  # 10,000 bits, a million times a second

    def test_sets_ratios_and_savings_beside_the_papers(self):
        page = adaptchain_page(in_mode(COPY_STAGED, 64, [1e6, 2e6, 3e6], 100), in_mode(ADAPTIVE_STAGED, 64, [3e6], 80),
                               in_mode(COPY, 64, [4e6], 60), in_mode(ADAPTIVE, 64, [5e6], 50), in_mode(SHARED, 64, [2e6], 50),
                               in_mode(COPY_STAGED, 1518, [1e6], 2000), in_mode(ADAPTIVE_STAGED, 1518, [4e6], 1000))
        text = page.markdown()
        self.assertIn("| C1 | 9 | up to 3.2x | 1.50x .. 4.00x | 13.9 % (64 B) .. 49.1 % (1518 B) | 20.0 .. 50.0 % |", text)
        self.assertIn("| C1 | 64 | 1.50 | 2.00 | 2.50 | 1.25 | 2.50 | - |", text)  # plan, method, both, over others
        self.assertIn("| C1 | 1518 | 4.00 | - | - | - | - | - |", text)
        self.assertIn("| 64 | copy, staged | 1 | 2.000 | 1.02 (0.51 .. 1.54) |", text)
        self.assertNotIn("C2:", text, "nothing was measured of it")
        self.assertEqual(set(page.figures), {"c1-throughput", "c1-to-device"})
        self.assertEqual(page.figures["c1-throughput"]["labels"], ["64", "1518"])
        self.assertEqual(page.figures["c1-to-device"]["series"][0]["name"], COPY_STAGED)
        self.assertIn("](c1-throughput.svg)", text)
        self.assertIn("1792 sampled packets against the chain on the CPU, 0 different", text)

    def test_failures_stand_at_its_top(self):
        failed = in_mode(COPY, 64, [], error="the device fell out")
        text = adaptchain_page(failed).markdown()
        self.assertIn("**1 measurements failed:**\n\n- throughput C1 copy 64 B: the device fell out", text)
        self.assertNotIn("## C1", text)

    def test_what_each_nf_moves_and_saves(self):
        text = adaptchain_page(in_mode(COPY_STAGED, 512, [1e6], nfs=(("vpn", 500), ("ids", 400))),
                               in_mode(ADAPTIVE_STAGED, 512, [1e6], nfs=(("vpn", 500), ("ids", 20)))).markdown()
        self.assertIn("| C1 | nids | 63.6 .. 99.5 % | 95.0 .. 95.0 % |", text)
        self.assertIn("| C1 | ipsec |  | 0.0 .. 0.0 % |", text)
        self.assertIn("| frame | mode | vpn | ids |", text)
        self.assertIn("| 512 | adaptive, staged | 500.0 | 20.0 |", text)

    def test_parts_of_a_batch_are_in_percent_of_the_batch_in_host_memory(self):
        def staged(chain, mode, nf, us, to_device):
            cell = in_mode(mode, 512, [1], group="stages", chain=chain, nfs=((nf, to_device),))
            cell["repeats"][0]["launches"] = [launches("before", (9, 9, 9, 9, 9, 9)), launches(nf, us)]
            return cell
        page = adaptchain_page(staged("IPsec", COPY_STAGED, "vpn", (30, 10, 20, 25, 5, 10), 520),
                               staged("IPsec-resident", ADAPTIVE_STAGED, "vpn", (2, 1, 1, 25, 1, 2), 25),
                               staged("NIDS", COPY_STAGED, "ids", (30, 10, 20, 25, 5, 10), 500))
        text = page.markdown()
        self.assertIn("| IPsec | 25.8 -> 2.5 % | 25.0 .. 25.0 -> 2.0 .. 2.0 % | 49.2 -> 6.3 % | 50.0 .. 50.0 -> 5.0 .. 5.0 % | "
                      "77.1 % | 68.0 .. 68.0 % |", text)
        self.assertIn("| IPsec | 512 | host | 40.0 % | 20.0 % | 25.0 % | 5.0 % | 10.0 % | 100.0 % | 100.0 | 520.0 | 9.0 | 10 | "
                      "1024 |", text)
        self.assertIn("| IPsec | 512 | device | 3.0 % | 1.0 % | 25.0 % | 1.0 % | 2.0 % | 32.0 % | 32.0 | 25.0 | 9.0 | 10 | 1024 |",
                      text)
        self.assertNotIn("| NIDS |", text, "its batch on the device is missing")
        self.assertEqual(page.figures["ipsec-parts"]["labels"], ["512 H", "512 D"])
        self.assertTrue(page.figures["ipsec-parts"]["stacked"])
        self.assertNotIn("nids-parts", page.figures)

    def test_the_time_of_c3_is_in_percent_of_copy(self):
        def batch(mode, vpn, ids, cpu_us):
            cell = at_10_gbps(in_mode(mode, 512, [1], group="batch", chain="C3"))
            cell["repeats"][0]["stages"] = [{"name": name, "busy_s": 10 * cpu_us / 1e6}
                                            for name in ("rx", "vpn", "lb", "ids", "tx")]
            cell["repeats"][0]["launches"] = [launches("vpn", vpn), launches("ids", ids)]
            return cell
        page = adaptchain_page(batch(COPY_STAGED, (0, 0, 20, 10, 5, 0), (0, 0, 10, 5, 0, 0), 10),
                               batch(ADAPTIVE, (0, 0, 10, 10, 2, 0), (0, 0, 0, 5, 3, 0), 4))
        text = page.markdown()
        self.assertIn("| 512 | copy, staged | 10.00 | 10.0 % | 30.0 % | 10.0 % | 10.0 % | 10.0 % | 10.0 % | 5.0 % | 5.0 % | 10.0 % | "
                      "100.0 % | 100.0 | 10 of 1024, 10 of 1024 |", text)
        self.assertIn("| 512 | adaptive | 10.00 | 4.0 % | 10.0 % | 4.0 % | 10.0 % | 4.0 % | 4.0 % | 5.0 % | 5.0 % | 4.0 % | 50.0 % | "
                      "50.0 |", text)
        self.assertIn("| to the device (H2D unit) | 5.9 .. 8.9 % | 10.0 .. 10.0 % |", text)
        self.assertIn("| to the host and tx (D2H unit and TX) | 26.5 .. 52.3 % | 9.0 .. 9.0 % |", text)
        self.assertIn("| all saved | 13.6 .. 63.7 % | 50.0 .. 50.0 % |", text)
        self.assertEqual(page.figures["c3-batch"]["labels"], ["512 B", "512 A"])

    def test_moves_are_beside_those_of_the_firewall_alone(self):
        cells = []
        for chain, us in (("F", 10), ("F-I", 15), ("F-I-N", 17.5)):
            cell = at_10_gbps(in_mode(COPY_STAGED, 1024, [1], group="conflicts", chain=chain))
            cell["repeats"][0]["launches"] = [launches("fw", (0, 0, us, 0, 0, 0))]
            cells.append(cell)
        page = adaptchain_page(*cells)
        text = page.markdown()
        self.assertIn("| F | 10 Gbps | 10.00 | 10.0 (10.0 .. 10.0) |  |  | 10 | 1024 |", text)
        self.assertIn("| F-I | 10 Gbps | 10.00 | 15.0 (15.0 .. 15.0) | +50.0 % | +47.5 % | 10 | 1024 |", text)
        self.assertIn("| F-I-N | 10 Gbps | 10.00 | 17.5 (17.5 .. 17.5) | +75.0 % | +80.8 % |", text)
        self.assertEqual(page.figures["conflicts"]["labels"], ["F", "F-I", "F-I-N"])

    def test_latency_by_unit_size_is_beside_the_papers(self):
        cells = [at_10_gbps(in_mode(ADAPTIVE, size, [1], group=group, chain="C4"))
                 for group, size in (("units", 512), ("latency", 1024))]
        cells[0]["offered_gbps"] = 0
        for cell in cells:
            cell.update(unit_packets=16, latency_cdf=[[100, 50], [200, 95]])
            cell["repeats"][0]["latency_us"] = {"p50": 100, "p95": 200, "p99": 300}
        page = adaptchain_page(*cells)
        self.assertIn("| 16 | 10.00 | 100.0 (100.0 .. 100.0) | 3.8 ms | 200.0 (200.0 .. 200.0) | 5.5 ms |", page.markdown())
        self.assertEqual(page.figures["c4-unit-throughput"]["labels"], ["512"], "latency has a size of its own")

    def test_a_cell_that_is_short_of_its_load_is_void(self):
        cell = at_10_gbps(in_mode(ADAPTIVE, 1024, [1], group="latency", chain="C4", latency_cdf=[[1, 50]]))
        self.assertEqual(adaptchain.left(cell), "10.00")
        self.assertIn("| C4 | 10 Gbps | adaptive | 1 | 10.00 | 0.0 (0.0 .. 0.0) |", adaptchain_page(cell).markdown())
        cell["void"] = "repeat 1 took 91.0 % of what was offered"
        self.assertIn(f"| C4 | 10 Gbps | adaptive | 1 | **void**: {cell['void']} | - | - | - | - |", adaptchain_page(cell).markdown())

    def test_latency_has_its_copies_and_their_trials(self):
        cell = at_10_gbps(in_mode("cpu", 1024, [1], group="latency", chain="C4", latency_cdf=[[1, 50]], tuning="pool_slots: 4096"))
        cell.update(replicas=16, trials=[{"replicas": 1, "tuning": "", "scores": [1.5e6]},
                                         {"replicas": 16, "tuning": "pool_slots: 4096", "scores": [1e15, 5e14, 2.5e14]}])
        self.assertIn("| C4 | 10 Gbps | cpu | 16, pool_slots: 4096 | 10.00 | 0.0 (0.0 .. 0.0) | 0.0 (0.0 .. 0.0) | 0.0 (0.0 .. 0.0) | "
                      "1: 1.50 Mpps; 16, pool_slots: 4096: 200 us |", adaptchain_page(cell).markdown())

    def test_rows_say_what_a_packet_costs_the_processors_and_the_bus(self):
        cell = in_mode(COPY, 64, [1e6, 2e6, 3e6], to_device=50)
        for repeat, more in zip(cell["repeats"], (-1, 0, 5)):
            repeat["bare_copies"] = {"strided": {"to_device": 20.25 + more, "to_host": 21 + more},
                                     "gather": {"to_device": 40 + more, "to_host": 41 + more}}
        text = adaptchain_page(cell).markdown()
        self.assertIn("| 3.5 (4.0) | 1750 (1167 .. 3500) |", text)
        self.assertIn("| 50.0 | 0.1 of 20.2 / 40.0 | 0.0 | 0.0 of 21.0 / 41.0 |", text)

    def test_ways_of_a_chain_are_beside_its_cpu(self):
        cells = [in_mode(mode, 64, speeds, group="places", chain="C4", copies=copies)
                 for mode, speeds, copies in (("cpu", [2e6, 1e6], "best"), (ADAPTIVE, [4e6, 3e6], "1"), ("auto", [8e5, 6e5], "1"))]
        text = adaptchain_page(*cells).markdown()
        self.assertRegex(text, r"(?m)^\| C4 \| 64 \| cpu \|.*\| - \|$")
        self.assertRegex(text, r"(?m)^\| C4 \| 64 \| adaptive \|.*\| 2\.50 \(2\.00 \.\. 3\.00\) \|$")
        self.assertRegex(text, r"(?m)^\| C4 \| 64 \| auto \|.*\| 0\.50 \(0\.40 \.\. 0\.60\) \|$")

    def test_time_lines_are_figures(self):
        cell = at_10_gbps(in_mode(ADAPTIVE, 1024, [1], group="latency", chain="C4", latency_cdf=[[1, 50]]))
        cell["timeline"] = {"kinds": ["kernel"], "length": 1000, "rows": [{"name": "ids device 1", "boxes": [[0, 10, 20]]}]}
        page = adaptchain_page(cell)
        self.assertIn("](c4-timeline-10.svg)", page.markdown())
        self.assertEqual(page.figures["c4-timeline-10"]["rows"][0]["name"], "ids device 1")

    def test_busy_stages_and_sources_are_beside_each_chain(self):
        cell = in_mode(COPY_STAGED, 64, [1e6])
        cell["repeats"][0]["stages"] = [{"name": "rx", "busy_s": 0.5}, {"name": "vpn", "busy_s": 1.94}]
        source = in_mode("-", 64, [10e6, 9e6, 12e6], group="source", chain="rx-tx")
        text = adaptchain_page(cell, source).markdown()
        self.assertIn("| 64 | copy, staged | 1 | 1.000 | 0.51 (0.51 .. 0.51) | 3.5 (4.0) | 3500 (3500 .. 3500) | 5 | vpn 97 % |", text)
        self.assertIn("| replay | 64 | 1 | 10.000 | 5.12 (4.61 .. 6.14) |", text)

    def test_where_c3s_workers_spend_their_time_is_of_the_last_repeat(self):
        cells = []
        for mode, rx in ((COPY_STAGED, 3), (ADAPTIVE, 1)):
            cell = in_mode(mode, 64, [1e6, 1e6], chain="C3")
            for repeat, factor in zip(cell["repeats"], (7, 1)):
                repeat.update(received=1000, stages=[{"name": "rx", "busy_s": factor * rx}, {"name": "lb", "busy_s": 1},
                                                     {"name": "tx", "busy_s": 0}])
            cells.append(cell)
        chains = {"C3": {"title": "lb(C)", "decrypts": False, "nfs": [{"name": "lb", "type": "lb", "on_gpu": False}]}}
        page = adaptchain.page(results("adaptchain", cells, {"copy_gb_per_s": 45}, chains=chains))
        self.assertIn("| 64 | copy, staged | 75.0 % | 25.0 % | 0.0 % | 4000000.0 |", page.markdown())
        self.assertIn("| 64 | adaptive | 50.0 % | 50.0 % | 0.0 % | 2000000.0 |", page.markdown())
        self.assertEqual(page.figures["c3-stages"]["labels"], ["64 B", "64 A"])
        self.assertEqual([bar[0] for bar in page.figures["c3-stages"]["series"][0]["bars"]], [3e6, 1e6])

    def test_each_run_says_how_fast_it_was(self):
        anchor = in_mode(ADAPTIVE, 64, [30e6, 29e6, 40e6], group="anchor", chain="C4")
        self.assertIn("| 1 | a machine | a device | 45.0 | 64 B: 30.0 Mpps, 15.4 Gbps | `as typed` |",
                      adaptchain_page(anchor).markdown())


# ---- gnet

def shared_cell(repeats, **fields):
    return {"group": "throughput", "chain": "S_a", "wire_bytes": 64, "compute_units": 132, "run": 0, "offered_per_s": 0,
            "repeats": [{mode: {"packets_per_s": value, "p50_us": 10, "p95_us": value / 10} for mode, value in repeat.items()}
                        for repeat in repeats],
            "latency_cdf": {}, "parts": {mode: [] for mode in gnet.MODES}, "busy": [{"what": "rx", "share": 0.9}],
            "samples": {"compared": 1, "different": 0}, "timeline": {"kinds": [], "length": 0, "rows": []}, **fields}


def gnet_page(*cells):
    return gnet.page(results("gnet", list(cells), {"compute_units": 132, "compute_unit_step": 2},
                             settings={"tuning": "pool_slots: 1", "parts": "green"}))


class Gnet(unittest.TestCase):
    def test_a_way_is_above_another_by_the_median_of_pairs(self):
        cell = shared_cell([{"scheduled": one, "temporal": 100} for one in (110, 120, 90)])
        above = gnet.above(cell, "scheduled", "temporal")
        for value, expected in zip(above, (10, -10, 20)):
            self.assertAlmostEqual(value, expected)

    def test_the_best_cell_of_a_chain_is_beside_the_papers(self):
        ways = {"scheduled": 130, "fair": 100, "uncoordinated": 110, "temporal": 100}
        page = gnet_page(shared_cell([ways]), shared_cell([dict(ways, scheduled=101)], wire_bytes=512),
                         shared_cell([dict(ways, temporal=200)], group="latency", offered_per_s=5e6,
                                     latency_cdf={"scheduled": [[1, 50]]}))
        text = page.markdown()
        self.assertIn("| S_a: scheduled above temporal, throughput | +23.8 % at best | +30.0 % (+30.0 .. +30.0) | 64 B, 132 units | "
                      "yes |", text)
        self.assertIn("| S_a: uncoordinated above temporal, throughput | +23.8 % at best | +10.0 %", text)
        self.assertIn("| S_a: temporal above scheduled, p95 | +25.5 .. +44.3 % | +53.8 % (+53.8 .. +53.8) | 64 B, 5.0 Mpps offered | "
                      "yes |", text)
        # 30 and 1 % above fair
        self.assertIn("| fair | +16.7 .. +34.0 % | +15.5 .. +15.5 %: S_a +15.5 % | no |", text)
        self.assertIn("### S_a, 64 B, 132 compute units, 5.00 Mpps offered", text)
        self.assertIn("Busy in a scheduled run of its own: rx 90 %.", text)
        self.assertEqual(page.figures["throughput-132"]["labels"], ["S_a 64", "S_a 512"])
        self.assertIn("latency-S_a", page.figures)

    def test_the_model_and_cores_are_beside_a_row(self):
        cell = shared_cell([{mode: 50e6 for mode in gnet.MODES}])
        for values in cell["repeats"][0].values():
            values.update(cores=3.25, process_cores=6)
        for mode in gnet.MODES:
            cell["parts"][mode] = [{"nf": "vpn", "units": 4, "launch_packets": 100, "predicted_per_s": 40e6},
                                   {"nf": "ids", "units": 2, "launch_packets": 50, "predicted_per_s": 60e6}]
        text = gnet_page(cell).markdown()
        self.assertIn("| scheduled | 50.00 (50.00 .. 50.00) | 33.6 | 40.00 | 3.2, 6.0 | 10 (10 .. 10) |", text)
        self.assertIn("| temporal | 50.00 (50.00 .. 50.00) | 33.6 | - | 3.2, 6.0 |", text)

    def test_a_load_that_was_not_taken_has_no_latency(self):
        ways = {"scheduled": 100, "fair": 100, "uncoordinated": 100, "temporal": 200}
        page = gnet_page(shared_cell([ways], group="latency", offered_per_s=5e6, latency_cdf={"scheduled": [[1, 50]]},
                                     void="repeat 1, fair, took 0.90 of its load"))
        self.assertIn("Void: repeat 1, fair, took 0.90 of its load.", page.markdown())
        self.assertNotIn("p95 |", page.markdown().split("## The model")[0].split("Against the paper")[1])
        self.assertNotIn("latency-S_a", page.figures)

    def test_a_cell_that_failed_is_on_the_page_with_its_reason(self):
        failed = shared_cell([], chain="S_b", error="the device is lost")
        self.assertIn("- throughput: S_b, 64 B, 132 compute units: the device is lost", gnet_page(failed).markdown())

    def test_what_nfs_cost_is_that_of_the_last_run(self):
        def nf(run, core_ns):
            return {"group": "nfs", "nf": "ids", "wire_bytes": 512, "run": run, "repeats": [],
                    "model": {"b1_ns": 7000, "k1_ns": 20, "b2_ns": 9000, "k2_ns": 1, "overhead_ns": 5000, "kernel_r2": 0.99,
                              "transfer_r2": 0.98, "max_packets_per_unit": 2048, "kernel_units": 8, "host_ns_per_packet": core_ns},
                    "launches": [{"packets": 4096, "kernel_ns": 40960, "transfer_ns": 1, "round_trip_ns": 1}],
                    "kernels": [{"units": 8, "packets": 4096, "kernel_ns": 81920}]}
        failed = {"group": "nfs", "nf": "rt", "wire_bytes": 512, "run": 1, "repeats": [], "error": "no packet of that size"}
        made = results("gnet", [nf(0, 5), nf(1, 10), failed], {"compute_units": 132, "compute_unit_step": 2},
                       settings={"tuning": "", "parts": "green"})
        made.json["runs"] *= 2
        page = gnet.page(made)
        self.assertIn("| ids | 512 | 7.00 | 20.00 | 0.9900 | 9.00 | 1.000 | 0.9800 | 5.00 | 2048 |", page.markdown())
        self.assertIn("| rt | 512 | not measured: no packet of that size |", page.markdown())
        self.assertIn("| ids | 512 | 100 | 426 | 100.0 | 1.0 |", page.markdown())
        self.assertNotIn("| 200.0 | 0.5 |", page.markdown())
        self.assertEqual(page.figures["kernel-units"]["series"], [{"name": "ids", "points": [[8, 81.92]]}])
        self.assertEqual(page.figures["batch-time"]["series"], [{"name": "ids, 8 units", "points": [[4096, 81.92]]}])
        self.assertEqual(page.figures["batch-throughput"]["series"], [{"name": "ids, 8 units", "points": [[4096, 50]]}])


# ---- scripts

class Sharing(unittest.TestCase):
    def test_ways_are_beside_the_first_one_by_pairs(self):
        def ways(first, second):
            values = {"process_cores": 4.04, "p50_us": 300, "p95_us": 400}
            return {"by turns": {"packets_per_s": first, **values}, "catena serve": {"packets_per_s": second, **values}}
        cell = {"group": "three", "wire_bytes": 64, "packets": 1_000_000, "run": 0,
                "repeats": [ways(1e6, 2e6), ways(2e6, 3e6), ways(1e6, 3e6)]}
        failed = {"group": "three", "wire_bytes": 512, "packets": 0, "run": 0, "repeats": [], "error": "no MPS"}
        text = sharing.page(results("sharing", [cell, failed], {})).markdown()
        self.assertIn("| three | 64 B | 1.0 Mpps each | catena serve | 3.00 (2.00 .. 3.00) | 4.0 (4.0 .. 4.0) | 300 (300 .. 300) | "
                      "400 (400 .. 400) | 2.00 (1.50 .. 3.00) |", text)
        self.assertIn("- three: 512 B, as fast as it goes: no MPS", text)


class Change(unittest.TestCase):
    def test_what_a_change_cost_is_said_of_each_run(self):
        def way(lost):
            return {"offered": 1000, "lost": lost, "dropped_inside": 0, "longest_pause_us": 1500, "sender_late_us": 100,
                    "longest_us": 200}
        cell = {"group": "change", "nf": "gpu", "packets": 200_000, "run": 0,
                "repeats": [{"none": way(0), "rules": way(0), "chain": way(lost)} for lost in (0, 7)]}
        text = change.page(results("change", [cell], {}, settings={"ring": 4096})).markdown()
        self.assertIn("| gpu | 200,000 | nothing | 2,000 | 0 (0, 0) | 1.5 (1.5 .. 1.5) | 0.1 (0.1 .. 0.1) | 0.2 (0.2 .. 0.2) |", text)
        self.assertIn("| gpu | 200,000 | an NF added or removed | 2,000 | 7 (0, 7) | 1.5 (1.5 .. 1.5) | "
                      "0.1 (0.1 .. 0.1) | 0.2 (0.2 .. 0.2) |", text)


# ---- isoptr

def checked_cell(group, chain, repeats, **fields):
    return {"group": group, "chain": chain, "wire_bytes": 64, "packets": 0, "run": 0, "us_per_launch": 60, "busy": [],
            "repeats": [{"checked_ns": with_checks, "unchecked_ns": without} for with_checks, without in repeats], **fields}


def isoptr_results(*cells):
    return results("isoptr", list(cells), {"us_per_empty_launch": 4}, settings={"tuning": "", "kernel_seconds": "0.03"},
                   chains={"S_b": {"title": "firewall(G) ipsec(G) nids(G)", "decrypts": True, "nfs": [1, 2, 3]}})


class IsoPtr(unittest.TestCase):
    def test_overhead_is_that_of_runs_beside_each_other(self):
        overhead = isoptr.overhead(checked_cell("kernels", "nids", [(102, 100), (220, 200), (99, 100)]))
        for value, expected in zip(overhead, (2, -1, 10)):
            self.assertAlmostEqual(value, expected)

    def test_says_what_limits(self):
        made = isoptr_results()
        self.assertEqual(isoptr.limit_of(made, checked_cell("kernels", "nids", [], us_per_launch=5)), "launches, 5.0 us a launch")
        self.assertEqual(isoptr.limit_of(made, checked_cell("kernels", "nids", [])), "kernel, 60.0 us a launch")
        self.assertEqual(isoptr.limit_of(made, checked_cell("chains", "S_a", [])), "-")
        busy = [{"what": "moves", "share": 0.5}, {"what": "kernels", "share": 0.9}, {"what": "rx", "share": 0.7}]
        self.assertEqual(isoptr.limit_of(made, checked_cell("chains", "S_a", [], busy=busy)), "kernels, busy 90 %")

    def test_sets_the_largest_overhead_beside_the_bar(self):
        page = isoptr.page(isoptr_results(checked_cell("kernels", "nids", [(102, 100), (51, 50), (204, 200)], packets=4096),
                                          checked_cell("kernels", "router", [(100.5, 100)], packets=4096),
                                          checked_cell("chains", "S_b", [(100, 100), (100.9, 100), (104, 100)]),
                                          checked_cell("chains", "S_c", [], error="the device fell out")))
        text = page.markdown()
        self.assertIn("| kernels | 2.8 .. 4.5 % | +2.00 % (+2.00 .. +2.00) | nids, 64 B, 4096 packets | yes | no |", text)
        self.assertIn("| chains | 2.8 .. 4.5 % | +0.90 % (+0.00 .. +4.00) | S_b, 64 B | in the median | in the median |", text)
        self.assertIn("**1 measurements failed:**\n\n- chains S_c 64 B: the device fell out", text)
        self.assertIn("- S_b: firewall(G) ipsec(G) nids(G)", text)
        self.assertIn("| nids | 64 | 4096 | 102.000 | 100.000 | +2.00 % (+2.00 .. +2.00) | kernel, 60.0 us a launch |", text)
        self.assertIn("| S_b | 64 | 9.911 | 10.000 | +0.90 %", text)
        self.assertEqual(set(page.figures), {"kernels-4096", "chains"})
        self.assertEqual(page.figures["kernels-4096"]["labels"], ["nids", "router"])


# ---- nca

def buffer_cell(group, gbps, **fields):
    return {"group": group, "strings": 5000, "packet_bytes": 0, "matching_percent": 35, "streams": 1, "threads": 8, "queues": 3,
            "run": 0, "hyperscan_core_gbps": [10, 20, 30], "hyperscan_cores": 8, "hyperscan_cores_gbps": [40, 50, 60],
            "repeats": [{"gbps": one, "mpps": one / 4, "copy_share": 0.5, "kernel_share": 0.2, "hidden_share": 0.25,
                         "kernel_hidden_share": 0.625, "kernel_gbps": 2 * one} for one in gbps], **fields}


class Nca(unittest.TestCase):
    def page(self, *cells, pinned=400):
        return nca.page(results("nca", list(cells), {"copies_gbps": {"pinned": pinned, "pageable": 100}},
                                settings={"packets": "16384"}))

    @staticmethod
    def kernel_cell():
        """The ratio is that of a repeat, and the median of the three."""
        cell = buffer_cell("kernel", [100, 90, 120])
        for repeat, kernel in zip(cell["repeats"], (200, 100, 600)):
            repeat["kernel_gbps"] = kernel
        return cell

    def test_sets_each_group_beside_its_bar(self):
        page = self.page(buffer_cell("streams", [300]), buffer_cell("streams", [350], streams=2),
                         buffer_cell("queues", [100, 120, 110]), self.kernel_cell())
        text = page.markdown()
        self.assertIn("| 1 streams of 8 adding threads, 35 % matching, against bare copies | 0.75x on an H200 | 0.75x |", text)
        self.assertNotIn("| 2 streams of 8", text, "there is no bar")
        self.assertIn("| copy time hidden with 3 queues | 95 % on an H200 | 25.0 % |", text)
        self.assertIn("| the library against its kernel by itself, 35 % matching | 0.8x on the OpenCL CPU device | 0.50x |", text)
        self.assertIn("| 3 | 110.00 (100.00 .. 120.00) | 50.0 % | 20.0 % | 25.0 % (25.0 .. 25.0) | 62.5 % (62.5 .. 62.5) | "
                      "20.00 (10.00 .. 30.00) |", text)
        self.assertIn("| 5000 | 35 % | 100.00 (90.00 .. 120.00) | 200.00 (100.00 .. 600.00) | 0.50x | 20.00 (10.00 .. 30.00) |", text)
        self.assertEqual(set(page.figures), {"queues-gbps", "queues-hidden"})

    def test_the_drafts_figures_are_below_ours(self):
        text = self.page(buffer_cell("draft", [400, 300, 440], batch_us={"copy_in": 12.4, "kernel": 30, "copy_back": 4})).markdown()
        self.assertIn("| 5000 | variable | 35 % | 400.00 (300.00 .. 440.00) | 100.00 | 6104 | 20.00 (10.00 .. 30.00) | 20.00x | "
                      "50.00 (40.00 .. 60.00) | 8.00x | 50.00 | 12 | 30 "
                      "| 4 |", text)
        self.assertIn("| 5000, the draft | variable | 35 % | 33.02 |  | 464 |  |  |  |  |  | 923 | 4380 | 168 |", text)

    def test_the_device_cpu_has_no_copies(self):
        cell = buffer_cell("queues", [100])
        cell["repeats"][0].update(copy_share=0, hidden_share=0)
        text = self.page(cell, pinned=0).markdown()
        self.assertIn("| no copies | no copies |", text)
        self.assertNotIn("copy time hidden with 3 queues", text)


# ---- simmer

def overload_cell(vanilla, ours, **fields):
    """`vanilla`, `ours`: for each repeat what leaves, and for each NF (name, worked on, dropped, launches)."""
    def flow(repeat):
        speed, *nfs = repeat
        return {"packets_per_s": speed, "received_per_s": speed, "nfs": [
            dict(zip(("name", "packets_per_s", "drops_per_s", "launches_per_s"), nf)) for nf in nfs]}
    return {"group": "qt", "chain": "heterogeneous", "shared_as": "process", "wire_bytes": 1472, "qt": 2.8, "load": "first NF",
            "tuning": "", "run": 0, "offered_per_s": 1e6, "busy": {"vanilla": [], "back-pressure": [{"what": "rt", "share": 0.5}]},
            "repeats": [{"vanilla": flow(a), "back-pressure": flow(b)} for a, b in zip(vanilla, ours)], **fields}


SOME_OVERLOAD = overload_cell([(100, ("rt", 200, 0, 3), ("vpn", 100, 100, 1)), (100, ("rt", 200, 0, 1), ("vpn", 150, 50, 1)),
                               (50, ("rt", 200, 0, 0), ("vpn", 50, 150, 0))], [(130,), (110,), (60,)])


class Simmer(unittest.TestCase):
    def page(self, *cells):
        return simmer.page(results("simmer", list(cells), {"compute_units": 2}))

    def test_figures_are_medians_of_repeats(self):
        above = simmer.above_vanilla(SOME_OVERLOAD)
        self.assertAlmostEqual(above.median, 20)
        self.assertAlmostEqual(above.high, 30)
        self.assertEqual(simmer.dropped_inside(SOME_OVERLOAD, "vanilla").median, 100)
        self.assertEqual(simmer.drop_percent(SOME_OVERLOAD, "vanilla", "vpn").median, 50)
        self.assertEqual(simmer.launch_percent(SOME_OVERLOAD, "vanilla", "vpn").median, 25)
        self.assertEqual(simmer.launch_percent(SOME_OVERLOAD, "vanilla", "ids").high, 0, "there is none")

    def test_the_page_has_the_sweep_and_what_the_paper_says(self):
        page = self.page(SOME_OVERLOAD)
        text = page.markdown()
        self.assertIn("| qt: heterogeneous, back-pressure above vanilla | +29 % | +20.0 % (+10.0 .. +30.0) | 1472 B, qt 2.8", text)
        self.assertIn("### heterogeneous, 1472 B", text)
        self.assertIn("vpn 0.1 (50.0 %)", text)
        self.assertIn("any cell and qt | 0 for qt 2 to 2.8 | 0 |  | yes |", text)
        self.assertEqual(page.figures["qt-heterogeneous"]["labels"], ["2.8"])

    def test_a_sweep_is_beside_vanilla_at_its_best(self):
        text = self.page(overload_cell([(4e6,)], [(3e6,)], qt=2), overload_cell([(2e6,)], [(5e6,)], qt=4)).markdown()
        self.assertIn("| 2 | 4.00 (4.00 .. 4.00) |  | 3.00 (3.00 .. 3.00) | 0 | -25.0 % (-25.0 .. -25.0) | -25.0 % | rt 50 % |", text)
        self.assertIn("| 4 | 2.00 (2.00 .. 2.00) |  | 5.00 (5.00 .. 5.00) | 0 | +150.0 % (+150.0 .. +150.0) | +25.0 % | rt 50 % |", text)

    def test_what_failed_is_named(self):
        cells = [overload_cell([], [], group="sharing", shared_as="partitioned", wire_bytes=128, error="no parts"),
                 {"group": "alone", "nf": "router", "shared_as": "process", "wire_bytes": 128, "repeats": [], "error": "no device"},
                 {"group": "long", "chain": "heterogeneous", "wire_bytes": 128, "repeats": [], "error": "too long"}]
        self.assertIn("**3 measurements failed:**\n\n"
                      "- sharing: heterogeneous, partitioned, 128 B, qt 2.8, load first NF: no parts\n"
                      "- router alone, process, 128 B: no device\n- the long run: too long\n", self.page(*cells).markdown())

    def test_overload_for_long_has_its_looks(self):
        text = self.page({"group": "long", "chain": "heterogeneous", "wire_bytes": 1472, "offered_per_s": 10.3e6, "seconds": 24,
                          "repeats": [{"packets_per_s": 2e6, "dropped_inside": 0, "memory_mb": [500, 501.4],
                                       "slots_in_use": [40, 41]}]}).markdown()
        self.assertIn("heterogeneous, 1472 B, 10.30 Mpps offered for 24 s, back-pressure: 2.00 Mpps left, 0 packets were dropped", text)
        self.assertIn("| resident MB | 500 | 501 |", text)

    def test_a_page_of_results_has_the_figures_that_it_had(self):
        """Rows of the set 2026-11-27-h100-simmer as the program itself wrote them."""
        text = simmer.page(Results(json.loads(SAMPLE.read_text(encoding="utf-8")))).markdown()
        for row in ("| sizes: heterogeneous, back-pressure above vanilla | +29 % | -0.1 % (-2.1 .. +0.2) | 1472 B, qt 2.8, load first NF "
                    "| no |",
                    "| router | 1472 | process | `pool_slots: 131072, units_per_launch: 8, launches_in_flight: 1` | 0.118 (0.088 .. "
                    "0.179) | - | 8.48 | 0.04 | rt 100 %, rx 36 %, tx 10 % |",
                    "| heterogeneous | process | 1472 | 2.8 | twice | 1.74 | 0.88 (0.78 .. 0.88) | 0.85 (0.80 .. 0.88) | -3.3 % (-8.6 .. "
                    "+12.1) | - | - | rt 865.5 (49.6 %), vpn 0, ids 0 | rt 428 x 2048, vpn 430 x 2048, ids 430 x 2041 | rt 427 x 1967, vpn 453 x "
                    "1856, ids 462 x 1838 | vpn 51 %, ids 30 %, rt 12 % | vpn 53 %, ids 26 %, rt 15 % |",
                    "| 1472 | twice | 865.5 (828.8 .. 868.0) (49.6 %) | 0.0 (0.0 .. 121.8) (0.0 %) | 0.0 (0.0 .. 0.0) (0.0 %) | 722.33 "
                    "(48 %) |",
                    "| 1472 | twice | back-pressure | 0.86 (0.81 .. 0.88) | 0.84 (0.80 .. 0.88) | 0.85 (0.80 .. 0.88) |",
                    "| 1472 | twice | 33.3 (32.5 .. 33.4) | 33.5 (33.3 .. 35.6) | yes |"):
            self.assertIn(row, text)


# ---- tables and the program

# ---- havs

def core_cell(way, speeds, group="core", **fields):
    """`speeds`: of a core in Gbps, for each repeat."""
    return {"group": group, "body_bytes": 16384, "connections": 64, "way": way, "run": 0, **fields,
            "repeats": [{"responses_per_s": 1e6, "responses_per_core_s": 2e6, "gbps_per_core": speed,
                         "cycles": {"tcp": 600, "session": 150, "copy": 250, "peer": 9}, "busy_share": 0.5, "median_wait_us": 40,
                         "compared": 9, "wrong": 0, **fields.get("more", {})} for speed in speeds]}


class Havs(unittest.TestCase):
    @staticmethod
    def page(*cells):
        return havs.page(results("havs", list(cells), settings={"threshold": "8192", "poll_at": "10"})).markdown()

    def test_each_way_is_beside_the_better_one_of_the_cpu(self):
        text = self.page(core_cell("cpu", [100, 80, 90]), core_cell("cpu, streaming stores", [110, 120, 100]),
                         core_cell("full, cuda", [165, 176, 154], more={"first_polls": 0.25, "poll_interval_us": 12.5}))
        self.assertIn("## The stack's core", text)
        self.assertIn("### 16,384 B, 64 connections", text)
        self.assertIn("| cpu | 90.0 (80.0 .. 100.0) | 2000 (2000 .. 2000) | -18 % |", text)
        self.assertIn("| full, cuda | 165.0 (154.0 .. 176.0) | 2000 (2000 .. 2000) | +50 % | 600 (600 .. 600) | 150 (150 .. 150) | "
                      "250 (250 .. 250) | 25 % | 40 (40 .. 40) | 50 % | 25 % | 12.5 |", text)
        self.assertNotIn("Small bodies", text, "nothing was measured of them")

    def test_a_way_without_the_cpu_beside_it_has_no_ratio(self):
        self.assertIn("| full, cuda | 165.0 (165.0 .. 165.0) | 2000 (2000 .. 2000) | - |",
                      self.page(core_cell("full, cuda", [165], "small")))

    def test_what_failed_is_named(self):
        text = self.page(core_cell("full, cuda", [], error="3 of 9 words of bodies are wrong"))
        self.assertIn("- core, 16384 B, full, cuda: 3 of 9 words of bodies are wrong", text)
        self.assertNotIn("## The stack's core", text)

    def test_engines_alone_are_beside_each_other_at_each_size(self):
        def engine(name, gbps, ns):
            points = [{"bytes": size, "gbps": one, "cpu_ns": other} for size, one, other in zip((1024, 65536), gbps, ns)]
            return {"group": "copies", "engine": name, "run": 0, "repeats": [{"points": points}] * 2}
        text = self.page(engine("cpu", (55.5, 38.2), (148, 13718)), engine("cuda", (14.8, 313.2), (556, 1674)))
        self.assertIn("| engine | 1,024 B | 65,536 B |", text)
        self.assertIn("| cuda | 14.8 (14.8 .. 14.8) | 313.2 (313.2 .. 313.2) |", text)
        self.assertIn("| cuda | 556 (556 .. 556) | 1674 (1674 .. 1674) |", text)


def nginx_cell(group, ways, **fields):
    """`ways`: for each the requests a second of each repeat."""
    time = "mean_us" if group in ("new", "response") else "median_us"
    return {"group": group, "body_bytes": 16384, "connections": 64, "run": 0, **fields,
            "repeats": [{way: {"requests_per_s": speed, time: 1e6 / speed} for way, speed in zip(ways, speeds)}
                        for speeds in zip(*ways.values())]}


class HavsNginx(unittest.TestCase):
    @staticmethod
    def page(*cells):
        return havs_nginx.page(results("havs-nginx", list(cells), settings={"cpu": 0})).markdown()

    def test_ways_are_beside_the_kernels_better_row_by_pairs(self):
        text = self.page(nginx_cell("files", {"kernel, cubic": [1000, 2000, 1500], "kernel, bbr": [900, 800, 1000],
                                              "stack, cpu": [2000, 2000, 2000]}))
        self.assertIn("## Files, keep-alive", text)
        self.assertIn("| 16,384 | 64 | kernel, bbr | 900 (800 .. 1000) | 0.67 (0.40 .. 0.90) | 1111 (1000 .. 1250) |", text)
        self.assertIn("| 16,384 | 64 | stack, cpu | 2000 (2000 .. 2000) | 1.33 (1.00 .. 2.00) | 500 (500 .. 500) |", text)
        self.assertNotIn("Lost packets", text, "nothing was measured of them")

    def test_lost_packets_and_means_of_ab_are_said(self):
        text = self.page(nginx_cell("loss", {"kernel, cubic": [100], "stack, cpu": [80]}, lost_per_mille=10),
                         nginx_cell("response", {"kernel, cubic": [1000], "stack, cpu": [2000]}))
        self.assertIn("| 16,384, 1 % lost | 64 | stack, cpu | 80 (80 .. 80) | 0.80 (0.80 .. 0.80) |", text)
        self.assertIn("| 16,384 | 64 | stack, cpu | 2000 (2000 .. 2000) | 2.00 (2.00 .. 2.00) | 500 (500 .. 500) |", text)

    def test_what_failed_is_named(self):
        text = self.page(nginx_cell("new", {"kernel, cubic": [], "stack, cpu": []}, error="nginx does not serve"))
        self.assertIn("- new, 16384 B, 64 connections: nginx does not serve", text)


class Table(unittest.TestCase):
    def rows(self, cell):
        return list(table.cell_rows(cell))

    def test_has_a_row_for_each_quantity_with_all_repeats(self):
        cell = {"group": "throughput", "chain": "C4", "mode": "copy, staged", "wire_bytes": 64, "unit_packets": 0, "run": 0,
                "samples": {"compared": 256, "different": 0}, "timeline": {"rows": [1]},
                "repeats": [{"packets_per_s": 3e6, "stages": [{"name": "rx", "busy_s": 0.25}]},
                            {"packets_per_s": 1234567.8, "stages": [{"name": "rx", "busy_s": 0.5}]}]}
        key = "group=throughput; chain=C4; mode=copy, staged; wire_bytes=64"
        self.assertEqual(self.rows(cell), [(key, "packets_per_s", "2117284", "1234568", "3000000", "3000000 1234568"),
                                           (key, "stages/rx/busy_s", "0.375", "0.25", "0.5", "0.25 0.5"),
                                           (key, "samples/compared", "", "", "", "256"),
                                           (key, "samples/different", "", "", "", "0")])

    def test_has_lists_of_points_field_by_field_and_errors(self):
        cell = {"group": "nfs", "nf": "ids", "run": 0, "repeats": [], "error": "it fell out",
                "launches": [{"packets": 64, "kernel_ns": 1.5}, {"packets": 128, "kernel_ns": 2.5}], "cdf": [[1, 50], [2, 95]]}
        self.assertEqual([(row[1], row[-1]) for row in self.rows(cell)],
                         [("error", "it fell out"), ("launches/packets", "64 128"), ("launches/kernel_ns", "1.5 2.5"),
                          ("cdf", "1 50 2 95")])

    def test_begins_with_what_is_said_of_all(self):
        rows = list(table.rows("first", results("nca", []).json))
        self.assertIn(("first", "about", "commit", "", "", "", "abc"), rows)
        self.assertIn(("first", "about", "settings/tuning", "", "", "", "pool_slots: 1"), rows)
        self.assertIn(("first", "about", "machine", "", "", "", "a machine"), rows)


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def render(self, *arguments, python=sys.executable):
        return subprocess.run([python, ROOT / "tools" / "render-bench", *arguments], capture_output=True, text=True, check=False)

    def test_makes_page_table_and_figures(self):
        # with Debian's Python, as Matplotlib is Debian's
        done = self.render(self.folder / "set", SAMPLE, python="/usr/bin/python3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({path.name for path in (self.folder / "set").iterdir()},
                         {"README.md", "results.csv", "nf-throughput.svg", "nf-throughput.png"})
        xml.dom.minidom.parse(str(self.folder / "set" / "nf-throughput.svg"))
        self.assertEqual((self.folder / "set" / "nf-throughput.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
        self.assertIn("](nf-throughput.svg)", (self.folder / "set" / "README.md").read_text(encoding="utf-8"))
        with open(self.folder / "set" / "results.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["run"] for row in rows}, {"simmer"})
        self.assertIn("8482618", {row["median"] for row in rows if "group=alone" in row["cell"]})

    def test_puts_several_results_into_one_set(self):
        other = self.folder / "other.json"
        other.write_bytes(SAMPLE.read_bytes())
        done = self.render("--no-figures", self.folder / "set", SAMPLE, other)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = (self.folder / "set" / "README.md").read_text(encoding="utf-8")
        self.assertIn("](simmer-nf-throughput.svg)", page)
        self.assertIn("](other-nf-throughput.svg)", page)
        self.assertEqual(page.count("\n# ") + page.startswith("# "), 2)

    def test_says_what_is_no_result(self):
        broken = self.folder / "broken.json"
        for text in ("{", "[]", '{"part": "another"}'):
            broken.write_text(text, encoding="utf-8")
            done = self.render(self.folder / "set", broken)
            self.assertEqual((done.returncode, done.stderr), (1, f"render-bench: {broken} is no result of catena-bench\n"))
        self.assertIn("No such file", self.render(self.folder / "set", self.folder / "missing.json").stderr)
        (self.folder / "deep").mkdir()
        same = self.folder / "deep" / "simmer.json"
        same.write_bytes(SAMPLE.read_bytes())
        self.assertIn("two files have the same name", self.render(self.folder / "set", SAMPLE, same).stderr)


if __name__ == "__main__":
    unittest.main()
