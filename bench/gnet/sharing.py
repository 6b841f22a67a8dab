#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to have the GPU in a process of its own, and how several chains share it.

    bench/gnet/sharing.py --catena PROGRAM --out FILE.json [--repeats 5] [--seconds 3] [--parts one,three] [--sizes 64,512]

one    a chain of four NFs on the GPU (firewall, IPsec, intrusion detection, router: S_d of G-NET, encrypting), as
       `catena run` has it, and with `--device-server`; as fast as it goes, and at a fixed rate
three  three such chains at a time: a process each, which the GPU serves by turns; a process each under NVIDIA MPS, where
       that is there, with all of the GPU for each and with a third of its threads; and in one `catena serve`, their NFs
       in its process, and each in a process of its own, as a service has them by default
ways   two such chains in one `catena serve`: their NFs in the chain's process, and each in a process of its own, which
       share the GPU as nobody says, and as each `--share` says; what NFs cost is measured before
The ways take turns within each repeat. What is in FILE.json already, of the same commit, is not measured again;
tools/render-bench makes a page of it. Throughput is that of a window after the first second. Latency is that of the
whole run and of the worst chain.
"""

import argparse
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from common.catena_run import CatenaRun, check_load, measure_together  # noqa: E402
from common.results import Cores, Results, add_options  # noqa: E402

DATA = ROOT / "examples" / "branch-office"
CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: {name}}}
spec:
  rx: {{replay: {{packet: {frame}, flows: 1024, rate: {rate}}}}}
  tx: null
  device: {device}
  nfs:
    - {{name: fw, type: firewall, on: gpu, isolation: {isolation}, config: {{rules: {data}/fw.rules, default: allow}}}}
    - {{name: vpn, type: ipsec, on: gpu, isolation: {isolation}, config: {{direction: encrypt, sa: {data}/sa.yaml}}}}
    - name: ids
      type: nids
      on: gpu
      isolation: {isolation}
      config: {{rules: {data}/ids.rules, variables: {{HOME_NET: 10.0.0.0/24}}}}
    - {{name: rt, type: router, on: gpu, isolation: {isolation}, config: {{routes: {data}/routes.txt}}}}
"""
FCS_BYTES = 4
WARM_UP_S = 1  # lines of the first second do not count
RATE = 1_000_000  # packets a second of each chain, where they are offered at a rate
VALUES = ("packets_per_s", "process_cores", "p50_us", "p95_us")  # of a way


class Bench:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder

    def chain_file(self, name, size, rate, isolation="none"):
        path = self.folder / f"{name}.yaml"
        path.write_text(CHAIN.format(name=name, frame=size - FCS_BYTES, rate=rate, device=self.arguments.device,
                                     isolation=isolation, data=DATA))
        return str(path)

    def run_processes(self, count, size, rate, workers, *words, env=None):
        """(packets per second of all, cores that they took, p50 in us of the worst, p95) of so many processes at a time."""
        runs = []
        for number in range(count):
            words_of_one = [self.arguments.catena, "run", self.chain_file(f"c{number}", size, rate),
                            "--json", "--workers", str(workers), *words]
            runs.append(CatenaRun(words_of_one, env))
        for run in runs:
            run.wait_for_lines(1 + WARM_UP_S)
        received_per_s, taken = measure_together(runs, self.arguments.seconds)
        for run in runs:
            run.process.send_signal(signal.SIGINT)
        reports = [run.report()[0] for run in runs]
        check(reports)
        check_load(received_per_s, count * rate)
        return (received_per_s, taken, *worst_latency(reports))

    def profile_nfs(self):
        """So that `--share scheduled` knows what the NFs cost."""
        subprocess.run([self.arguments.catena, "profile", "--nf", self.chain_file("profiled", 512, 0), "--device",
                        self.arguments.device, "--seconds", "60"], check=True)

    def run_service(self, count, size, rate, workers, *words, isolation="none"):
        path = str(self.folder / "s")
        with open(self.folder / "serve.log", "ab") as log:
            service = subprocess.Popen([self.arguments.catena, "serve", "--socket", path, "--state",
                                        str(self.folder / "state"), *words], stdout=log, stderr=log)
        try:
            wait_until(lambda: os.path.exists(path) and ask(path, "GET", "/v1/version"))
            for number in range(count):
                ask(path, "POST", "/v1/chains", {"file": self.chain_file(f"c{number}", size, rate, isolation),
                                                 "options": {"workers": workers}})
            time.sleep(1 + WARM_UP_S)
            cores = Cores([service.pid])
            before = [ask(path, "GET", f"/v1/chains/c{number}") for number in range(count)]
            time.sleep(self.arguments.seconds)
            after = [ask(path, "GET", f"/v1/chains/c{number}") for number in range(count)]
            taken = cores.taken()
            check(after)
            packets = sum((b["rx"]["received_packets"] - a["rx"]["received_packets"]) / (b["seconds"] - a["seconds"])
                          for a, b in zip(before, after))
            check_load(packets, count * rate)
            for number in range(count):
                ask(path, "DELETE", f"/v1/chains/c{number}")
            return (packets, taken, *worst_latency(after))
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(60)

    def run_under_mps(self, count, size, rate, workers, percent):
        env = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(self.folder / "mps"),
               "CUDA_MPS_LOG_DIRECTORY": str(self.folder / "mps-log")}
        if percent < 100:
            env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(percent)
        for name in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
            os.makedirs(env[name], exist_ok=True)
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=env, check=True)
        try:
            return self.run_processes(count, size, rate, workers, env=env)
        finally:
            subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=env, check=False)


