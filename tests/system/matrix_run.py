#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs cells of the matrix of changes to a running chain (matrix.py): the chain of a cell runs under traffic in a service,
is changed, and then its output is read.

    matrix_run.py [WORD...]     runs all cells whose name has all of the words, and prints the outcome of each

CATENA_BIN names the program, PYTHONPATH has the folders tests and tests/service.
"""

import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from harness import BIN, LIMIT_S, Service, wait_for

import matrix
from matrix_nfs import FLOWS, GENERATOR, NS, RATE, TYPES, Frame, Traces, read_capture

AT_A_TIME = 2  # cells
PACKETS = 3 * FLOWS  # that a chain receives before it is changed again
MESSAGES = 4  # about one cell

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: {name}}}
spec:
  rx: {rx}
  tx: {tx}
  device: {device}
  workers: 2
  shards: {shards}
  outputs: {outputs}
  nfs:
{nfs}{graph}"""
GRAPH = """  graph:
    - {from: rx, match: {protocol: udp}, to: extra}
    - {from: [rx, extra], to: fw}
    - {from: fw, to: nut}
    - {from: nut, to: tx}
"""
# the NFs by their order, for each change with others
NFS = {"added": ("new", "fw", "nut"), "removed": ("nut",), "moved": ("nut", "fw"), "graph": ("extra", "fw", "nut")}


class Outcome(NamedTuple):
    """`outcome`: of matrix.OUTCOMES. `detail`: messages."""
    outcome: str
    detail: str
    seconds: float

    def __str__(self):
        return f"{self.outcome}{'; ' if self.detail else ''}{self.detail}"


def has_opencl():
    done = subprocess.run([BIN, "show", "devices", "--json"], capture_output=True, text=True, check=True, timeout=LIMIT_S)
    return "opencl" in done.stdout


def read_flows(folder):
    """A frame of each flow of the generator."""
    chain = folder / "flows.yaml"
    chain.write_text(CHAIN.format(name="flows", rx=GENERATOR.replace("}}", f", count: {FLOWS}}}}}"),
                                  tx=f"{{pcap: {folder}/flows.pcap}}", device="none", shards=1, outputs="{}", nfs="",
                                  graph="").replace("nfs:\n", "nfs: []\n"))
    subprocess.run([BIN, "run", "-q", str(chain)], capture_output=True, check=True, timeout=LIMIT_S)
    return [Frame(data) for _, data in read_capture(folder / "flows.pcap")]


