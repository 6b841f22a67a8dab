# SPDX-License-Identifier: Apache-2.0
"""The page of `catena-bench simmer`: ours beside the figures of the Simmer paper."""

from bench_pages.page import Page, bars, over, plain, spread

VANILLA, OURS = "vanilla", "back-pressure"
MODES = (VANILLA, OURS)
BOTTLENECK = "vpn"
# Microseconds that the paper's NFs take for a packet of 1472 B (table 1).
PAPER_US = {"router": 0.04, "ipsec": 1.63, "nids": 0.52}
# Thousands of packets a second that the paper's second NF drops, and percent of what came to it, by size (table 2).
PAPER_DROPS = {128: (48.82, 4), 256: (97.65, 6), 512: (289.14, 16), 1024: (510.52, 36), 1472: (722.33, 48)}
# By how many percent back-pressure is above vanilla in the paper, at best.
PAPER_GAINS = {("sizes", "heterogeneous"): 29, ("qt", "heterogeneous"): 29, ("qt", "3 ipsec"): 13,
               ("dynamic", "dynamic heterogeneous"): 23, ("dynamic", "dynamic 3 ipsec"): 13, ("sharing", "heterogeneous"): 29}


def speed(cell, mode):
    return over(cell, lambda repeat: repeat[mode]["packets_per_s"])


def above_vanilla(cell):
    """By how many percent back-pressure is above vanilla, repeat by repeat."""
    return over(cell, lambda repeat: 100 * (repeat[OURS]["packets_per_s"] / repeat[VANILLA]["packets_per_s"] - 1))


def dropped_inside(cell, mode):
    """Packets a second that all rings together dropped."""
    return over(cell, lambda repeat: sum(nf["drops_per_s"] for nf in repeat[mode]["nfs"]))


def names(cell, mode):
    return [nf["name"] for nf in cell["repeats"][0][mode]["nfs"]]


def over_nf(cell, mode, name, value):
    """The spread of what `value` makes of an NF in each repeat."""
    return spread(value(nf) for repeat in cell["repeats"] for nf in repeat[mode]["nfs"] if nf["name"] == name)


def drop_percent(cell, mode, name):
    """Of the packets that came to the NF's ring."""
    def of(nf):
        came = nf["drops_per_s"] + nf["packets_per_s"]
        return 100 * nf["drops_per_s"] / came if came else 0
    return over_nf(cell, mode, name, of)


def launch_percent(cell, mode, name):
    """Of all launches, those of the NF."""
    def of(repeat):
        every = sum(nf["launches_per_s"] for nf in repeat[mode]["nfs"])
        return 100 * sum(nf["launches_per_s"] for nf in repeat[mode]["nfs"] if nf["name"] == name) / every if every else 0
    return over(cell, of)


def drops_text(cell, mode):
    """'rt 1.2 (4.0 %), vpn 0': thousands a second that did not fit into each NF's ring."""
    texts = []
    for name in names(cell, mode):
        dropped = over_nf(cell, mode, name, lambda nf: nf["drops_per_s"]).median / 1e3
        texts.append(f"{name} {dropped:.1f} ({drop_percent(cell, mode, name).median:.1f} %)" if dropped else f"{name} 0")
    return ", ".join(texts)


def launches_text(cell, mode):
    """'rt 220 x 2048': launches a second and packets of one."""
    def packets(nf):
        return nf["packets_per_s"] / nf["launches_per_s"] if nf["launches_per_s"] else 0
    return ", ".join(f"{name} {over_nf(cell, mode, name, lambda nf: nf['launches_per_s']).median:.0f} x "
                     f"{over_nf(cell, mode, name, packets).median:.0f}" for name in names(cell, mode))


def cores_text(cell, mode):
    """Of all processes, with waiting in loops. A set from before they were counted has none."""
    found = [repeat[mode]["process_cores"] for repeat in cell["repeats"] if "process_cores" in repeat[mode]]
    return f"{spread(found).median:.1f}" if found else "-"


