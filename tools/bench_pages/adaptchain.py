# SPDX-License-Identifier: Apache-2.0
"""The page of `catena-bench adaptchain`: ours beside the figures of the AdaptChain paper."""

from bench_pages.page import Page, bars, lines, over, plain, spread, times

COPY_STAGED, COPY, SHARED_STAGED, SHARED = "copy, staged", "copy", "shared, staged", "shared"
ADAPTIVE_STAGED, ADAPTIVE, WITHOUT_PUSHDOWN = "adaptive, staged", "adaptive", "adaptive without pushdown"
CPU, AUTO = "cpu", "auto"
MODES = (COPY_STAGED, COPY, SHARED_STAGED, SHARED, ADAPTIVE_STAGED, ADAPTIVE, WITHOUT_PUSHDOWN, CPU, AUTO)
SIZE_AXIS = "frame with FCS, bytes"
LATENCY_BYTES, LATENCY_GBPS = 1024, (10, 100, 200)
# Scores of trials at an offered rate (score_of() in bench/chains/measure.cpp): where the load was carried SCORE_PER_NS
# divided by p50 in ns, which is above CARRIED_SCORE; else packets a second.
SCORE_PER_NS, CARRIED_SCORE = 1e20, 1e9
BATCH = 1024  # packets of a launch that is taken apart

# What the paper's text says of a chain, against its baseline, which is G-NET: our mode copy. Their figure; throughput
# against the baseline; bytes to the device saved, the same.
PAPER = {"C1": ("9", "up to 3.2x", "13.9 % (64 B) .. 49.1 % (1518 B)"),
         "C2": ("10", "+14.1 % .. 2.8x", "5.6 .. 48.9 %"),
         "C3": ("11, 12", "+10 % .. 2.3x", "13.9 .. 49.1 %"),
         "C4": ("13", "+3.1 % .. 3.0x without pushdown", "11.8 .. 48.9 % without pushdown"),
         "C5": ("14", "up to 2.8x", "up to 49.0 %")}
# With transfer pushdown against without: throughput, and bytes to the device that are saved besides.
PAPER_PUSHDOWN = {"C4": ("+1.8 .. 58.4 %", "6.3 % at 64 B"), "C5": ("+0.7 .. 58.3 %", "0.3 .. 6.0 %")}
# Bytes to the device of one NF that adaptive synchronization saves.
PAPER_NF_BYTES = {("C1", "ids"): "63.6 .. 99.5 %", ("C2", "vpn"): "72.0 .. 99.1 %"}
# Figure 15(b), at 10 Gbps: p50 and p95 by packets a unit; the text has the ends of a range.
PAPER_UNITS = {4: ("9.9 ms", "11.1 ms"), 16: ("3.8 ms", "5.5 ms"), 64: ("3.8 .. 4.6 ms", "5.5 .. 8.0 ms"),
               256: ("3.8 .. 4.6 ms", "5.5 .. 8.0 ms"), 1024: ("4.6 ms", "8.0 ms")}
# Figure 16: baseline, then AdaptChain, at 10 Gbps.
PAPER_LATENCY = {"C1": ("6.4 -> 4.5 ms (-30 %)", "9.2 -> 5.6 ms (-39 %)"),
                 "C4": ("10.2 -> 5.2 ms (-49 %)", "13.2 -> 6.4 ms (-52 %)")}
# Figure 1, from host memory to the device's; everything in percent of the time in host memory: an NF by itself and
# among NFs that leave its packets on the device, its name there, the figure's file, moves, CPU, saved.
PAPER_STAGES = (("IPsec", "IPsec-resident", "vpn", "ipsec-parts", "25.8 -> 2.5 %", "49.2 -> 6.3 %", "77.1 %"),
                ("NIDS", "NIDS-resident", "ids", "nids-parts", "16.8 -> 4.9 %", "35.6 -> 7.1 %", "58.9 %"))
# Figure 3: what the firewall's moves to the device take, against the firewall alone.
PAPER_CONFLICTS = {"F": "", "F-I": "+47.5 %", "F-I-N": "+80.8 %"}
CONFLICT_NF = "fw"

CHAIN_HEADS = ("frame", "mode", "copies", "Mpps", "Gbps", "cores", "core ns a packet", "source, Gbps", "busiest stage",
               "planned ns", "measured ns", "to device, B", "GB/s of bare", "to host, B", "GB/s of bare")
PARTS = {"Pre": ("fill", "submit"), "HtoD": ("to device",), "GPU": ("kernel",), "DtoH": ("to host",), "Post": ("deliver",)}


def packets_per_s(cell):
    return over(cell, lambda repeat: repeat["packets_per_s"])