class Run:
    """The chain of a cell in a service, and after its end the output of its last start."""

    def __init__(self, service, folder, cell, number, flows):
        folder.mkdir(mode=0o755)
        self.service = service
        self.folder = folder
        self.cell = cell
        self.name = f"cell{number}"
        self.flows = flows
        self.out = folder / "out.pcap"
        self.nf = TYPES[cell.nf](folder, flows, number)
        self.received = 0  # packets of the generator since the last start that lost packets
        self.received_before = 0  # and before it
        self.sent_before = 0  # packets that left before that start
        self.is_new = False  # some start has lost packets
        (folder / "all.rules").write_text("allow any any any any any\n")

    def capture(self):
        """The file of the chain's last start, which keeps those of earlier ones."""
        parts = [int(path.suffix[1:]) for path in self.folder.glob("out.pcap.*")]
        return pathlib.Path(f"{self.out}.{max(parts)}") if parts else self.out

    # the chain file

    def entry(self, name, change, configuration):
        """Of `nfs`. The NF under test and its neighbour can share a process; further NFs are in the chain's own."""
        is_tested = name == self.nf.NAME
        isolation = {"process": "process" if is_tested else "none", "none": "none",
                     "group": "{group: g}" if is_tested or name == "fw" else "none"}[self.cell.isolation]
        place = "gpu" if is_tested and change == "placement" else "cpu"
        kind = self.cell.nf if is_tested else "firewall"
        text = configuration if is_tested else "{rules: all.rules, default: allow}"
        return f"    - {{name: {name}, type: {kind}, on: {place}, isolation: {isolation}, config: {text}}}\n"

    def rx(self):
        return GENERATOR

    def tx(self):
        return self.nf.device(self.out)

    def outputs(self, change):
        return "{record: record, eve: eve}" if self.cell.change != "outputs" or change == "outputs" else "{}"

    def write_chain(self, change, shards, configuration):
        nfs = "".join(self.entry(name, change, configuration) for name in NFS.get(change, ("fw", "nut")))
        (self.folder / "chain.yaml").write_text(CHAIN.format(
            name=self.name, rx=self.rx(), tx=self.tx(), device="opencl" if change == "placement" else "none",
            shards=shards, outputs=self.outputs(change), nfs=nfs, graph=GRAPH if change == "graph" else ""))

    # requests

    def packets_to_wait_for(self):
        return PACKETS

    def apply(self, is_dry_run=False, **options):
        body = {"file": str(self.folder / "chain.yaml"), "options": options}
        return self.service.ask("POST", "/v1/chains", {**body, "dry_run": True} if is_dry_run else body)

    def apply_or_fail(self, **options):
        status, answer = self.apply(**options)
        assert status in (200, 201), answer
        return answer

    def view(self):
        return self.service.ask("GET", f"/v1/chains/{self.name}")[1]

    def wait_for_packets(self, received):
        def has_received():
            view = self.view()
            assert view["state"] == "running", view.get("error", view)
            return view["rx"]["received_packets"] >= received
        wait_for(has_received)

    def wait_after(self, answer):
        """For packets after a change. Counts go on, unless the chain has ended for it."""
        self.wait_for_packets(self.packets_to_wait_for() +
                              (0 if answer["why_packets_are_lost"] else answer["rx"]["received_packets"]))

    def reports(self):
        """(received, dropped) of each chain of this name that has ended, with the chains that it replaced without an end."""
        ended = re.findall(rf" {self.name}: stopped, received (\d+), sent \d+, dropped (\d+)", self.service.log())
        return [(int(received), int(dropped)) for received, dropped in ended]

    def restarts(self):
        """Lines of the log about lost state of the NF under test."""
        return [line for line in self.service.log().splitlines() if "NF 'nut' restarts without its previous state" in line
                and (f" {self.name}: " in line or f"/{self.name}/chain.yaml" in line)]

    # the cell

    def start(self):
        self.write_chain("none", self.cell.shards_before(), self.nf.base_configuration())
        self.apply_or_fail(**self.nf.apply_options())
        self.wait_for_packets(self.packets_to_wait_for())
        self.apply_prelude()

    def apply_prelude(self):
        """A change before the one of the cell, where the NF wants it."""
        if self.nf.prelude:
            self.write_chain("none", self.cell.shards_before(), self.nf.prelude(False))
            answer = self.apply_or_fail()
            assert answer["why_packets_are_lost"] is None, answer["why_packets_are_lost"]
            self.wait_after(answer)

    def change(self, traces):
        """The answers of the dry run and of the apply, which has a consent to what the dry run says is lost."""
        change = self.cell.change
        self.write_chain(change, self.cell.shards_after(), self.nf.configuration(change == "config"))
        dry = self.apply(is_dry_run=True)
        consent = {"accept_loss": True} if dry[0] == 200 and dry[1]["losses"] else {}
        if consent:
            status, answer = self.apply()
            traces.expect(status == 409 and "--accept-loss" in answer["error"], f"without a consent: {status}, {answer}")
        self.sent_before = self.view()["tx"]["sent_packets"]
        applied = self.apply(**consent)
        self.wait_after(applied[1]) if applied[0] == 200 else self.wait_for_packets(
            self.view()["rx"]["received_packets"] + self.packets_to_wait_for())
        return dry, applied

    def end(self, is_new):
        """Has the chain end, whose last start has lost packets where `is_new`."""
        view = self.service.ask("POST", f"/v1/chains/{self.name}/stop")[1]
        assert view["state"] == "stopped", view["error"]
        self.is_new = is_new
        self.received, self.dropped = self.reports()[-1]
        self.received_before = self.reports()[-2][0] if is_new else 0
        self.service.ask("DELETE", f"/v1/chains/{self.name}")
        return view

    def records(self):
        """Of the NF under test, since the last start. The lines of earlier ones are before them."""
        lines = [record for record in map(json.loads, (self.folder / "record").read_text().splitlines())
                 if record["nf"] == self.nf.NAME]
        recorded_before = 0 if self.cell.change == "outputs" else self.received_before
        return lines[sum(self.nf.has_record(packet % FLOWS) for packet in range(recorded_before)):]


def check_packets(run, traces):
    """Each packet that was received has left once, or is a drop of the NF; flows keep their order."""
    nf = run.nf
    verdicts = [nf.verdict(flow) for flow in range(FLOWS)]
    wanted = {packet for packet in range(run.received) if verdicts[packet % FLOWS] != "drop"}
    traces.expect(run.dropped == run.received - len(wanted), f"{run.dropped} drops")
    if run.cell.nf == "ipsec":  # its packets show their numbers instead
        traces.expect(sum(1 for _ in read_capture(run.capture())) == run.received, "packets are lost or doubled")
        return
    seen = set()
    last = collections.defaultdict(lambda: -1)
    outputs = collections.defaultdict(set)
    for stamp, data in read_capture(run.capture()):
        packet = round(stamp * RATE / NS)
        flow = packet % FLOWS
        before, after = run.flows[flow], Frame(data)
        fine = after.identification == packet & 0xFFFF and after.payload == before.payload and nf.translates(before, after)
        traces.expect(fine, f"packet {packet} is wrong: {before.ends()} became {after.ends()}")
        traces.expect(packet > last[flow], f"packet {packet} after {last[flow]} of the same flow")
        last[flow] = packet
        seen.add(packet)
        outputs[flow].add(after.ends())
    lost = sorted(wanted - seen)
    traces.expect(not lost, f"{len(lost)} packets are lost, {lost[:3]} first")
    traces.expect(not seen - wanted, "packets left that were to be dropped")
    nf.check_flows(outputs, traces)


