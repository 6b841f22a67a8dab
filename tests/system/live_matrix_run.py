#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cells at live ports of the matrix of changes (matrix.live_cells()): a source in another process sends through
a cable into the chain of a cell, which is changed, and a second cable has what left it.

    live_matrix_run.py [--rate PACKETS_PER_S] [WORD...]    cells whose name has all of the words; root

The source's own count is the measure: a packet that a change keeps waiting until the port's ring is full is lost, too.
Each line has the longest gap between packets that left, with the machine's own pauses.
CATENA_BIN names the program, PYTHONPATH has the folders tests and tests/service.
"""

import argparse
import collections
import json
import pathlib
import struct
import sys
import tempfile
import time

from harness import Service

import matrix
from live_traffic import NUMBER, Cable, Capture, Source, reason_for_none
from matrix_nfs import FLOWS, NS, Frame, Traces, address, read_capture
from matrix_run import Outcome, Run, outcome_of, read_flows

RATE = 100_000  # packets a second
PACKETS_OF_SECONDS = 0.5  # that a chain receives before and after its change
ESP_HEADERS = struct.Struct("!II")  # SPI and number, after Ethernet and IPv4
AT_ESP = 34


class LiveRun(Run):
    """The chain of a cell between two cables."""

    def __init__(self, service, folder, cell, number, frames, rate):
        super().__init__(service, folder, cell, number, [Frame(data) for data in frames])
        self.frames, self.rate = frames, rate
        self.cables = [Cable(f"lc{number}{side}") for side in "ab"]
        self.source = self.captured = None

    def rx(self):
        return f"{{dev: {self.cables[0].inside}}}"

    def tx(self):
        return f"{{dev: {self.cables[1].inside}}}"

    def outputs(self, change):
        return "{}"

    def capture(self):
        return self.out

    def packets_to_wait_for(self):
        return int(self.rate * PACKETS_OF_SECONDS)

    def start(self):
        self.captured = Capture(self.cables[1].outside, self.out)
        self.write_chain("none", self.cell.shards_before(), self.nf.base_configuration())
        self.apply_or_fail(**self.nf.apply_options())
        self.source = Source(self.cables[0].outside, self.frames, self.rate)
        self.wait_for_packets(self.packets_to_wait_for())
        self.apply_prelude()

    def end(self, is_new):
        self.sent = self.source.end()
        self.source = None
        self.captured.end()
        self.captured = None
        return super().end(is_new)

    def close(self):
        for process in (self.source, self.captured):
            if process:
                process.end()
        for cable in self.cables:
            cable.remove()

    def expect_all_seen(self, view, traces):
        seen, _ = self.reports()[-1]
        traces.expect(seen == self.sent, f"{self.sent} packets were sent, and the chain has received {seen}; drops of its "
                                         f"port at the end: {view['rx']['drops']}")


def longest_gap_ms(path):
    """Of the packets that left. dumpcap's stamps have microseconds where read_capture() reads nanoseconds."""
    stamps = [stamp // NS * 1_000_000 + stamp % NS for stamp, _ in read_capture(path)]
    return max((after - before for before, after in zip(stamps, stamps[1:])), default=0) / 1000


def check_packets(run, traces):
    """Each packet that was sent has left once, or is a drop of the NF; flows keep their order, and their translation."""
    nf = run.nf
    passing = {flow for flow in range(FLOWS) if nf.verdict(flow) != "drop"}
    wanted = sum(len(range(flow, run.sent, FLOWS)) for flow in passing)
    last = {flow: flow - FLOWS for flow in passing}
    outputs = collections.defaultdict(set)
    left = 0
    for _, data in read_capture(run.capture()):
        number = NUMBER.unpack_from(data, len(data) - NUMBER.size)[0]
        flow = number % FLOWS
        after = Frame(data)
        left += 1
        # the next one of its flow: none is lost, doubled or late
        traces.expect(last.get(flow) == number - FLOWS, f"packet {number} of flow {flow} after {last.get(flow)}")
        last[flow] = number
        if after.ends() not in outputs[flow]:
            traces.expect(nf.translates(run.flows[flow], after), f"packet {number} is wrong: {after.ends()}")
            outputs[flow].add(after.ends())
    traces.expect(left == wanted, f"{wanted} packets are to leave, and {left} have left")
    nf.check_flows(outputs, traces)


def check_esp(run, traces):
    """Each packet that was sent has left once, with the next number of its association."""
    last = collections.Counter()
    for _, data in read_capture(run.capture()):
        spi, number = ESP_HEADERS.unpack_from(data, AT_ESP)
        traces.expect(number == last[spi] + 1, f"SPI {spi}: number {number} after {last[spi]}")
        last[spi] = number
    traces.expect(sum(last.values()) == run.sent, f"{run.sent} packets were sent, and {sum(last.values())} have left")


def check_flow_records(run, traces):
    """The exports count each packet that was sent once."""
    counted = collections.Counter()
    for line in (run.folder / "flows.jsonl").read_text().splitlines():
        flow = json.loads(line)
        counted[flow["src"], flow["sport"], flow["protocol"]] += flow["packets"]
    wanted = {(address(flow.source), flow.source_port, flow.protocol): len(range(number, run.sent, FLOWS))
              for number, flow in enumerate(run.flows)}
    wrong = [key for key in wanted | counted if wanted.get(key, 0) != counted[key]]
    traces.expect(not wrong, f"exports of {len(wrong)} flows are wrong, {wrong[:1]} first")


def observe(run, traces):
    """As matrix_run.observe()."""
    run.start()
    dry, applied = run.change(traces)
    view = run.end(is_new=applied[0] == 200 and applied[1]["why_packets_are_lost"] is not None)
    traces.expect(view["accounted"], "the report does not add up")
    run.expect_all_seen(view, traces)
    (check_esp if run.cell.nf == "ipsec" else check_packets)(run, traces)
    if run.cell.nf == "monitor":
        check_flow_records(run, traces)
    outcome, detail = outcome_of(run, traces, dry, applied)
    return outcome, "; ".join(filter(None, [detail, f"longest gap {longest_gap_ms(run.capture()):.0f} ms"]))


def run_live_cells(cells, rate=RATE):
    """(cell, expected, outcome) of each, one after another: each has the machine to itself."""
    with tempfile.TemporaryDirectory(prefix="live", dir="/tmp") as scratch:
        folder = pathlib.Path(scratch)
        folder.chmod(0o755)
        read_flows(folder)
        frames = [data for _, data in read_capture(folder / "flows.pcap")]
        service = Service(folder)
        try:
            for number, cell in enumerate(cells):
                started = time.monotonic()
                run = LiveRun(service, folder / f"cell{number}", cell, number, frames, rate)
                try:
                    outcome, detail = observe(run, Traces())
                except (AssertionError, KeyError, OSError, ValueError) as error:
                    outcome, detail = "failed", f"{type(error).__name__}: {error}"
                    service.ask("DELETE", f"/v1/chains/{run.name}")
                finally:
                    run.close()
                yield cell, matrix.expected(cell), Outcome(outcome, detail, time.monotonic() - started)
            if service.end() != 0:
                raise AssertionError(service.log()[-2000:])
        finally:
            service.process.kill()
            service.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=int, default=RATE)
    parser.add_argument("words", nargs="*")
    arguments = parser.parse_args()
    reason = reason_for_none()
    if reason:
        sys.exit(f"no live ports here: {reason}")
    cells = [cell for cell in matrix.live_cells() if all(word in str(cell) for word in arguments.words)]
    others = 0
    for cell, expected, outcome in run_live_cells(cells, arguments.rate):
        is_other = outcome.outcome != expected.outcome
        others += is_other
        print(f"{cell}: {outcome} [{outcome.seconds:.1f} s]{'  NOT AS EXPECTED' if is_other else ''}", flush=True)
    print(f"{len(cells)} cells at live ports, {arguments.rate} packets a second: {others} not as expected")
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main())