def check(reports):
    for report in reports:
        if any(nf["on"] == "process" and nf["host_to_device_bytes_per_packet"] + nf["device_to_host_bytes_per_packet"] == 0
               for nf in report["nfs"]):
            raise RuntimeError("an NF in a process of its own that does not use the device")
        if report.get("error") or any(nf["on"] not in ("gpu", "process") or nf["kernel_faults"] for nf in report["nfs"]):
            raise RuntimeError(f"not what was to be measured: {report.get('error')}, {report.get('device')}")


def worst_latency(reports):
    return (max(report["latency_us"]["p50"] for report in reports),
            max(report["latency_us"]["p95"] for report in reports))


def wait_until(what):
    end = time.monotonic() + 60
    while not what():
        if time.monotonic() > end:
            raise RuntimeError("the service does not answer")
        time.sleep(0.02)


def ask(path, method, resource, body=None):
    connection = http.client.HTTPConnection("localhost", timeout=120)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.settimeout(120)
    connection.sock.connect(path)
    try:
        connection.request(method, resource, body=None if body is None else json.dumps(body))
        answer = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    if answer.get("error") and method != "GET":
        raise RuntimeError(answer["error"])
    return answer


def cells_of(bench, parts, sizes):
    """(key of the cell, [(way, what measures it)]) of each cell; `packets` of a key: offered to each chain a second, or 0"""
    def key(part, size, rate=0):
        return {"group": part, "wire_bytes": size, "packets": rate}
    loads = [(size, rate) for size, rate in ((64, 0), (512, 0), (512, RATE), (1518, 0)) if size in sizes]
    cells = []
    for size, rate in loads if "one" in parts else ():
        cells.append((key("one", size, rate), [
            ("in the process", lambda size=size, rate=rate: bench.run_processes(1, size, rate, 8)),
            ("device server", lambda size=size, rate=rate: bench.run_processes(1, size, rate, 8, "--device-server"))]))
    for size, rate in loads if "three" in parts else ():
        ways = [("processes by turns", lambda size=size, rate=rate: bench.run_processes(3, size, rate, 4))]
        if shutil.which("nvidia-cuda-mps-control"):
            ways.extend((name, lambda size=size, rate=rate, percent=percent:
                         bench.run_under_mps(3, size, rate, 4, percent))
                        for name, percent in (("processes under MPS", 100), ("under MPS, a third of the threads each", 33)))
        ways.extend((name, lambda size=size, rate=rate, isolation=isolation:
                     bench.run_service(3, size, rate, 4, isolation=isolation))
                    for name, isolation in (("catena serve, NFs in its process", "none"),
                                            ("catena serve, each NF in a process", "process")))
        cells.append((key("three", size, rate), ways))
    if "ways" in parts:
        bench.profile_nfs()
        for size in sizes:
            def way(isolation, *words, size=size):
                return lambda: bench.run_service(2, size, 0, 4, *words, isolation=isolation)
            cells.append((key("ways", size), [
                ("chain's process", way("none")),
                ("processes", way("process")),
                *((f"processes, --share {mode}", way("process", "--share", mode))
                  for mode in ("uncoordinated", "fair", "scheduled")),
                ("chain's process, --share scheduled", way("none", "--share", "scheduled"))]))
    return cells


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--catena", default=str(ROOT / "build" / "src" / "apps" / "catena" / "catena"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--parts", default="one,three")
    parser.add_argument("--sizes", default="64,512,1518", help="of frames, with FCS")
    add_options(parser, seconds=3)
    arguments = parser.parse_args()
    results = Results("sharing", arguments, {"warm_up_s": WARM_UP_S})
    with tempfile.TemporaryDirectory(prefix="sharing") as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        sizes = [int(size) for size in arguments.sizes.split(",")]
        for key, ways in cells_of(bench, arguments.parts.split(","), sizes):
            results.measure(key, [(way, lambda work=work: dict(zip(VALUES, work()))) for way, work in ways])
    return results.exit_status()


if __name__ == "__main__":
    sys.exit(main())