def gbps(cell):
    """Bits of frames with FCS, without preamble and gap. Of a chain that decrypts, of what is inside."""
    return packets_per_s(cell).scaled(cell["wire_bytes"] * 8 / 1e9)


def to_device(cell):
    return over(cell, lambda repeat: repeat["bytes_to_device"])


def to_host(cell):
    return over(cell, lambda repeat: repeat["bytes_to_host"])


def latency(cell, percentile):
    return over(cell, lambda repeat: repeat["latency_us"][percentile])


def named(entries, name):
    """That of the NF, or None."""
    return next((entry for entry in entries if entry["name"] == name), None)


def nf_to_device(cell, nf):
    """0 where it moves nothing."""
    return over(cell, lambda repeat: (named(repeat["nfs"], nf) or {}).get("bytes_to_device", 0))


def launches(repeat, nf):
    return named(repeat.get("launches", []), nf)


def left(cell):
    """What left a chain at an offered rate, in Gbps, or why the cell does not count."""
    return f"**void**: {cell['void']}" if cell.get("void") else f"{gbps(cell).median:.2f}"


def latencies(cell, *percentiles):
    """In us; nothing of a cell that does not count."""
    return ["-" if cell.get("void") else latency(cell, percentile).text(".1f") for percentile in percentiles]


def copies_text(one):
    """Copies of the chain in a cell or a trial, with the tuning of their packet memory: '16, pool_slots: 4096'."""
    return f"{one['replicas']}, {one['tuning']}" if one.get("tuning") else str(one["replicas"])


def trial_text(trial):
    """Copies and the median score of a trial: p50 where the load was carried, else the speed."""
    score = spread(trial["scores"]).median
    return f"{copies_text(trial)}: " + (f"{SCORE_PER_NS / score / 1e3:.0f} us" if score > CARRIED_SCORE else f"{score / 1e6:.2f} Mpps")


def core_ns(cell):
    """What a packet costs the processors, by what stages measure."""
    return over(cell, lambda repeat: 1e9 * repeat["cores"] / max(1, repeat["packets_per_s"]))


def paired(cell, base):
    """The speed of one by that of the other, repeat by repeat, which took turns."""
    return spread(ours["packets_per_s"] / theirs["packets_per_s"] for ours, theirs in zip(cell["repeats"], base["repeats"])
                  if theirs["packets_per_s"] > 0)


def bus(cell, moved, way):
    """GB/s that way, beside bare copies of as many bytes a packet, strided and gathered."""
    gb = moved(cell).median * packets_per_s(cell).median / 1e9
    methods = [method for method, ways in cell["repeats"][0].get("bare_copies", {}).items() if way in ways]
    bare = " / ".join(f"{over(cell, lambda repeat, method=method: repeat['bare_copies'][method][way]).median:.1f}"
                      for method in methods)
    return f"{gb:.1f} of {bare}" if bare else f"{gb:.1f}"


def traced(cell, nf):
    """Launches of the NF in all repeats, and packets of one on average."""
    found = [launches(repeat, nf) for repeat in cell["repeats"] if launches(repeat, nf)]
    count = sum(one["launches"] for one in found)
    return count, sum(one["packets"] for one in found) / count if count else 0


def range_of(values):
    values = list(values)
    return f"{min(values):.1f} .. {max(values):.1f}"


