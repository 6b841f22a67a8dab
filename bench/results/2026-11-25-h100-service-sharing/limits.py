#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What limits NFs in processes of their own: limits.py CATENA DEVICE SECONDS_IN_ALL CASE..., a case is CHAINS:PLACE:ISOLATION:FRAME:WORKERS"""
import http.client, json, os, pathlib, re, signal, socket, subprocess, sys, tempfile, time, types
sys.path.insert(0, "bench/gnet")
import sharing as s
catena, device, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
BEGIN = time.monotonic()
TICK = os.sysconf("SC_CLK_TCK")

def below(pid):
    found = []
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *below(child)]
    except OSError:
        pass  # a thread that ended
    return found

def cpu_of(pids):
    times = {}
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            try:
                name, rest = (task / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
                fields = rest.split()
                times[int(pid), int(task.name)] = (name, int(fields[11]), int(fields[12]))
            except OSError:
                pass
    return times

def metrics(path):
    connection = http.client.HTTPConnection("localhost", timeout=60)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.connect(path)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    return {m[1]: float(m[2]) for m in re.finditer(r"^(catena_\S+) (\S+)$", text, re.M)}

def measure(chains, place, isolation, size, workers, folder):
    bench = s.Bench(types.SimpleNamespace(device=device if place == "gpu" else "none"), folder)
    path = str(folder / "s")
    with open(folder / "serve.log", "ab") as log:
        service = subprocess.Popen([catena, "serve", "--socket", path, "--state", str(folder / "state")], stdout=log, stderr=log)
    try:
        s.wait_until(lambda: os.path.exists(path) and s.ask(path, "GET", "/v1/version"))
        for number in range(chains):
            file = pathlib.Path(bench.chain_file(f"c{number}", size, 0, isolation))
            file.write_text(file.read_text().replace("on: gpu", f"on: {place}"))
            s.ask(path, "POST", "/v1/chains", {"file": str(file), "options": {"workers": workers, "new_keys": True}})
        time.sleep(1.2)
        def look():
            return time.monotonic(), metrics(path), cpu_of([service.pid, *below(service.pid)])
        t0, m0, c0 = look()
        time.sleep(1)
        t1, m1, c1 = look()
        reports = [s.ask(path, "GET", f"/v1/chains/c{n}") for n in range(chains)]
        dt = t1 - t0
        rate = {k: (m1[k] - m0.get(k, 0)) / dt for k in m1}
        got = sum(v for k, v in rate.items() if k.startswith("catena_rx_packets_total"))
        print(f"== {chains} chains, {place}, isolation {isolation}, {size} B, {workers} workers a chain: {got / 1e6:.2f} Mpps", *(r.get("error") or "" for r in reports))
        for nf in reports[0]["nfs"]:
            mine = {k.split("{")[0]: v for k, v in rate.items() if f'nf="{nf["name"]}"' in k and 'chain="c0"' in k and "dropped" not in k and "direction" not in k}
            packets = mine.get("catena_nf_packets_total") or 1
            print(f'  {nf["name"]:4} on {nf["on"]}: of its packets on the device {mine.get("catena_nf_device_packets_total", 0) / packets:.3f}, '
                  f'h2d {nf["host_to_device_bytes_per_packet"]:.0f} d2h {nf["device_to_host_bytes_per_packet"]:.0f} B/packet, restarts {nf["process_restarts"]} {nf["device_error"]}')
        stages = {(re.search('stage="([^"]*)"', k) or [0, "?"])[1]: v for k, v in rate.items() if k.startswith("catena_stage_busy") and 'chain="c0"' in k}
        print("  stages of c0, busy: " + ", ".join(f"{k} {v * 100:.0f} %" for k, v in stages.items()))
        used = {}
        names = {pid: (pathlib.Path(f"/proc/{pid}/comm").read_text().strip()) for pid in {p for p, _ in c1}}
        for (pid, task), (name, user, kernel) in c1.items():
            _, u0, k0 = c0.get((pid, task), (name, 0, 0))
            used.setdefault((names[pid], pid), []).append((name, (user - u0) / TICK / dt * 100, (kernel - k0) / TICK / dt * 100))
        total = 0
        for (name, pid), threads in sorted(used.items(), key=lambda x: x[0][1]):
            total += sum(u + k for _, u, k in threads)
            busy = sorted(((u + k, u, k) for _, u, k in threads if u + k >= 3), reverse=True)
            if busy:
                print(f"  {name}: " + " ".join(f"{u:.0f}+{k:.0f}" for _, u, k in busy))
        print(f"  cores in use: {total / 100:.1f}; p50 {max(r['latency_us']['p50'] for r in reports):.0f} us; +{time.monotonic() - BEGIN:.0f} s", flush=True)
    finally:
        service.send_signal(signal.SIGTERM)
        try:
            service.wait(15)
        except subprocess.TimeoutExpired:
            service.kill()

for case in sys.argv[4:]:
    if time.monotonic() - BEGIN > limit:
        print("no time for", case); continue
    chains, place, isolation, size, workers = case.split(":")
    with tempfile.TemporaryDirectory(prefix="lim", dir="/tmp") as folder:
        try:
            measure(int(chains), place, isolation, int(size), int(workers), pathlib.Path(folder))
        except Exception as error:
            print("==", case, "failed:", error, flush=True)
            print((pathlib.Path(folder) / "serve.log").read_text()[-1500:])
