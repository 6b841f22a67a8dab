# SPDX-License-Identifier: Apache-2.0
"""The page of `catena-bench gnet`: ours beside the figures of the G-NET paper."""

from bench_pages.page import Page, bars, lines, plain, spread, times

MODES = ("scheduled", "fair", "uncoordinated", "temporal")
# What the paper says, in percent: figure 11, at best; figures 13 and 14, averages over the chains, the worst and the best.
OVER_TEMPORAL = {"S_a": 23.8, "S_b": 25.9, "S_c": 21.5, "S_d": 70.8}
OVER_OTHERS = {"fair": (16.7, 34.0), "uncoordinated": (50.8, 130.1)}
TAIL_OVER_TEMPORAL = 44  # p95, at best
DIVIDED = ("scheduled", "fair")  # ways in which each NF has its part to itself
FEW_UNITS = 32
FIGURE_BYTES = 512  # of the paper's figures of single NFs
FIGURE_PACKETS = 4096


def gbps(packets_per_s, wire_bytes):
    """On the wire, with preamble and gap."""
    return packets_per_s * (wire_bytes + 20) * 8 / 1e9


def predicted(parts):
    """What the model says of the slowest NF, each on its part by itself, Mpps."""
    found = [part["predicted_per_s"] for part in parts if "predicted_per_s" in part]
    return f"{min(found) / 1e6:.2f}" if found else "-"


def over_mode(cell, mode, value):
    return spread(repeat[mode][value] for repeat in cell["repeats"])


def above(cell, mode, other, value="packets_per_s"):
    """By how many percent `value` of `mode` is above that of `other`, repeat by repeat."""
    return spread(100 * (repeat[mode][value] / repeat[other][value] - 1) for repeat in cell["repeats"])


def best(cells, mode, other, value="packets_per_s"):
    """The cell where `mode` is furthest above `other`, and by how much; or None."""
    found = [(above(cell, mode, other, value), cell) for cell in cells]
    return max(found, key=lambda one: one[0].median) if found else None


