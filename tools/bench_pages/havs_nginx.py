# SPDX-License-Identifier: Apache-2.0
"""The page of bench/havs/nginx.py: unmodified nginx on the stack beside the kernel."""

from bench_pages.page import Page, over, plain, spread

TITLES = {"files": "Files, keep-alive", "small": "Small files, keep-alive", "many": "Many connections",
          "new": "A new connection for each request", "response": "Response of one connection", "loss": "Lost packets"}


def speed(cell, way):
    return over(cell, lambda repeat: repeat[way]["requests_per_s"])


def best_kernel(cell, ways):
    return max((way for way in ways if way.startswith("kernel")), key=lambda way: speed(cell, way).median)


def ratio(cell, way, kernel):
    """To the better row of the kernel, repeat by repeat."""
    return spread(repeat[way]["requests_per_s"] / repeat[kernel]["requests_per_s"] for repeat in cell["repeats"])


def wait(cell, way):
    name = "median_us" if "median_us" in cell["repeats"][0][way] else "mean_us"
    return over(cell, lambda repeat: repeat[way][name]).text(".0f")


def page(results):
    made = Page(results.prefix)
    run = results.run
    made.heading(1, "Unmodified nginx on the TCP stack")
    made.text("Measured by `bench/havs/nginx.py`, whose first lines say how: nginx, stack and client on one core in all; the kernel",
              "over veth, the stack over a TAP.")
    made.facts((("machine", run["machine"]), ("commit", results["commit"]), ("command", f"`{run['command']}`"),
                ("runs", f"{results['repeats']} of {plain(results['seconds'])} s each, the ways in turn within each repeat")))
    made.failures(results, lambda cell: f"{cell['group']}, {cell['body_bytes']} B, {cell['connections']} connections")
    for group, title in TITLES.items():
        cells = results.measured(group=group)
        if not cells:
            continue
        made.heading(2, title)
        rows = []
        for cell in cells:
            ways = list(cell["repeats"][0])
            kernel = best_kernel(cell, ways)
            lost = f", {cell['lost_per_mille'] / 10:g} % lost" if "lost_per_mille" in cell else ""
            rows += [(f"{cell['body_bytes']:,}{lost}", cell["connections"], way, speed(cell, way).text(".0f"),
                      ratio(cell, way, kernel).text(".2f"), wait(cell, way)) for way in ways]
        made.table(("B", "connections", "way", "requests/s", "over the kernel's better row", "us: median, or mean of ab"), rows,
                   "rrlrrr")
    return made