class AdaptChain:
    def __init__(self, results):
        self.results = results
        self.page = Page(results.prefix)
        # latency and conflicts have a size of their own
        self.sizes = sorted({cell["wire_bytes"] for cell in results.cells if cell["group"] not in ("latency", "conflicts")})

    def cell(self, group, chain, mode, size, unit_packets=0, offered_gbps=0):
        return self.results.first(group=group, chain=chain, mode=mode, wire_bytes=size, unit_packets=unit_packets,
                                  offered_gbps=offered_gbps)

    def has(self, group, chain):
        return bool(self.results.measured(group=group, chain=chain))

    def chains(self, decrypts=None):
        """(name, group, chain) of those with a speed, in their order."""
        for name, chain in self.results["chains"].items():
            group = "decrypt" if chain["decrypts"] else "throughput"
            if decrypts in (None, chain["decrypts"]) and self.has(group, name):
                yield name, group, chain

    def make(self):
        self.head()
        self.places()
        self.comparisons()
        self.beside_the_paper()
        self.nf_bytes()
        self.source()
        for decrypts in (False, True):
            for name, group, chain in self.chains(decrypts):
                self.chain(name, group, chain)
            if not decrypts:
                self.busy()
        self.units()
        self.latency()
        self.timelines()
        self.stages()
        self.batch()
        self.conflicts()
        return self.page

    def head(self):
        results, page = self.results, self.page
        compared, different = results.samples()
        page.heading(1, "The comparisons of AdaptChain on this machine")
        page.text("Measured by `catena-bench adaptchain`; `docs/benchmarking.md` says how. The paper is \"AdaptChain: Adaptive",
                  "Data Sharing and Synchronization for NFV Systems on Heterogeneous Architectures\" (IEEE TPDS 2024), whose",
                  "machine has a Titan X (Pascal), a Xeon E5-2695 v4 and a 100 Gbps link; figures beside ours are those of its",
                  "text.")
        page.facts((("plans by", results.run["cost_profile"]), ("commit", results["commit"]),
                    ("runs", f"{plain(results['seconds'])} s each, a quarter of it warm-up; median (smallest .. largest) of the "
                             "repeats"),
                    ("tuning", f"`{results['settings']['tuning']}`"),
                    ("output checked", f"{compared} sampled packets against the chain on the CPU, {different} different")))
        page.text(f"Measured in {len(results['runs'])} runs. Each began with the same three measurements; a table is of one run.")
        page.table(("run", "machine", "device", "copies, GB/s each way", "C4, adaptive, one copy of the chain", "command"),
                   [(number + 1, run["machine"], run["device"], f"{run['copy_gb_per_s']:.1f}", self.anchors(number),
                     f"`{run['command']}`") for number, run in enumerate(results["runs"])])
        page.text("Sizes are those of arriving frames with FCS (Catena's own figures are without its 4 bytes), and Gbps counts",
                  "them so. Modes: `copy` stands for G-NET, the paper's baseline; `shared` for Gaviss; `adaptive` for",
                  "AdaptChain. `staged`: everything is batched by the CPU, as in the papers; else plans may use every transfer",
                  "method. IPsec encrypts in every chain unless it says decrypt, so NFs behind it meet ESP: the NIDS searches",
                  "ciphertext, and C3's load balancer finds no connection.")
        for note in results["notes"]:
            page.text(note)
        page.failures(results, lambda cell: f"{cell['group']} {cell['chain']} {cell['mode']} {cell['wire_bytes']} B")

    def anchors(self, run):
        """How fast the run was at what every run measures."""
        return "; ".join(f"{cell['wire_bytes']} B: {packets_per_s(cell).median / 1e6:.1f} Mpps, {gbps(cell).median:.1f} Gbps"
                         for cell in self.results.measured(group="anchor", run=run))

    def ratio(self, group, chain, size, mode, base):
        """Medians of one mode divided by those of another; "-" where one is missing."""
        ours, theirs = (self.cell(group, chain, one, size) for one in (mode, base))
        if not ours or not theirs or packets_per_s(theirs).median <= 0:
            return "-"
        return f"{packets_per_s(ours).median / packets_per_s(theirs).median:.2f}"

    def comparisons(self):
        rows = [(name, size, *(self.ratio(group, name, size, mode, base) for mode, base in
                               ((ADAPTIVE_STAGED, COPY_STAGED), (COPY, COPY_STAGED), (ADAPTIVE, COPY_STAGED), (ADAPTIVE, COPY),
                                (ADAPTIVE, SHARED), (ADAPTIVE, WITHOUT_PUSHDOWN))))
                for name, group, _ in self.chains() for size in self.sizes]
        if rows:
            self.page.heading(2, "Plan and transfer method apart")
            self.page.text("Throughput divided by that of another mode, medians. *Plan*: `adaptive, staged` by `copy, staged`.",
                           "*Method*: `copy` by `copy, staged`. *Both*: `adaptive` by `copy, staged`. The other columns:",
                           "`adaptive` by `copy`, by `shared`, and by itself without pushdown.")
            self.page.table(("chain", "frame", "plan", "method", "both", "over copy", "over shared", "pushdown"), rows)

    def ratios(self, chain, mode, base, value, saved):
        """The range over the sizes of one mode's value divided by another's; "-" where there is nothing."""
        found = []
        for size in self.sizes:
            ours, theirs = (self.cell("throughput", chain, one, size) for one in (mode, base))
            if ours and theirs and value(theirs).median > 0:
                found.append(value(ours).median / value(theirs).median)
        if not found:
            return "-"
        if saved:
            return range_of(100 * (1 - ratio) for ratio in found) + " %"
        return f"{min(found):.2f}x .. {max(found):.2f}x"

    def beside_the_paper(self):
        names = [name for name, _, _ in self.chains(False)]
        if not names:
            return
        self.page.heading(2, "Beside the paper")
        self.page.text("Over the sizes measured, everything staged as in the paper: `adaptive, staged` against `copy, staged`.")
        self.page.table(("chain", "figure", "throughput, paper", "throughput, here", "bytes to the device saved, paper",
                         "saved, here"),
                        [(name, PAPER[name][0], PAPER[name][1],
                          self.ratios(name, ADAPTIVE_STAGED, COPY_STAGED, packets_per_s, False), PAPER[name][2],
                          self.ratios(name, ADAPTIVE_STAGED, COPY_STAGED, to_device, True)) for name in names if name in PAPER])
        rows = [(name, PAPER_PUSHDOWN[name][0], self.ratios(name, ADAPTIVE, WITHOUT_PUSHDOWN, packets_per_s, False),
                 PAPER_PUSHDOWN[name][1], self.ratios(name, ADAPTIVE, WITHOUT_PUSHDOWN, to_device, True))
                for name in names if name in PAPER_PUSHDOWN]
        if rows:
            self.page.text("With transfer pushdown against without, every transfer method allowed:")
            self.page.table(("chain", "throughput, paper", "throughput, here", "bytes saved, paper", "saved, here"), rows)

    def places(self):
        """The same chain on the CPU, on the device and where the model says."""
        found = self.results.measured(group="places")
        if not found:
            return
        self.page.heading(2, "On the CPU and on the device")
        self.page.text("Each chain with every NF on the CPU, with as many copies as are fastest; as it is listed, one copy and as many",
                       "as are fastest; and `on: auto`, every NF where the model says. The ways of a chain and frame size took turns;",
                       "*over* is by the CPU's speed in the same repeat.")
        rows = []
        for cell in found:
            cpu = self.results.first(group="places", chain=cell["chain"], wire_bytes=cell["wire_bytes"], mode=CPU)
            rows.append((cell["chain"], *self.chain_row(cell["wire_bytes"], cell["mode"], cell),
                         paired(cell, cpu).text(".2f") if cpu and cell is not cpu else "-"))
        self.page.table(("chain", *CHAIN_HEADS, "over cpu"), rows)

    def nf_bytes(self):
        """What single NFs move, everything staged as in the paper."""
        rows = [(name, nf["type"], PAPER_NF_BYTES.get((name, nf["name"]), ""),
                 self.ratios(name, ADAPTIVE_STAGED, COPY_STAGED, lambda cell, nf=nf: nf_to_device(cell, nf["name"]), True))
                for name, _, chain in self.chains(False) for nf in chain["nfs"] if nf["on_gpu"]]
        if rows:
            self.page.text("Bytes that single NFs move to the device, saved the same way. Less than 0: the NF brings what those",
                           "behind it need.")
            self.page.table(("chain", "NF", "paper", "here"), rows)

    def source(self):
        rows = [("ESP, whole frames" if cell["chain"] == "rx-tx-esp" else "replay", cell["wire_bytes"], cell["replicas"],
                 f"{packets_per_s(cell).median / 1e6:.3f}", gbps(cell).text(".2f"))
                for cell in self.results.measured(group="source")]
        if rows:
            self.page.heading(2, "What the source gives")
            self.page.text("rx and tx without NFs. As many copies of a chain cannot be faster.")
            self.page.table(("source", "frame", "copies", "Mpps", "Gbps"), rows)

    # ---- chains

    def in_every_mode(self, group, chain):
        for size in self.sizes:
            for mode in MODES:
                cell = self.cell(group, chain, mode, size)
                if cell:
                    yield size, mode, cell

    def chain(self, name, group, chain):
        page = self.page
        figure = PAPER.get(name, ("",))[0]
        page.heading(2, f"{name}: {chain['title']}" + (f", figure {figure}" if figure else ""))
        text = [f"Run {self.results.first(group=group, chain=name)['run'] + 1}."]
        if chain["decrypts"]:
            text += ["Not in the paper's figures: real ESP comes in, and is decrypted. Sizes are those of the frames inside.",
                     "Every 8th flow is a connection to the load balancer's service, every 10th packet holds a string of the",
                     "NIDS's rules."]
        page.text(*text)
        stem = name.lower()
        self.mode_bars(stem + "-throughput", group, name, "throughput, Gbps", gbps, False)
        self.mode_bars(stem + "-to-device", group, name, "bytes to the device; copy, staged = 1", to_device, True)
        if name == "C3":
            self.mode_bars(stem + "-to-host", group, name, "bytes to the host; copy, staged = 1", to_host, True)
        page.table(CHAIN_HEADS, [self.chain_row(*found) for found in self.in_every_mode(group, name)])
        page.text("Copies of the chain have threads of their own for every NF; there are as many as were fastest. *Cores*: busy",
                  "with packets, those of the source among them, and in brackets with waiting in loops, too. *Source*: what as",
                  "many copies of rx and tx alone do. *Planned*: what the plan reckons a packet costs the bus, the CPU and the",
                  "device, added up. *Bare*: copies of as many bytes a packet and nothing else, both ways at once, strided /",
                  "gathered. The modes of a frame size took turns.")
        page.text("To the device by NF, bytes a packet of its launches:")
        nfs = [nf["name"] for nf in chain["nfs"] if nf["on_gpu"]]
        page.table(("frame", "mode", *nfs), [(size, mode, *(f"{nf_to_device(cell, nf).median:.1f}" for nf in nfs))
                                             for size, mode, cell in self.in_every_mode(group, name)])

    def mode_bars(self, stem, group, chain, what, value, normalized):
        def bar(mode, size):
            cell, base = (self.cell(group, chain, one, size) for one in (mode, COPY_STAGED))
            if not cell:
                return None
            if not normalized:
                return value(cell)
            return value(cell).median / value(base).median if base and value(base).median > 0 else None
        self.page.figure(stem, bars((f"{chain}: {what}", SIZE_AXIS, what), map(str, self.sizes),
                                    [(mode, [bar(mode, size) for size in self.sizes]) for mode in MODES]))

    def chain_row(self, size, mode, cell):
        speed = packets_per_s(cell).median
        cores, process = (over(cell, lambda repeat, what=what: repeat[what]).median for what in ("cores", "process_cores"))
        return (size, mode, cell["replicas"], f"{speed / 1e6:.3f}", gbps(cell).text(".2f"), f"{cores:.1f} ({process:.1f})",
                core_ns(cell).text(".0f"), self.ceiling(cell), self.busiest(cell), f"{cell['planned_ns']:.1f}",
                f"{1e9 / max(1, speed):.1f}", f"{to_device(cell).median:.1f}", bus(cell, to_device, "to_device"),
                f"{to_host(cell).median:.1f}", bus(cell, to_host, "to_host"))

    def ceiling(self, cell):
        """What the source gives at most, in Gbps, with as many copies and threads; "-" where it was not measured."""
        source = self.results.first(group="source", chain="rx-tx-esp" if cell["group"] == "decrypt" else "rx-tx",
                                    wire_bytes=cell["wire_bytes"], replicas=cell["replicas"])
        return f"{gbps(source).median:.0f}" if source else "-"

    def busiest(self, cell):
        """The stage that was busy for the largest part of its time, by its median, as text: "vpn 97 %"."""
        shares = [(over(cell, lambda repeat, at=at: repeat["stages"][at]["busy_s"] / repeat["seconds"]).median, stage["name"])
                  for at, stage in enumerate(cell["repeats"][0]["stages"])]
        if not shares:
            return "-"
        most, name = max(shares)
        return f"{name} {min(100, 100 * most / cell['replicas']):.0f} %"

    def busy(self):
        """What workers do with C3 at full speed."""
        if not self.has("throughput", "C3"):
            return
        names = ["rx", *(nf["name"] for nf in self.results["chains"]["C3"]["nfs"]), "tx"]
        labels, rows, ns = [], [], []
        for size in self.sizes:
            for mode in (COPY_STAGED, ADAPTIVE):
                cell = self.cell("throughput", "C3", mode, size)
                if not cell or not cell["repeats"][-1]["received"]:
                    continue
                repeat = cell["repeats"][-1]
                seconds = [stage["busy_s"] for stage in repeat["stages"]]
                whole = sum(seconds)
                labels.append(f"{size} {'B' if mode == COPY_STAGED else 'A'}")
                ns.append([one * 1e9 / repeat["received"] for one in seconds])
                rows.append((size, mode, *(f"{100 * one / whole if whole else 0:.1f} %" for one in seconds),
                             f"{whole * 1e9 / repeat['received']:.1f}"))
        self.page.heading(2, "Where C3's workers spend their time")
        self.page.text("Share of each stage in the time that workers were busy, at full speed. What a device does meanwhile is not in",
                       "it: a GPU stage is busy while it gathers, enqueues and completes. B: copy, A: adaptive.")
        self.page.table(("frame", "mode", *names, "all, ns a packet"), rows)
        self.page.figure("c3-stages", bars(("C3: busy time by stage", SIZE_AXIS + "; B copy, A adaptive", "nanoseconds a packet"),
                                           labels, zip(names, zip(*ns)), stacked=True))

    # ---- unit sizes, figure 15, and latency, figure 16

    def units(self):
        if not self.results.measured(group="units"):
            return
        def cell(units, size):
            return self.cell("units", "C4", ADAPTIVE, size, units)
        self.page.heading(2, "Unit sizes with C4, figure 15")
        self.page.text("Paper: stable from 16 to 1024 packets a unit, up to 40 % lower with 4.")
        self.page.table(("packets a unit", "frame", "Gbps"),
                        [(units, size, gbps(cell(units, size)).text(".2f"))
                         for units in PAPER_UNITS for size in self.sizes if cell(units, size)])
        self.page.figure("c4-unit-throughput", bars(
            ("C4, adaptive: throughput by unit size", SIZE_AXIS, "Gbps"), map(str, self.sizes),
            [(f"{units} packets", [gbps(cell(units, size)) if cell(units, size) else None for size in self.sizes])
             for units in PAPER_UNITS]))
        found = {units: self.cell("latency", "C4", ADAPTIVE, LATENCY_BYTES, units, LATENCY_GBPS[0]) for units in PAPER_UNITS}
        found = {units: one for units, one in found.items() if one}
        if found:
            self.page.text(f"Latency of C4, `{ADAPTIVE}`, frames of {LATENCY_BYTES} bytes, {LATENCY_GBPS[0]} Gbps offered:")
            self.page.table(("packets a unit", "left, Gbps", "p50 us", "p50, paper", "p95 us", "p95, paper"),
                            [(units, left(one), *latencies(one, "p50"), PAPER_UNITS[units][0],
                              *latencies(one, "p95"), PAPER_UNITS[units][1]) for units, one in found.items()])
            self.page.figure("c4-unit-latency", lines(
                (f"C4, adaptive, {LATENCY_GBPS[0]} Gbps offered: latency by unit size", "microseconds", "percent of packets"),
                [(f"{units} packets", one["latency_cdf"]) for units, one in found.items()]))

    def latency(self):
        found = {(chain, rate, mode): self.cell("latency", chain, mode, LATENCY_BYTES, 0, rate) for chain in PAPER_LATENCY
                 for rate in LATENCY_GBPS for mode in (COPY_STAGED, ADAPTIVE, CPU)}
        found = {key: cell for key, cell in found.items() if cell}
        if not found:
            return
        rows = []
        for chain, paper in PAPER_LATENCY.items():
            rows += [(chain, f"{rate} Gbps", mode, copies_text(cell), left(cell), *latencies(cell, "p50", "p95", "p99"),
                      "; ".join(map(trial_text, cell.get("trials", []))) or "-")
                     for (of, rate, mode), cell in found.items() if of == chain]
            rows.append((chain, "10 Gbps, paper", "baseline -> AdaptChain", "", "", *paper, "", ""))
        self.page.heading(2, "Latency, figure 16")
        self.page.text(f"Frames of {LATENCY_BYTES} bytes, whatever `--sizes` says (the paper names no size), at an offered rate, from when",
                       "they were due, whatever held the source up. A cell counts where the chain took 99 % of what was offered in every repeat. *Trials*:",
                       "copies of the chain, and what a short run with them gave: p50 where it carried the load, else its speed.")
        self.page.table(("chain", "offered", "mode", "copies", "left, Gbps", "p50 us", "p95 us", "p99 us", "trials"), rows)
        for chain in PAPER_LATENCY:
            self.page.figure(f"{chain.lower()}-latency", lines(
                (f"{chain}: latency at an offered rate", "microseconds", "percent of packets"),
                [(f"{mode}, {rate} Gbps", cell["latency_cdf"]) for (of, rate, mode), cell in found.items() if of == chain]))

    def timelines(self):
        found = [cell for cell in self.results.measured(group="latency") if cell.get("timeline")]
        if found:
            self.page.heading(2, "What a packet waits for")
            self.page.text("One millisecond out of the middle of a short run beside those above, which are without traces. Of each NF on",
                           "the device what the host does, then what the device does, a row for each launch in flight.",
                           "`catena run --trace` writes the same of any chain.")
        for cell in found:
            rate = plain(cell["offered_gbps"])
            self.page.figure(f"{cell['chain'].lower()}-timeline-{rate}",
                             times(f"{cell['chain']}, {cell['mode']}, {rate} Gbps offered: launches", cell["timeline"]))

    # ---- launches taken apart

    def stage_pairs(self, alone, resident, nf):
        """For each size (size, cell, cell, us, us): in host memory and on the device, microseconds by PARTS."""
        for size in self.sizes:
            cells = (self.cell("stages", alone, COPY_STAGED, size), self.cell("stages", resident, ADAPTIVE_STAGED, size))
            if all(cell and all(launches(repeat, nf) for repeat in cell["repeats"]) for cell in cells):
                us = [{part: over(cell, lambda repeat, phases=phases: sum(launches(repeat, nf)["median_us"][phase]
                                                                          for phase in phases)).median
                       for part, phases in PARTS.items()} for cell in cells]
                if sum(us[0].values()) > 0:
                    yield size, *cells, *us

    def stages(self):
        found = [(paper, list(self.stage_pairs(*paper[:3]))) for paper in PAPER_STAGES]
        found = [(paper, pairs) for paper, pairs in found if pairs]
        if not found:
            return
        page = self.page
        page.heading(2, "Time of a batch with its data in host memory and on the device, figure 1")
        page.text(f"A unit of {BATCH} packets at a time is in the chain, so nothing runs beside it. *Host*: the NF alone,",
                  f"`{COPY_STAGED}`. *Device*: the same NF between two NIDS that leave packets alone, `{ADAPTIVE_STAGED}`: the first",
                  "brings whole packets, the second takes back what changed. The NF between them moves no packets, only what its",
                  "launch and its results take: its bytes are in the table. From traces, medians over the launches: Pre is from the",
                  "first packet taken until everything is enqueued, Post from the launch found done until its packets went on;",
                  "HtoD, GPU and DtoH by the device's clock. The device begins while the host still enqueues, which counts for",
                  "both. All in percent of the batch in host memory.")

        def share(us, host, parts):
            return 100 * sum(us[part] for part in parts) / sum(host.values())

        def both(pairs, parts):
            return " -> ".join(range_of(share(pair[which], pair[3], parts) for pair in pairs) for which in (3, 4)) + " %"
        page.table(("NF", "HtoD + DtoH, paper", "here", "CPU, paper", "here", "all saved, paper", "here"),
                   [(alone, moves, both(pairs, ("HtoD", "DtoH")), cpu, both(pairs, ("Pre", "Post")), saved,
                     range_of(100 - share(device, host, PARTS) for *_, host, device in pairs) + " %")
                    for (alone, _, _, _, moves, cpu, saved), pairs in found])
        page.table(("NF", "frame", "data", *PARTS, "all", "all, us", "to device, B", "to host, B", "launches", "packets each"),
                   [self.stage_row(paper, size, where, cell, us, host) for paper, pairs in found
                    for size, in_host, on_device, host, device in pairs
                    for where, cell, us in (("host", in_host, host), ("device", on_device, device))])
        for (alone, _, _, stem, *_), pairs in found:
            bars_of = [(f"{size} {letter}", us, host) for size, _, _, host, device in pairs
                       for letter, us in (("H", host), ("D", device))]
            page.figure(stem, bars((f"{alone}: time of a batch", SIZE_AXIS + "; H in host memory, D on the device",
                                    "percent of the time in host memory"), [label for label, *_ in bars_of],
                                   [(part, [share(us, host, (part,)) for _, us, host in bars_of]) for part in PARTS],
                                   stacked=True))

    def stage_row(self, paper, size, where, cell, us, host):
        alone, _, nf = paper[:3]
        whole = sum(host.values())
        moved = named(cell["repeats"][-1]["nfs"], nf) or {}
        count, packets = traced(cell, nf)
        return (alone, size, where, *(f"{100 * us[part] / whole:.1f} %" for part in PARTS),
                f"{100 * sum(us.values()) / whole:.1f} %", f"{sum(us.values()):.1f}", f"{moved.get('bytes_to_device', 0):.1f}",
                f"{moved.get('bytes_to_host', 0):.1f}", count, f"{packets:.0f}")

    def batch(self):
        """Parts of C3's launches at an offered rate, figure 11(b)."""
        found = []
        for size in self.sizes:
            cells = [self.cell("batch", "C3", mode, size, 0, LATENCY_GBPS[0]) for mode in (COPY_STAGED, ADAPTIVE)]
            us = [pieces(cell) for cell in cells]
            if all(us) and sum(us[0].values()) > 0:
                found.append((size, cells, us))
        if not found:
            return
        page = self.page
        page.heading(2, "Time of a batch of C3, figure 11(b)")
        page.text(f"{LATENCY_GBPS[0]} Gbps offered, in units and launches of {BATCH} packets: what stages take for one;",
                  f"`{COPY_STAGED}` as a whole is 100 %. rx, lb, tx and *CPU* are the time that the stage was busy in the run, *CPU*",
                  "with what it gathers, enqueues and puts back; the rest is of the launches in the trace, over their packets. The",
                  "paper's H2D and D2H units also gather and put back; there those are in *CPU*. Moves may wait for one another,",
                  "and all of it goes on side by side.")

        def here(names):
            return range_of(100 * sum(us[1][name] for name in names) / sum(us[0].values()) for _, _, us in found) + " %"
        page.table((f"`{ADAPTIVE}`, in percent of `{COPY_STAGED}`", "paper", "here"),
                   (("to the device (H2D unit)", "5.9 .. 8.9 %", here(("to device",))),
                    ("NFs", "38.7 .. 67.3 %", here(("vpn CPU", "vpn kernel", "lb", "ids CPU", "ids kernel"))),
                    ("to the host and tx (D2H unit and TX)", "26.5 .. 52.3 %", here(("to host", "tx"))),
                    ("all saved", "13.6 .. 63.7 %",
                     range_of(100 * (1 - sum(us[1].values()) / sum(us[0].values())) for _, _, us in found) + " %")))
        page.table(("frame", "mode", "left, Gbps", *PIECES, "all", "all, us", "launches, vpn and ids"),
                   [self.batch_row(size, cell, us, both[0]) for size, cells, both in found for cell, us in zip(cells, both)])
        bars_of = [(f"{size} {letter}", us, both[0]) for size, _, both in found for letter, us in zip("BA", both)]
        page.figure("c3-batch", bars(
            (f"C3, {LATENCY_GBPS[0]} Gbps offered: time of {BATCH} packets", SIZE_AXIS + "; B copy, staged, A adaptive",
             "percent of copy, staged"), [label for label, *_ in bars_of],
            [(piece, [100 * us[piece] / sum(base.values()) for _, us, base in bars_of]) for piece in PIECES], stacked=True))

    def batch_row(self, size, cell, us, base):
        whole = sum(base.values())
        each = ", ".join("{} of {:.0f}".format(*traced(cell, nf)) for nf in ("vpn", "ids"))
        return (size, cell["mode"], left(cell), *(f"{100 * one / whole:.1f} %" for one in us.values()),
                f"{100 * sum(us.values()) / whole:.1f} %", f"{sum(us.values()):.1f}", each)

    def conflicts(self):
        """Moves to the device that wait for others, figure 3."""
        found = {(chain, rate): self.cell("conflicts", chain, COPY_STAGED, LATENCY_BYTES, 0, rate)
                 for rate in LATENCY_GBPS for chain in PAPER_CONFLICTS}
        if not any(found.values()):
            return
        rows = []
        for (chain, rate), cell in found.items():
            if cell:
                us = conflict_us(cell)
                base = conflict_us(found["F", rate]).median if found["F", rate] else 0
                count, packets = traced(cell, CONFLICT_NF)
                rows.append((chain, f"{rate} Gbps", left(cell), us.text(".1f"),
                             f"{100 * (us.median / base - 1):+.1f} %" if base > 0 and chain != "F" else "",
                             PAPER_CONFLICTS[chain], count, f"{packets:.0f}"))
        self.page.heading(2, "Conflicts of moves, figure 3")
        self.page.text("What the firewall's moves to the device take, waiting for the bus included: the firewall alone (F), with IPsec",
                       "behind it (F-I), and with IPsec and a NIDS (F-I-N), every one on the device,",
                       f"`{COPY_STAGED}`, frames of {LATENCY_BYTES} bytes, units and launches of {BATCH} packets. From traces; medians",
                       "over the launches.")
        self.page.table(("chain", "offered", "left, Gbps", "to the device, us", "against F", "paper", "launches", "packets each"),
                        rows)
        self.page.figure("conflicts", bars(
            ("The firewall's moves to the device", "NFs on the device", "microseconds"), PAPER_CONFLICTS,
            [(f"{rate} Gbps offered", [conflict_us(found[chain, rate]) if found[chain, rate] else None
                                       for chain in PAPER_CONFLICTS]) for rate in LATENCY_GBPS]))


