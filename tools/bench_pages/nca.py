# SPDX-License-Identifier: Apache-2.0
"""The page of `catena-bench nca`: ours beside the figures of draft-perumal-nfvrg-nfv-compute-acceleration-00."""

from bench_pages.page import Page, bars, over, plain, spread, times

BAR_HIDDEN, BAR_RATIO, BAR_STREAMS = 95, 0.8, {1: 0.75, 4: 0.9}
# What the draft measured with 5,000 strings and packets of variable size, by percent that match: Gbps; copy in, kernel and
# copy back, us; buffers a second.
DRAFT = {0: (14.9, (903, 9784, 161), 209), 35: (33.02, (923, 4380, 168), 464)}
AVERAGE_BYTES = 583


def value(cell, name):
    return over(cell, lambda repeat: repeat[name])


def size(cell):
    return cell["packet_bytes"] or "variable"


def hyperscan(cell):
    return spread(cell["hyperscan_core_gbps"])


def hyperscan_cores(cell):
    """As many as adding threads; none in a set that did not measure them."""
    return spread(cell.get("hyperscan_cores_gbps", []))


def over_cores(cell):
    cores = hyperscan_cores(cell).median
    return f"{value(cell, 'gbps').median / cores:.2f}x" if cores else "-"


def ratio(cell):
    """Of the library to its kernel by itself."""
    return over(cell, lambda repeat: repeat["gbps"] / repeat["kernel_gbps"] if repeat["kernel_gbps"] > 0 else 0).median


def has_copies(cell):
    """The device cpu has none."""
    return value(cell, "copy_share").median > 0


def share(cell, name):
    percent = value(cell, name).scaled(100)
    return percent.percent(".1f") if has_copies(cell) else "no copies"


