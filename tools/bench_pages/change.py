# SPDX-License-Identifier: Apache-2.0
"""The page of bench/change/change.py: what a change of a running chain costs who sends to it."""

from bench_pages.page import Page, over, plain

WAYS = {"none": "nothing", "rules": "rules of the firewall, in place", "chain": "another chain takes over"}


def page(results):
    made = Page(results.prefix)
    settings = results["settings"]
    made.heading(1, "What a change of a running chain costs")
    made.text("Measured by `bench/change/change.py`, whose first lines say how: the sender is a process of its own, and its packets",
              f"cross a ring of {settings['ring']:,} places in shared memory. A sender that finds the ring full waits, and drops after a",
              "second without progress: no drop does not mean that a sender that cannot wait would lose nothing. All packets sent were",
              "received. One change a second. *Sender's wait*: the longest time from when a packet was due until the ring took it.",
              "*Longest inside*: of a packet in the last chain of the run, from the ring to tx.")
    run = results.run
    made.facts((("device", run["device"]), ("machine", run["machine"]), ("commit", results["commit"]),
                ("command", f"`{run['command']}`"),
                ("runs", f"{results['repeats']} of {plain(results['seconds'])} s and as many changes each, the ways in turn "
                         "within each repeat")))
    made.failures(results, lambda cell: f"{cell['nf']}, {cell['packets']:,} packets a second")
    rows = []
    for cell in results.measured():
        for way, words in WAYS.items():
            dropped = [repeat[way]["dropped"] for repeat in cell["repeats"]]
            waits = over(cell, lambda repeat, way=way: repeat[way]["sender_longest_us"])
            rows.append((cell["nf"], f"{cell['packets']:,}", words, f"{sum(repeat[way]['offered'] for repeat in cell['repeats']):,}",
                         f"{sum(dropped):,} ({', '.join(f'{one:,}' for one in dropped)})", waits.scaled(1e-3).text(".1f"),
                         over(cell, lambda repeat, way=way: repeat[way]["longest_us"]).text(".0f")))
    made.table(("NFs on", "packets/s", "changed", "offered in all", "dropped in all (in each run)", "sender's wait, ms",
                "longest inside, us"), rows, "lrlrrrr")
    return made