class Gnet:
    def __init__(self, results):
        self.results = results
        self.page = Page(results.prefix)
        self.throughput = results.measured(group="throughput")
        self.latency = results.measured(group="latency")
        self.growing = results.measured(group="growing")
        self.units = results.run["compute_units"]
        last = len(results["runs"]) - 1
        self.nfs = [cell for cell in results.cells if cell["group"] == "nfs" and cell["run"] == last]

    def make(self):
        self.head()
        self.page.failures(self.results, lambda cell: f"{cell['group']}: {cell.get('chain', cell.get('nf'))}, "
                           f"{cell['wire_bytes']} B" + (f", {cell['compute_units']} compute units" if "chain" in cell else ""))
        self.beside_the_paper()
        for units in sorted({cell["compute_units"] for cell in self.throughput}):
            self.throughput_chart(units)
        self.models()
        self.host_and_gpu()
        self.kernel_charts()
        self.conflicts()
        self.page.heading(2, "As fast as they go")
        self.page.text("*Model*: what it says of the slowest NF on its part by itself, launches one after another. *Cores*: busy with",
                       "packets, those of the source among them, and what all threads took, which wait in loops.")
        self.tables(self.throughput)
        if self.latency:
            self.page.heading(2, "At a rate that every way takes")
            self.page.text("At 0.7 of what the slowest way does.")
            self.tables(self.latency)
            self.latency_charts()
        if self.growing:
            self.page.heading(2, "One to four NFs")
            self.page.text("From rx to tx, with packets offered as fast as the chain takes them: full queues are in it.")
            self.tables(self.growing)
            self.page.figure("latency-growing", lines(
                ("Latency of one to four NFs, scheduled, as fast as they go", "us", "% of packets"),
                [(cell["chain"], cell["latency_cdf"]["scheduled"]) for cell in self.growing]))
        return self.page

    def head(self):
        results, page = self.results, self.page
        compared, different = results.samples()
        page.heading(1, "How the NFs of a chain share a GPU")
        page.text("Measured by `catena-bench gnet`; `docs/benchmarking.md` says how. Beside ours are the figures of \"G-NET: Effective",
                  "GPU Sharing in NFV Systems\" (NSDI 2018), on its own machine: a GPU of 28 streaming multiprocessors. The chains",
                  "encrypt; the paper does not say which way its IPsec gateway works.")
        page.table(("way", "which part an NF has", "packets of a launch"),
                   (("scheduled", "as the model of its cost asks for, so that all NFs are equally fast", "as few as do"),
                    ("fair", "all the same", "as many as end within the limit of 1 ms"),
                    ("uncoordinated", "all of it, beside the others", "the same"),
                    ("temporal", "all of it, one kernel of any NF at a time; what moves packets overlaps with kernels",
                     "the same")))
        run = results.run
        page.facts((("device", run["device"]),
                    ("parts", f"{results['settings']['parts']}, in steps of {run['compute_unit_step']} of {self.units} compute units"),
                    ("machine", run["machine"]), ("commit", results["commit"]), ("command", f"`{run['command']}`"),
                    ("runs", f"{results['repeats']} of {plain(results['seconds'])} s each, the ways in turn within each repeat"),
                    ("tuning", f"`{results['settings']['tuning']}`"),
                    ("outputs", f"{compared} packets compared with the CPU's, {different} different")))
        page.text("Values are medians; in parentheses the smallest and the largest of the repeats. Machines of one kind differ by up",
                  "to a third.")

    def beside_the_paper(self):
        rows = []
        for chain, paper in OVER_TEMPORAL.items():
            for mode in ("scheduled", "uncoordinated"):
                found = best([cell for cell in self.throughput if cell["chain"] == chain], mode, "temporal")
                if found:
                    more, cell = found
                    rows.append((f"{chain}: {mode} above temporal, throughput", f"{paper:+.1f} % at best", more.percent(),
                                 f"{cell['wire_bytes']} B, {cell['compute_units']} units", yes(more.median >= paper)))
            found = best([cell for cell in self.taken() if cell["chain"] == chain], "temporal", "scheduled", "p95_us")
            if found:
                more, cell = found
                rows.append((f"{chain}: temporal above scheduled, p95", "+25.5 .. +44.3 %", more.percent(),
                             f"{cell['wire_bytes']} B, {cell['offered_per_s'] / 1e6:.1f} Mpps offered",
                             yes(more.median >= TAIL_OVER_TEMPORAL)))
        self.page.heading(2, "Against the paper's figures")
        self.page.table(("what", "paper", "here", "where", "met"), rows, "lrr")
        for units in (FEW_UNITS, self.units):
            self.averages(units)

    def averages(self, units):
        rows = []
        for mode, (worst, most) in OVER_OTHERS.items():
            averages = {}
            for chain in OVER_TEMPORAL:
                cells = [cell for cell in self.throughput if cell["chain"] == chain and cell["compute_units"] == units]
                if cells:
                    averages[chain] = sum(above(cell, "scheduled", mode).median for cell in cells) / len(cells)
            if averages:
                low, high = min(averages.values()), max(averages.values())
                each = ", ".join(f"{chain} {average:+.1f} %" for chain, average in averages.items())
                rows.append((mode, f"{worst:+.1f} .. {most:+.1f} %", f"{low:+.1f} .. {high:+.1f} %: {each}",
                             yes(low >= worst and high >= most)))
        if rows:
            self.page.text(f"Scheduled above other ways on {units} compute units, throughput, average over sizes of each chain, the",
                           "worst chain and the best:")
            self.page.table(("above", "paper", "here", "met"), rows, "lr")

    def throughput_chart(self, units):
        cells = [cell for cell in self.throughput if cell["compute_units"] == units]
        self.page.figure(f"throughput-{units}", bars(
            (f"Throughput on {units} compute units", "chain and size of frames", "Mpps"),
            [f"{cell['chain']} {cell['wire_bytes']}" for cell in cells],
            [(mode, [over_mode(cell, mode, "packets_per_s").scaled(1e-6) for cell in cells]) for mode in MODES]))

    def models(self):
        self.page.heading(2, "The model")
        self.page.text("The time of a launch of B packets on each of N compute units is k1 B + b1 for the kernel and k2 N B + b2 for",
                       "the transfers, and C besides.")
        rows = []
        for nf in self.nfs:
            if nf.get("error"):
                rows.append((nf["nf"], nf["wire_bytes"], f"not measured: {nf['error']}", *[""] * 7))
                continue
            model = nf["model"]
            rows.append((nf["nf"], nf["wire_bytes"], f"{model['b1_ns'] / 1000:.2f}", f"{model['k1_ns']:.2f}",
                         f"{model['kernel_r2']:.4f}", f"{model['b2_ns'] / 1000:.2f}", f"{model['k2_ns']:.3f}",
                         f"{model['transfer_r2']:.4f}", f"{model['overhead_ns'] / 1000:.2f}", model["max_packets_per_unit"]))
        self.page.table(("NF", "B", "b1 us", "k1 ns", "R2", "b2 us", "k2 ns", "R2", "C us", "up to"), rows, "lrrrrrrrrr")

    def host_and_gpu(self):
        """Figure 1 of the paper: what a GPU does of an NF, and how many cores would have to feed it."""
        rows = []
        for nf in self.nfs:
            if nf.get("error") or not nf["launches"] or nf["model"].get("host_ns_per_packet", 0) <= 0:
                continue
            largest = nf["launches"][-1]
            gpu = largest["packets"] / largest["kernel_ns"] * 1e9
            core = 1e9 / nf["model"]["host_ns_per_packet"]
            rows.append((nf["nf"], nf["wire_bytes"], f"{gpu / 1e6:.0f}", f"{gbps(gpu, nf['wire_bytes']):.0f}",
                         f"{core / 1e6:.1f}", f"{gpu / core:.1f}"))
        if not rows:
            return
        self.page.heading(2, "A GPU and the cores that feed it")
        self.page.text("The kernel alone over the largest launch that was measured, on all of the GPU; and what one core does into",
                       "staging and out of it, without rx, tx and what is common to a launch (figure 1: a core is 5 to 65 times slower",
                       "than the GPU).")
        self.page.table(("NF", "B", "kernel Mpps", "Gbps", "a core Mpps", "GPU / core"), rows, "lrrrrr")

    def kernel_charts(self):
        """Figure 3 of the paper, a kernel over its compute units, and figure 7, over the packets of a launch on one
        compute unit, or as few as there can be."""
        shown = [nf for nf in self.nfs if not nf.get("error") and nf["wire_bytes"] == FIGURE_BYTES]
        self.page.figure("kernel-units", lines(
            (f"Time of a kernel over {FIGURE_PACKETS} packets of {FIGURE_BYTES} B", "compute units", "us"),
            [(nf["nf"], sorted((one["units"], one["kernel_ns"] / 1000) for one in nf["kernels"]
                               if one["packets"] == FIGURE_PACKETS)) for nf in shown]))
        for stem, title, y, value in (
                ("batch-time", "Time", "us", lambda one: one["kernel_ns"] / 1000),
                ("batch-throughput", "Throughput", "Mpps", lambda one: one["packets"] / one["kernel_ns"] * 1000)):
            self.page.figure(stem, lines(
                (f"{title} of a kernel on the smallest part, {FIGURE_BYTES} B", "packets of a launch", y),
                [(f"{nf['nf']}, {nf['model']['kernel_units']} units",
                  sorted((one["packets"], value(one)) for one in nf["kernels"]
                         if one["units"] == nf["model"]["kernel_units"])) for nf in shown]))

    def conflicts(self):
        """Figure 12: IPsec and NIDS beside each other, with what crosses the bus and what waits for it."""
        for cell in self.throughput:
            if (cell["chain"], cell["compute_units"], cell["wire_bytes"]) == ("S_a", self.units, FIGURE_BYTES):
                self.page.figure("conflicts", times(f"{cell['chain']}, scheduled, {FIGURE_BYTES} B: a launch waits where it has no "
                                                    "box", cell["timeline"]))

    def tables(self, cells):
        for cell in cells:
            load = f", {cell['offered_per_s'] / 1e6:.2f} Mpps offered" if cell["offered_per_s"] else ""
            self.page.heading(3, f"{cell['chain']}, {cell['wire_bytes']} B, {cell['compute_units']} compute units{load}")
            rows = []
            for mode in cell["repeats"][0]:
                speed = over_mode(cell, mode, "packets_per_s")
                parts = ", ".join(f"{part['nf']} {part['units']} x {part['launch_packets']}" for part in cell["parts"][mode])
                rows.append((mode, speed.scaled(1e-6).text(".2f"), f"{gbps(speed.median, cell['wire_bytes']):.1f}",
                             predicted(cell["parts"][mode]) if mode in DIVIDED else "-", self.cores(cell, mode),
                             *self.latencies(cell, mode), parts))
            self.page.table(("way", "Mpps", "Gbps", "model, Mpps", "cores", "p50 us", "p95 us", "parts"), rows, "lrrrrrr")
            if cell.get("void"):
                self.page.text(f"Void: {cell['void']}.")
            busy = ", ".join(f"{one['what']} {100 * one['share']:.0f} %" for one in cell["busy"][:4])
            self.page.text(f"Busy in a scheduled run of its own: {busy or '-'}.")

    def taken(self):
        """The cells at a rate whose load was taken as it came."""
        return [cell for cell in self.latency if not cell.get("void")]

    def cores(self, cell, mode):
        """Busy with packets, and what all threads took."""
        if "cores" not in cell["repeats"][0][mode]:
            return "-"  # of a set that did not count them
        return f"{over_mode(cell, mode, 'cores').median:.1f}, {over_mode(cell, mode, 'process_cores').median:.1f}"

    def latencies(self, cell, mode):
        """p50 and p95; none of a load that was not taken as it came."""
        if cell.get("void"):
            return "-", "-"
        return over_mode(cell, mode, "p50_us").text(".0f"), over_mode(cell, mode, "p95_us").text(".0f")

    def latency_charts(self):
        """Figure 17."""
        for cell in self.taken():
            self.page.figure(f"latency-{cell['chain']}", lines(
                (f"Latency of {cell['chain']}, {cell['wire_bytes']} B, {cell['offered_per_s'] / 1e6:.1f} Mpps", "us", "% of packets"),
                cell["latency_cdf"].items()))


def yes(is_met):
    return "yes" if is_met else "no"


def page(results):
    return Gnet(results).make()