class Nca:
    def __init__(self, results):
        self.results = results
        self.page = Page(results.prefix)
        self.copies = results.run["copies_gbps"]

    def make(self):
        self.head()
        self.beside_the_bars()
        self.draft()
        self.streams()
        self.queues()
        self.kernel()
        return self.page

    def head(self):
        results, page = self.results, self.page
        page.heading(1, "`catena-bench nca`")
        page.text("The measurement of draft-perumal-nfvrg-nfv-compute-acceleration-00 with libnca; `docs/benchmarking.md` says how.")
        page.facts((("machine", results.run["machine"]), ("device", results.run["device"]), ("commit", results["commit"]),
                    ("command", f"`{results.run['command']}`"), ("buffers", f"{results['settings']['packets']} packets"),
                    ("a run", f"{plain(results['seconds'])} s, of which a quarter is warm-up")))
        page.text("Gbps are those of packet bytes. Figures are the median of the repeats, with the smallest and the largest. Packets are",
                  "random bytes in which no string occurs; a random string stands at a random place of exactly those that match. Sizes",
                  f"that vary are 64 to 1102 bytes, each as likely: {AVERAGE_BYTES} on average. Every buffer had as many matches as",
                  "Hyperscan finds in its packets, and the first one of each stream the same ones, or the measurement failed.")
        for note in results["notes"]:
            page.text(note)
        page.failures(results, lambda cell: f"{cell['group']}, {cell['strings']} strings, {size(cell)} bytes, "
                      f"{cell['matching_percent']} % matching, {cell['queues']} queues")

    def beside_the_bars(self):
        rows = []
        for cell in self.results.measured():
            matching = f"{cell['matching_percent']} % matching"
            if cell["group"] == "streams" and cell["streams"] in BAR_STREAMS and self.copies["pinned"] > 0:
                rows.append((f"{cell['streams']} streams of {cell['threads']} adding threads, {matching}, against bare copies",
                             f"{BAR_STREAMS[cell['streams']]}x on an H200",
                             f"{value(cell, 'gbps').median / self.copies['pinned']:.2f}x"))
            elif cell["group"] == "queues" and cell["queues"] == 3 and has_copies(cell):
                rows.append(("copy time hidden with 3 queues", f"{BAR_HIDDEN} % on an H200",
                             f"{100 * value(cell, 'hidden_share').median:.1f} %"))
                rows.append(("kernel time hidden with 3 queues, where kernels are shorter than copies", "",
                             f"{100 * value(cell, 'kernel_hidden_share').median:.1f} %"))
            elif cell["group"] == "kernel":
                rows.append((f"the library against its kernel by itself, {matching}",
                             f"{BAR_RATIO}x on the OpenCL CPU device", f"{ratio(cell):.2f}x"))
        self.page.table(("what", "bar", "measured"), rows)

    def draft(self):
        cells = self.results.measured(group="draft")
        if not cells:
            return
        rows = []
        for cell in cells:
            gbps, mpps, core = value(cell, "gbps"), value(cell, "mpps").median, hyperscan(cell)
            batch = cell.get("batch_us", {"copy_in": 0, "kernel": 0, "copy_back": 0})
            rows.append((cell["strings"], size(cell), f"{cell['matching_percent']} %", gbps.text(".2f"), f"{mpps:.2f}",
                         f"{mpps * 1e6 / int(self.results['settings']['packets']):.0f}", core.text(".2f"),
                         f"{gbps.median / core.median if core.median else 0:.2f}x", hyperscan_cores(cell).text(".2f"), over_cores(cell),
                         f"{gbps.median / cell['streams'] / cell['threads']:.2f}",
                         *(f"{batch[part]:.0f}" for part in ("copy_in", "kernel", "copy_back"))))
        rows += [("5000, the draft", "variable", f"{percent} %", gbps, "", buffers, "", "", "", "", "", *us)
                 for percent, (gbps, us, buffers) in DRAFT.items()]
        self.page.heading(2, "The draft's measurement")
        self.page.table(("strings", "bytes", "matching", "Gbps", "Mpps", "buffers/s", "one Hyperscan core, Gbps", "against it",
                         "as many cores as adding threads", "against them", "Gbps of an adding thread",
                         "copy in, us", "kernel, us", "copy back, us"), rows)
        self.page.text(f"Speeds are of {cells[0]['streams']} streams with {cells[0]['threads']} adding threads each; times are medians",
                       "of buffers by themselves, one stream with one queue.")

    def streams(self):
        cells = self.results.measured(group="streams")
        if not cells:
            return
        self.page.heading(2, "Streams, and what the bus gives")
        self.page.text(f"Bare copies of {self.results['settings']['packets']} packets of {AVERAGE_BYTES} bytes to the device, one after",
                       f"another: {self.copies['pinned']:.1f} Gbps from pinned memory, {self.copies['pageable']:.1f} from pageable (the",
                       "draft: pinned is 3x as fast).")
        self.page.table(("streams", "adding threads of each", "matching", "Gbps", "against bare copies"),
                        [(cell["streams"], cell["threads"], f"{cell['matching_percent']} %", value(cell, "gbps").text(".2f"),
                          f"{value(cell, 'gbps').median / self.copies['pinned']:.2f}x" if self.copies["pinned"] else "-")
                         for cell in cells])

    def queues(self):
        cells = self.results.measured(group="queues")
        if not cells:
            return
        page = self.page
        page.heading(2, "Queues")
        page.text("One stream, which has two buffers more than queues. *Copy* and *kernel* are the shares of the time in which any",
                  "buffer is copied, or worked on, by the device's clock. *Copy time hidden* is the share of the copy time in which a",
                  "kernel runs too, *kernel time hidden* the share of the kernel time in which a copy runs: of the longer of the two",
                  "not all can be hidden. On a CPU a copy that waits for a core counts as running.")
        page.table(("queues", "Gbps", "copy", "kernel", "copy time hidden", "kernel time hidden", "one Hyperscan core, Gbps"),
                   [(cell["queues"], value(cell, "gbps").text(".2f"), f"{100 * value(cell, 'copy_share').median:.1f} %",
                     f"{100 * value(cell, 'kernel_share').median:.1f} %", share(cell, "hidden_share"),
                     share(cell, "kernel_hidden_share"), hyperscan(cell).text(".2f")) for cell in cells])
        labels = [str(cell["queues"]) for cell in cells]
        page.figure("queues-gbps", bars(("Throughput by queues", "queues", "Gbps"), labels,
                                        [("libnca", [value(cell, "gbps") for cell in cells])]))
        page.figure("queues-hidden", bars(("Copy time hidden by queues", "queues", "percent"), labels,
                                          [("hidden", [value(cell, "hidden_share").scaled(100) for cell in cells])]))
        for cell in cells:
            if cell.get("timeline"):
                page.figure(f"timeline-{cell['queues']}",
                            times(f"One stream with {cell['queues']} queues: buffers on the device", cell["timeline"]))

    def kernel(self):
        cells = self.results.measured(group="kernel")
        if cells:
            self.page.heading(2, "The kernel by itself")
            self.page.text("Launched again and again over one buffer that is on the device, against the whole library.")
            self.page.table(("strings", "matching", "the library, Gbps", "the kernel, Gbps", "ratio", "one Hyperscan core, Gbps"),
                            [(cell["strings"], f"{cell['matching_percent']} %", value(cell, "gbps").text(".2f"),
                              value(cell, "kernel_gbps").text(".2f"), f"{ratio(cell):.2f}x", hyperscan(cell).text(".2f"))
                             for cell in cells])


def page(results):
    return Nca(results).make()