PIECES = ("rx", "to device", "vpn CPU", "vpn kernel", "lb", "ids CPU", "ids kernel", "to host", "tx")


def pieces(cell):
    """What C3 spends time on, by PIECES, in microseconds of a batch: medians over the repeats; None where a repeat has no
    launches of an NF."""
    if not cell or not all(launches(repeat, nf) for repeat in cell["repeats"] for nf in ("vpn", "ids")):
        return None

    def busy(repeat, stage):
        return (named(repeat["stages"], stage) or {}).get("busy_s", 0) * 1e6 * BATCH / max(repeat["received"], 1)

    def of(repeat, nf, phase):
        return launches(repeat, nf)["total_us"][phase] * BATCH / launches(repeat, nf)["packets"]

    def all_of(repeat):
        return {"rx": busy(repeat, "rx"), "to device": of(repeat, "vpn", "to device") + of(repeat, "ids", "to device"),
                "vpn CPU": busy(repeat, "vpn"), "vpn kernel": of(repeat, "vpn", "kernel"), "lb": busy(repeat, "lb"),
                "ids CPU": busy(repeat, "ids"), "ids kernel": of(repeat, "ids", "kernel"),
                "to host": of(repeat, "vpn", "to host") + of(repeat, "ids", "to host"), "tx": busy(repeat, "tx")}
    repeats = [all_of(repeat) for repeat in cell["repeats"]]
    return {piece: spread(repeat[piece] for repeat in repeats).median for piece in PIECES}


def conflict_us(cell):
    """Median of the moves to the device of a launch of the firewall."""
    return over(cell, lambda repeat: (launches(repeat, CONFLICT_NF) or {"median_us": {"to device": 0}})["median_us"]["to device"])


def page(results):
    return AdaptChain(results).make()