def busy_text(busy):
    return ", ".join(f"{one['what']} {100 * one['share']:.0f} %" for one in busy[:3]) or "-"


def cell_name(cell):
    """For the list of what failed."""
    if cell["group"] == "alone":
        return f"{cell['nf']} alone, {cell['shared_as']}, {cell['wire_bytes']} B"
    if cell["group"] == "long":
        return "the long run"
    return (f"{cell['group']}: {cell['chain']}, {cell['shared_as']}, {cell['wire_bytes']} B, qt {plain(cell['qt'])}, "
            f"load {cell['load']}")


class Simmer:
    def __init__(self, results):
        self.results = results
        self.page = Page(results.prefix)

    def make(self):
        self.head()
        self.page.failures(self.results, cell_name)
        self.beside_the_paper()
        self.alone()
        self.group("sizes", "One after another", "Router, IPsec, NIDS over sizes (figures 2, 8 and 9, table 2).")
        if self.results.measured(group="sizes"):
            self.drops()
            self.nf_throughput()
            self.launches()
        if self.results.measured(group="qt"):
            self.page.heading(2, "The threshold")
            self.page.text("Batches that may wait in front of an NF, with vanilla the room of its ring (figures 6 and 7); load first NF.")
            for chain in dict.fromkeys(cell["chain"] for cell in self.results.measured(group="qt")):
                self.sweep(chain)
        self.group("dynamic", "Two flows", "Half of the packets skip the first NF (figure 10).")
        self.group("sharing", "Ways to share the GPU", "Figure 11.")
        self.group("own", "With Catena's own tuning",
                   "Three launches of an NF at once, as a chain file without `tuning` has them.")
        self.long()
        return self.page

    def head(self):
        results, page, run = self.results, self.page, self.results.run
        page.heading(1, "Back-pressure beside rings that drop, in chains that share a GPU")
        page.text("Measured by `catena-bench simmer`; `docs/benchmarking.md` says how. Beside ours are the figures of \"Simmer: Rate",
                  "Proportional Scheduling to Reduce Packet Drops in vGPU Based NF Chains\" (ICPP 2022), on its own machine: NFs in",
                  "virtual machines that share an A100 by vGPU.")
        page.table(("way", "packets for which a ring has no room"),
                   ((VANILLA, "are dropped there, whatever was done to them before"),
                    (OURS, "wait: NFs in front of it pause, and rx at last")))
        page.table(("NFs share the GPU as", ""),
                   (("process", "each has a process and a device server, so that the GPU gives turns to their contexts: in place of "
                     "vGPU"),
                    ("partitioned", "one process, green contexts of 16 : 48 : 32 compute units: in place of MIG 1 : 3 : 2"),
                    ("one context", "one process, nothing is divided")))
        page.text("Loads are above what chains can do. \"First NF\": packets are offered at the rate that the first NF takes alone;",
                  "\"twice\": at twice what the chain does with back-pressure at the first load. The ring in front of an NF holds qt",
                  "launches. Sizes are those of frames with FCS; three ESP tunnels make of the largest one a frame that slots still",
                  "hold.")
        page.facts((("device", f"{run['device']}, of which NFs without parts share {run['compute_units']} compute units"),
                    ("machine", run["machine"]), ("commit", results["commit"]), ("command", f"`{run['command']}`"),
                    ("runs", f"{results['repeats']} of {plain(results['seconds'])} s each, the ways in turn within each repeat")))
        page.text("Values are medians; in parentheses the smallest and the largest of the repeats. Each run's account balances: packets in",
                  "are packets out and packets dropped. \"Busy\" are the host's busiest stages in the last run, as shares of its time;",
                  "what an NF does in its process is not in them.")

    def in_chains(self):
        return [cell for cell in self.results.measured() if cell["group"] not in ("alone", "long")]

    def beside_the_paper(self):
        """The best cell of each kind, and drops over the thresholds that the paper found good."""
        rows = []
        for (group, chain), paper in PAPER_GAINS.items():
            cells = self.results.measured(group=group, chain=chain, shared_as="process")
            if cells:
                cell = max(cells, key=lambda one: above_vanilla(one).median)
                rows.append((f"{group}: {chain}, back-pressure above vanilla", f"{paper:+.0f} %", above_vanilla(cell).percent(),
                             f"{cell['wire_bytes']} B, qt {plain(cell['qt'])}, load {cell['load']}",
                             "yes" if above_vanilla(cell).median >= paper else "no"))
        if self.in_chains():
            worst = max(dropped_inside(cell, OURS).high for cell in self.in_chains())
            rows.append(("packets dropped inside with back-pressure, any cell and qt", "0 for qt 2 to 2.8", f"{worst:.0f}", "",
                         "no" if worst else "yes"))
        self.page.heading(2, "Against the paper's figures")
        self.page.table(("what", "paper", "here, at best", "where", "met"), rows, "lrr")

    def alone(self):
        rows = []
        for cell in self.results.measured(group="alone"):
            packets = over(cell, lambda repeat: repeat["packets_per_s"])
            kernel = [repeat["kernel_us"] for repeat in cell["repeats"] if "kernel_us" in repeat]
            rows.append((cell["nf"], cell["wire_bytes"], cell["shared_as"], f"`{cell['tuning']}`",
                         f"{1e6 / packets.median:.3f} ({1e6 / packets.high:.3f} .. {1e6 / packets.low:.3f})",
                         f"{spread(kernel).median:.4f}" if kernel else "-", f"{packets.median / 1e6:.2f}",
                         PAPER_US.get(cell["nf"], "-"), busy_text(cell["busy"])))
        self.page.heading(2, "NFs alone")
        self.page.text("Microseconds a packet on the whole device (table 1): end to end, and of the kernel.")
        self.page.table(("NF", "B", "shared as", "tuning", "us, end to end", "kernel us", "Mpps", "paper, 1472 B", "busy"), rows,
                        "lrllrrrr")

    def group(self, group, title, text):
        """What left, beside each other."""
        cells = self.results.measured(group=group)
        if not cells:
            return
        self.page.heading(2, title)
        self.page.text(text)
        self.page.table(("chain", "shared as", "B", "qt", "load", "offered Mpps", "vanilla Mpps", "back-pressure Mpps",
                         "above vanilla", "cores: vanilla", "back-pressure", "vanilla drops inside, kpps", "launches a second x packets: vanilla", "back-pressure",
                         "busy: vanilla", "back-pressure"),
                        [(cell["chain"], cell["shared_as"], cell["wire_bytes"], plain(cell["qt"]), cell["load"],
                          f"{cell['offered_per_s'] / 1e6:.2f}", *(speed(cell, mode).scaled(1e-6).text(".2f") for mode in MODES),
                          above_vanilla(cell).percent(), *(cores_text(cell, mode) for mode in MODES), drops_text(cell, VANILLA),
                          *(launches_text(cell, mode) for mode in MODES), *(busy_text(cell["busy"][mode]) for mode in MODES))
                         for cell in cells], "llrrlrrrrrr")

    def drops(self):
        rows = []
        for cell in self.results.measured(group="sizes"):
            paper = PAPER_DROPS.get(cell["wire_bytes"])
            rows.append((cell["wire_bytes"], cell["load"],
                         *(f"{over_nf(cell, VANILLA, name, lambda nf: nf['drops_per_s']).scaled(1e-3).text('.1f')} "
                           f"({drop_percent(cell, VANILLA, name).median:.1f} %)" for name in names(cell, VANILLA)),
                         f"{paper[0]} ({paper[1]} %)" if paper else "-"))
        self.page.heading(3, "Packets dropped inside")
        self.page.text("Thousands a second, and the share of what came to the ring (table 2). With back-pressure there are none.")
        self.page.table(("B", "load", "rt", "vpn", "ids", "paper, second NF"), rows, "rlrrrr")

    def nf_throughput(self):
        def per_s(cell, mode, name):
            return over_nf(cell, mode, name, lambda nf: nf["packets_per_s"]).scaled(1e-6)
        cells = self.results.measured(group="sizes")
        self.page.heading(3, "What each NF does")
        self.page.text("Millions of packets a second (figure 2).")
        self.page.table(("B", "load", "way", "rt", "vpn", "ids"),
                        [(cell["wire_bytes"], cell["load"], mode,
                          *(per_s(cell, mode, name).text(".2f") for name in names(cell, mode)))
                         for cell in cells for mode in MODES], "rllrrr")
        shown = [(cell, mode) for cell in cells for mode in MODES if cell["load"] == "first NF"]
        self.page.figure("nf-throughput", bars(
            ("Throughput of each NF, load first NF", "way and size of frames", "Mpps"),
            [f"{mode} {cell['wire_bytes']}" for cell, mode in shown],
            [(name, [per_s(cell, mode, name) for cell, mode in shown]) for name in ("rt", "vpn", "ids")]))

    def launches(self):
        rows = []
        for cell in self.results.measured(group="sizes"):
            vanilla, ours = (launch_percent(cell, mode, BOTTLENECK) for mode in MODES)
            rows.append((cell["wire_bytes"], cell["load"], vanilla.text(".1f"), ours.text(".1f"),
                         "yes" if ours.median > vanilla.median else "no"))
        self.page.heading(3, "Launches of the slowest NF")
        self.page.text(f"Percent of all launches that are those of `{BOTTLENECK}` (figure 8: more with back-pressure at every size).")
        self.page.table(("B", "load", "vanilla", "back-pressure", "more"), rows, "rlrr")

    def sweep(self, chain):
        """Figures 6 and 7."""
        cells = self.results.measured(group="qt", chain=chain)
        best = max(speed(cell, VANILLA).median for cell in cells)
        self.page.heading(3, f"{chain}, {cells[0]['wire_bytes']} B")
        self.page.table(("qt", "vanilla Mpps", "drops inside, kpps", "back-pressure Mpps", "drops inside",
                         "above vanilla of this qt", "above vanilla at its best qt", "busy"),
                        [(plain(cell["qt"]), speed(cell, VANILLA).scaled(1e-6).text(".2f"), drops_text(cell, VANILLA),
                          speed(cell, OURS).scaled(1e-6).text(".2f"), f"{dropped_inside(cell, OURS).high:.0f}",
                          above_vanilla(cell).percent(), f"{100 * (speed(cell, OURS).median / best - 1):+.1f} %",
                          busy_text(cell["busy"][OURS])) for cell in cells], "rrlrrrr")
        self.page.figure("qt-" + chain.replace(" ", "-"), bars(
            (f"Throughput over qt, {chain}", "qt", "Mpps"), [plain(cell["qt"]) for cell in cells],
            [(mode, [speed(cell, mode).scaled(1e-6) for cell in cells]) for mode in MODES]))

    def long(self):
        for cell in self.results.measured(group="long"):
            run = cell["repeats"][0]
            self.page.heading(2, "Overload for long")
            self.page.text(f"{cell['chain']}, {cell['wire_bytes']} B, {cell['offered_per_s'] / 1e6:.2f} Mpps offered for",
                           f"{cell['seconds']:.0f} s, back-pressure: {run['packets_per_s'] / 1e6:.2f} Mpps left,",
                           f"{run['dropped_inside']} packets were dropped inside.")
            looks = range(1, len(run["memory_mb"]) + 1)
            self.page.table(("look", *looks), (("resident MB", *(f"{one:.0f}" for one in run["memory_mb"])),
                                               ("slots in use", *(f"{one:.0f}" for one in run["slots_in_use"]))),
                            "l" + "r" * len(looks))


def page(results):
    return Simmer(results).make()
