# SPDX-License-Identifier: Apache-2.0
"""The page of `catena-bench isoptr`: ours beside figure 15 of the G-NET paper."""

from bench_pages.page import Page, bars, over, plain, spread

# In percent, for an H200: G-NET's lowest, and what Catena aims at.
BAR, GOAL = 2.8, 1
# Figure 15. Its text gives the range over everything that it measured, and no single figure.
GNET = "2.8 .. 4.5 %"
# A launch that takes less than so many times an empty one is mostly the launch.
SHORT_LAUNCH = 1.5


def overhead(cell):
    """Time with checks divided by time without, less 1, in percent: of each repeat, and over them."""
    return spread(100 * (repeat["checked_ns"] / repeat["unchecked_ns"] - 1) for repeat in cell["repeats"])


def met(percent, limit):
    """"yes" where what is asked for is met, as far as repeats agree on it."""
    return "yes" if percent.high <= limit else "in the median" if percent.median <= limit else "no"


def limit_of(results, cell):
    """What keeps the cell from being faster, in a few words: the kernel, launches that are too short, or of a chain what
    was busy for the largest part of the time."""
    if cell["group"] == "kernels":
        is_short = cell["us_per_launch"] < SHORT_LAUNCH * results.run["us_per_empty_launch"]
        return f"{'launches' if is_short else 'kernel'}, {cell['us_per_launch']:.1f} us a launch"
    if not cell["busy"]:
        return "-"
    first = max(cell["busy"], key=lambda one: one["share"])
    return f"{first['what']}, busy {100 * first['share']:.0f} %"


def ns(cell, checks):
    return over(cell, lambda repeat: repeat[f"{checks}_ns"]).median


class IsoPtr:
    def __init__(self, results):
        self.results = results
        self.page = Page(results.prefix)

    def make(self):
        self.head()
        self.page.failures(self.results, lambda cell: f"{cell['group']} {cell['chain']} {cell['wire_bytes']} B")
        self.beside_the_paper()
        self.kernels()
        self.chains()
        return self.page

    def head(self):
        results, page, run = self.results, self.page, self.results.run
        compared, different = results.samples()
        page.heading(1, "What the checks of pointers in kernels cost")
        page.text("Measured by `catena-bench isoptr`; `docs/benchmarking.md` says how. Every kernel is compiled twice, as chains have it",
                  "and with the checks of `IsoPtr` left out, which only this benchmark can do. Beside ours is figure 15 of \"G-NET:",
                  f"Effective GPU Sharing in NFV Systems\" (NSDI 2018): {GNET} over NFs by themselves and chains, on its own machine;",
                  "its text gives no single figure.")
        page.facts((("device", run["device"]), ("plans by", run["cost_profile"]), ("machine", run["machine"]),
                    ("commit", results["commit"]), ("command", f"`{run['command']}`"),
                    ("runs", f"{plain(results['seconds'])} s of a chain, of which a quarter is warm-up, and "
                             f"{results['settings']['kernel_seconds']} s of a kernel; with checks and without, in turn"),
                    ("tuning of chains", f"`{results['settings']['tuning']}`"),
                    ("a launch of one packet", f"{run['us_per_empty_launch']:.1f} us"),
                    ("output compared", f"{compared} packets with the CPU's, with checks and without, {different} different")))
        page.text("*Overhead*: time with checks divided by the time of the run without them right after it, less 1; median (smallest",
                  ".. largest) of the repeats. A spread on both sides of 0 is no difference. Frames are counted with FCS; where ESP is",
                  "decrypted, those inside.")

    def beside_the_paper(self):
        """The largest overhead of each group, beside what is asked for."""
        rows = []
        for group in ("kernels", "chains"):
            cells = self.results.measured(group=group)
            if cells:
                cell = max(cells, key=lambda one: overhead(one).median)
                percent = overhead(cell)
                packets = f", {cell['packets']} packets" if cell["packets"] else ""
                rows.append((group, GNET, percent.percent("+.2f"), f"{cell['chain']}, {cell['wire_bytes']} B{packets}",
                             met(percent, BAR), met(percent, GOAL)))
        self.page.table(("largest overhead of", "G-NET", "here", "where", f"bar {BAR} %", f"goal {GOAL} %"), rows)

    def kernels(self):
        cells = self.results.measured(group="kernels")
        if not cells:
            return
        self.page.heading(2, "Kernels by themselves")
        self.page.text("Packets are on the device, and nothing is copied: the kernel is all there is, so this is the most that checks",
                       "can cost. *Limit*: the kernel, or launches where one takes little longer than that of one packet.")
        self.page.table(("kernel", "frame", "packets a launch", "ns a packet with checks", "without", "overhead", "limit"),
                        [(cell["chain"], cell["wire_bytes"], cell["packets"], f"{ns(cell, 'checked'):.3f}",
                          f"{ns(cell, 'unchecked'):.3f}", overhead(cell).percent("+.2f"), limit_of(self.results, cell))
                         for cell in cells])
        for packets in sorted({cell["packets"] for cell in cells}):
            self.chart("kernels", packets, f"kernels-{packets}", f"Kernels by themselves, {packets} packets a launch")

    def chains(self):
        cells = self.results.measured(group="chains")
        if not cells:
            return
        self.page.heading(2, "Chains of G-NET")
        self.page.text("From ESP in packet memory to a null sink, every NF on the device; plans are those of `--sync adaptive`. *Limit*:",
                       "what was busy for the largest part of a traced run beside those that count: moves over the bus, kernels, or a",
                       "stage of the host.")
        self.page.items(f"{name}: {chain['title']}" for name, chain in self.results["chains"].items() if len(chain["nfs"]) > 1)

        def share(cell, what):
            found = next((one["share"] for one in cell["busy"] if one["what"] == what), None)
            return "-" if found is None else f"{100 * found:.0f} %"
        self.page.table(("chain", "frame", "Mpps with checks", "without", "overhead", "G-NET", "limit", "moves", "kernels"),
                        [(cell["chain"], cell["wire_bytes"], f"{1000 / ns(cell, 'checked'):.3f}",
                          f"{1000 / ns(cell, 'unchecked'):.3f}", overhead(cell).percent("+.2f"), GNET,
                          limit_of(self.results, cell), share(cell, "moves"), share(cell, "kernels")) for cell in cells])
        self.chart("chains", 0, "chains", "Chains of G-NET")

    def chart(self, group, packets, stem, title):
        cells = self.results.measured(group=group)
        labels = list(dict.fromkeys(cell["chain"] for cell in cells))

        def bar(label, size):
            cell = self.results.first(group=group, packets=packets, chain=label, wire_bytes=size)
            return overhead(cell) if cell else None
        self.page.figure(stem, bars((title, group[:-1], "percent more time with checks"), labels,
                                    [(f"{size} B", [bar(label, size) for label in labels])
                                     for size in sorted({cell["wire_bytes"] for cell in cells})]))


def page(results):
    return IsoPtr(results).make()
