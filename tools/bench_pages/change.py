# SPDX-License-Identifier: Apache-2.0
"""The page of bench/change/change.py: what a change of a running chain costs who sends to it."""

from bench_pages.page import Page, over, plain

WAYS = {"none": "nothing", "rules": "rules of the firewall", "chain": "an NF added or removed"}


def page(results):
    made = Page(results.prefix)
    settings = results["settings"]
    made.heading(1, "What a change of a running chain costs")
    made.text("Measured by `bench/change/change.py`, whose first lines say how: the sender is a process of its own, and its packets",
              f"cross a ring of {settings['ring']:,} places in shared memory. It keeps its schedule, as a wire does: a packet that is due",
              "and finds the ring full is lost. All packets that the ring took were received. One change a second. *Longest pause*: the age",
              "of the oldest packet in the full ring; 0 where the ring was never full. *Sender late*: by how much the sender itself was",
              "behind its schedule; more than the ring holds is loss that it caused by itself. *Longest inside*: of a packet in the last",
              "chain of the run, from the ring to tx.")
    run = results.run
    made.facts((("device", run["device"]), ("machine", run["machine"]), ("commit", results["commit"]),
                ("command", f"`{run['command']}`"),
                ("runs", f"{results['repeats']} of {plain(results['seconds'])} s and as many changes each, the ways in turn "
                         "within each repeat")))
    made.failures(results, lambda cell: f"{cell['nf']}, {cell['packets']:,} packets a second")
    rows = []
    for cell in results.measured():
        for way, words in WAYS.items():
            lost = [repeat[way]["lost"] for repeat in cell["repeats"]]

            def milliseconds(what, way=way, cell=cell):
                return over(cell, lambda repeat: repeat[way][what]).scaled(1e-3).text(".1f")
            rows.append((cell["nf"], f"{cell['packets']:,}", words, f"{sum(repeat[way]['offered'] for repeat in cell['repeats']):,}",
                         f"{sum(lost):,} ({', '.join(f'{one:,}' for one in lost)})", milliseconds("longest_pause_us"),
                         milliseconds("sender_late_us"), milliseconds("longest_us")))
    made.table(("NFs on", "packets/s", "changed", "offered in all", "lost in all (in each run)", "longest pause, ms",
                "sender late, ms", "longest inside, ms"), rows, "lrlrrrrr")
    return made