def check_records(run, traces):
    """The record has the NF's decision about each packet once."""
    verdicts = {flow: run.nf.verdict(flow) for flow in range(FLOWS) if run.nf.has_record(flow)}
    found = collections.Counter((record["packet"], record["verdict"]) for record in run.records())
    wanted = collections.Counter((packet, verdicts[packet % FLOWS]) for packet in range(run.received)
                                 if packet % FLOWS in verdicts)
    traces.expect(found == wanted, f"record lines are lost, doubled or wrong: {list((wanted - found) + (found - wanted))[:3]}")


def says_loss(answer):
    return answer.get("why_packets_are_lost") or ", ".join(answer.get("restarted_nfs") or [])


def outcome_of(run, traces, dry, applied):
    """(outcome, detail)"""
    if applied[0] != 200:
        traces.expect(dry[0] == applied[0], f"the dry run had status {dry[0]}")
    if traces.problems:
        return "wrong", "; ".join(traces.problems[:MESSAGES])
    if applied[0] != 200:
        return "refused", applied[1]["error"]
    lost = "; ".join(filter(None, [applied[1]["why_packets_are_lost"], *run.restarts(), *traces.lost[:1]]))
    is_said = dry[0] == 200 and says_loss(dry[1]) and says_loss(applied[1])
    if not lost:
        return ("said", "and nothing was lost") if is_said else ("lives", "")
    return "said" if is_said else "unsaid", lost


def observe(run, traces):
    """Runs the cell's chain, and has `traces` of its output: the outcome and its detail."""
    run.start()
    dry, applied = run.change(traces)
    view = run.end(is_new=applied[0] == 200 and applied[1]["why_packets_are_lost"] is not None)
    if run.cell.change == "placement" and applied[0] == 200:
        traces.expect(any(nf["host_to_device_bytes_per_packet"] > 0 for nf in view["nfs"]), "no NF is on the gpu")
    traces.expect(view["accounted"], "the report does not add up")
    traces.expect(all(nf["process_restarts"] == 0 for nf in view["nfs"]), "a process was restarted")
    check_packets(run, traces)
    if run.cell.change != "outputs" or run.is_new:
        check_records(run, traces)
        run.nf.check(run, traces)
    return outcome_of(run, traces, dry, applied)


def run_cell(service, folder, cell, number, flows):
    started = time.monotonic()
    try:
        outcome, detail = observe(Run(service, folder / f"cell{number}", cell, number, flows), Traces())
    except (AssertionError, KeyError, OSError, ValueError) as error:
        said = [line for line in service.log().splitlines() if re.search(rf"\bcell{number}\b", line)]
        outcome, detail = "failed", "; ".join([f"{type(error).__name__}: {error}", *said[-MESSAGES:]])
        service.ask("DELETE", f"/v1/chains/cell{number}")
    return Outcome(outcome, detail, time.monotonic() - started)


def run_cells(cells):
    """(cell, expected, outcome) of each, in their order."""
    with tempfile.TemporaryDirectory(prefix="matrix", dir="/tmp") as scratch:
        folder = pathlib.Path(scratch)
        folder.chmod(0o755)
        flows = read_flows(folder)
        has_device = has_opencl()
        service = Service(folder)

        def run(numbered):
            number, cell = numbered
            expected = matrix.expected(cell, has_device)
            is_missing = expected.outcome == "missing"
            return cell, expected, (Outcome("missing", expected.reason, 0) if is_missing
                                    else run_cell(service, folder, cell, number, flows))

        try:
            with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
                yield from pool.map(run, enumerate(cells))
            if service.end() != 0:
                raise AssertionError(service.log()[-2000:])
        finally:
            service.process.kill()
            service.process.wait()


def main(words):
    cells = [cell for cell in matrix.all_cells() if all(word in str(cell) for word in words)]
    counts = collections.Counter()
    others = 0
    started = time.monotonic()
    for cell, expected, outcome in run_cells(cells):
        counts[outcome.outcome] += 1
        is_other = outcome.outcome != expected.outcome
        others += is_other
        print(f"{cell}: {outcome} [{outcome.seconds:.1f} s]", flush=True)
        if is_other:
            print(f"  NOT AS EXPECTED, {expected.outcome}: {expected.reason}", flush=True)
    total = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    print(f"{len(cells)} cells in {time.monotonic() - started:.0f} s: {total}; {others} not as expected")
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
