# SPDX-License-Identifier: Apache-2.0
"""The page of `catena-bench havs`: the stack's core with free clients, and copy engines alone."""

from bench_pages.page import Page, over, plain

BASELINES = ("cpu", "cpu, streaming stores")
TITLES = {"core": "The stack's core", "small": "Small bodies", "response": "Response of one connection"}


def per_core(cell):
    return over(cell, lambda repeat: repeat["gbps_per_core"])


def share(cell, part):
    """Of the stack's own cycles for an answer, in percent."""
    def of(repeat):
        cycles = repeat["cycles"]
        return 100 * cycles[part] / (cycles["tcp"] + cycles["session"] + cycles["copy"])
    return over(cell, of)


def over_best_baseline(cells, cell):
    """By how many percent the median is above the better of the CPU's two ways to copy."""
    best = max((per_core(one).median for one in cells if one["way"] in BASELINES), default=0)
    return f"{100 * (per_core(cell).median / best - 1):+.0f} %" if best else "-"


def first_polls(cell):
    found = [repeat["first_polls"] for repeat in cell["repeats"] if "first_polls" in repeat]
    return f"{100 * sum(found) / len(found):.0f} %" if found else "-"


def poll_interval(cell):
    found = [repeat["poll_interval_us"] for repeat in cell["repeats"] if "poll_interval_us" in repeat]
    return f"{sorted(found)[len(found) // 2]:.1f}" if found else "-"


def group(made, results, name):
    cells = results.measured(group=name)
    if not cells:
        return
    made.heading(2, TITLES[name])
    for size, connections in dict.fromkeys((cell["body_bytes"], cell["connections"]) for cell in cells):
        table = results.measured(group=name, body_bytes=size, connections=connections)
        made.heading(3, f"{size:,} B, {connections} connections")
        made.table(("way", "Gbps of a core", "thousand answers/s of a core", "over the CPU", "cycles: TCP", "sessions", "copies",
                    "copies, share", "median wait, us", "core busy", "complete at first poll", "us between polls"),
                   [(cell["way"], per_core(cell).text(".1f"),
                     over(cell, lambda repeat: repeat["responses_per_core_s"]).scaled(1e-3).text(".0f"),
                     over_best_baseline(table, cell),
                     *(over(cell, lambda repeat, part=part: repeat["cycles"][part]).text(".0f")
                       for part in ("tcp", "session", "copy")),
                     f"{share(cell, 'copy').median:.0f} %", over(cell, lambda repeat: repeat["median_wait_us"]).text(".0f"),
                     f"{100 * over(cell, lambda repeat: repeat['busy_share']).median:.0f} %", first_polls(cell),
                     poll_interval(cell)) for cell in table], "l" + "r" * 11)


def copies(made, results):
    cells = results.measured(group="copies")
    if not cells:
        return
    sizes = [point["bytes"] for point in cells[0]["repeats"][0]["points"]]

    def points(cell, value):
        return [over(cell, lambda repeat, i=i: repeat["points"][i][value]).text(".1f" if value == "gbps" else ".0f")
                for i in range(len(sizes))]
    made.heading(2, "Engines alone")
    made.text("Copies from distinct addresses to distinct addresses, with as many in flight as the engine takes (figure 3).")
    for value, title in (("gbps", "Gbps"), ("cpu_ns", "ns of the asking core for each copy, polls included")):
        made.heading(3, title)
        made.table(("engine", *(f"{size:,} B" for size in sizes)), [(cell["engine"], *points(cell, value)) for cell in cells],
                   "l" + "r" * len(sizes))


def page(results):
    made = Page(results.prefix)
    run, settings = results.run, results["settings"]
    made.heading(1, "Offloaded copies of the TCP stack")
    made.text("Measured by `catena-bench havs`. The stack's loop runs on one core, a server on another one. Clients are part of the",
              "stack's port and cost it nothing: they read headers and one word of each frame. So rows show cycles of the stack's",
              "core alone, without its port. *Free* is an engine without cost and without copies: no engine can bring more.")
    made.facts((("machine", run["machine"]), ("commit", results["commit"]), ("command", f"`{run['command']}`"),
                ("threshold of full", f"{settings['threshold']} B"), ("poll at", settings["poll_at"]),
                ("runs", f"{results['repeats']} of {plain(results['seconds'])} s each, the ways in turn within each repeat")))
    made.failures(results, lambda cell: f"{cell['group']}, {cell.get('body_bytes', '')} B, {cell.get('way', cell.get('engine'))}")
    for name in TITLES:
        group(made, results, name)
    copies(made, results)
    return made
