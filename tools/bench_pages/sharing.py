# SPDX-License-Identifier: Apache-2.0
"""The page of bench/gnet/sharing.py: a GPU in a process of its own, and chains that share it."""

from bench_pages.page import Page, over, plain, spread


def load(cell):
    return "as fast as it goes" if cell["packets"] == 0 else f"{cell['packets'] / 1e6:.1f} Mpps each"


def cores(cell, way):
    """That all processes took, with waiting in loops."""
    if "process_cores" not in cell["repeats"][0][way]:
        return "-"  # of a set that did not count them
    return over(cell, lambda repeat: repeat[way]["process_cores"]).text(".1f")


def page(results):
    made = Page(results.prefix)
    made.heading(1, "A GPU in a process of its own, and chains that share it")
    made.text("Measured by `bench/gnet/sharing.py`, whose first lines say what it measures. Throughput is that of all chains, in a",
              "window after the first second; cores are what all processes took in it, waiting in loops too; latency is that of the",
              "worst chain, over its whole run.")
    run = results.run
    made.facts((("device", run["device"]), ("machine", run["machine"]), ("commit", results["commit"]),
                ("command", f"`{run['command']}`"),
                ("runs", f"{results['repeats']} of {plain(results['seconds'])} s each, the ways in turn within each repeat")))
    made.failures(results, lambda cell: f"{cell['group']}: {cell['wire_bytes']} B, {load(cell)}")
    rows = []
    for cell in results.measured():
        ways = list(cell["repeats"][0])
        for way in ways:
            ratio = spread(repeat[way]["packets_per_s"] / repeat[ways[0]]["packets_per_s"] for repeat in cell["repeats"])
            rows.append((cell["group"], f"{cell['wire_bytes']} B", load(cell), way,
                         over(cell, lambda repeat, way=way: repeat[way]["packets_per_s"] / 1e6).text(".2f"),
                         cores(cell, way), *(over(cell, lambda repeat, way=way, what=what: repeat[way][what]).text(".0f")
                           for what in ("p50_us", "p95_us")), ratio.text(".2f")))
    made.table(("part", "frame", "offered", "way", "Mpps, all chains", "cores", "p50 us", "p95 us", "over the first way"), rows,
               "llllrrrrr")
    return made
