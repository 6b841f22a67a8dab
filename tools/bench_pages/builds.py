# SPDX-License-Identifier: Apache-2.0
"""The page of bench/builds/builds.py: two builds of Catena in turn."""

from bench_pages.page import Page, over, plain, spread


def page(results):
    made = Page(results.prefix)
    run = results.run
    made.heading(1, "Two builds in turn")
    made.text("Measured by `bench/builds/builds.py`, whose first lines say how.")
    made.facts((("device", run["device"]), ("machine", run["machine"]), ("commit", results["commit"]),
                ("before", results["settings"]["before"]), ("command", f"`{run['command']}`"),
                ("runs", f"{results['repeats']} of {plain(results['seconds'])} s each, the builds in turn within each repeat")))
    made.failures(results, lambda cell: f"{cell['chain']} on the {cell['on']}: {cell['wire_bytes']} B")
    rows = []
    for cell in results.measured():
        for way in ("before", "after"):
            ratio = spread(repeat[way]["packets_per_s"] / repeat["before"]["packets_per_s"] for repeat in cell["repeats"])
            rows.append((f"{cell['chain']}, {cell['on']}", f"{cell['wire_bytes']} B", cell["shards"],
                         f"{cell['gbps_offered']} Gbps" if cell["gbps_offered"] else "all that it takes", way,
                         over(cell, lambda repeat, way=way: repeat[way]["packets_per_s"] / 1e6).text(".2f"),
                         over(cell, lambda repeat, way=way: repeat[way]["process_cores"]).text(".1f"),
                         *(over(cell, lambda repeat, way=way, what=what: repeat[way][what]).text(".0f")
                           for what in ("p50_us", "p95_us", "p99_us")), ratio.text(".2f")))
    made.table(("chain", "frame", "shards", "offered", "build", "Mpps", "cores", "p50 us", "p95 us", "p99 us", "over before"),
               rows, "llrllrrrrrr")
    return made
