#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that a run reads and writes: which may be the same, what becomes of them, FIFOs and standard streams.

CATENA_BIN names the program, CATENA_DATA the folder tests/data/chain.
"""

import json
import os
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import unittest

BIN = os.environ["CATENA_BIN"]
DATA = os.environ["CATENA_DATA"]
TIMEOUT_S = 120

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: files}}
spec:
  rx: {rx}
  tx: {tx}
  device: {device}
{more}  nfs: {nfs}
"""
NIDS = "[{{name: ids, type: nids, on: gpu, config: {{rules: {}/ids.rules}}}}]".format(DATA)
FIREWALL = "[{{name: fw, type: firewall, config: {{rules: {}/fw.rules, default: allow}}}}]".format(DATA)


def udp_frame(number, payload_bytes):
    """Ethernet, IPv4 and UDP with zero checksums; the payload tells frames apart."""
    payload = struct.pack(">I", number) + b"x" * (payload_bytes - 4)
    udp = struct.pack(">HHHH", 1000 + number % 50, 53, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([10, 0, 0, 1]), bytes([192, 0, 2, 1]))
    return bytes(12) + b"\x08\x00" + ip + udp


def pcap(frames, stamps_us=None):
    """A capture with stamps in microseconds."""
    text = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for number, frame in enumerate(frames):
        stamp = stamps_us[number] if stamps_us else 1_000_000 * number
        text += struct.pack("<IIII", stamp // 1_000_000, stamp % 1_000_000, len(frame), len(frame)) + frame
    return text


def frames_of(text):
    """[(stamp in ns, frame)] of a capture as catena writes it."""
    magic, = struct.unpack_from("<I", text)
    assert magic == 0xA1B23C4D, hex(magic)
    at = 24
    frames = []
    while at < len(text):
        seconds, nanoseconds, captured, _ = struct.unpack_from("<IIII", text, at)
        frames.append((seconds * 1_000_000_000 + nanoseconds, text[at + 16:at + 16 + captured]))
        at += 16 + captured
    return frames


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.env = {**os.environ, "CATENA_DATA_DIR": self.path("data")}
        self.frames = [udp_frame(number, 20 + number % 900) for number in range(2000)]
        self.write("in.pcap", pcap(self.frames))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def chain(self, rx="{pcap: in.pcap}", tx="{pcap: out.pcap}", device="none", nfs="[]", more=""):
        self.write("chain.yaml", CHAIN.format(rx=rx, tx=tx, device=device, nfs=nfs, more=more).encode())
        return self.path("chain.yaml")

    def catena(self, *arguments, **options):
        return subprocess.run([BIN, *arguments], capture_output=True, timeout=TIMEOUT_S, check=False, env=self.env,
                              **options)

    # ---- what the system refuses to write

    def test_a_file_that_may_not_grow_is_an_error_of_its_writer_and_not_a_signal(self):
        """RLIMIT_FSIZE (`ulimit -f`, LimitFSIZE= of a unit): the system's SIGXFSZ ends a process that does not ignore it."""
        flows = "[{{name: mon, type: monitor, config: {{max_flows: 5000, export: [{{format: {}, file: flows}}]}}}}]"
        for outputs, nfs in ((["--tx", "pcap:out.pcap"], "[]"),
                             (["--tx", "null", "--record", self.path("record")], FIREWALL),
                             (["--tx", "null", "--eve", self.path("eve")], NIDS.replace("on: gpu, ", "")),
                             (["--tx", "null", "--trace", self.path("trace")], FIREWALL),
                             (["--tx", "null"], flows.format("json")), (["--tx", "null"], flows.format("ipfix"))):
            chain = self.chain(nfs=nfs)
            self.assertEqual(self.catena("run", chain, *outputs, cwd=self.folder).returncode, 0, outputs)
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            result = self.catena("run", chain, *outputs, cwd=self.folder,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit)))
            self.assertEqual(result.returncode, 1, (outputs, result.stderr))
            self.assertIn(b"File too large", result.stderr)

    # ---- which may be the same

    def refused(self, words, *arguments):
        """By check and by run, which leave every file as it was."""
        before = {name: self.read(name) for name in os.listdir(self.folder) if os.path.isfile(self.path(name))}
        for command in ("check", "run"):
            result = self.catena(command, *arguments)
            self.assertEqual(result.returncode, 1, (command, arguments, result.stderr))
            self.assertIn(words, result.stderr.decode())
        after = {name: self.read(name) for name in os.listdir(self.folder) if os.path.isfile(self.path(name))}
        self.assertEqual(before, after)

    def test_the_input_is_never_the_output(self):
        os.symlink("in.pcap", self.path("symlink.pcap"))
        os.link(self.path("in.pcap"), self.path("hardlink.pcap"))
        for name in ("in.pcap", "symlink.pcap", "hardlink.pcap"):
            chain = self.chain(tx=f"{{pcap: {name}}}")
            self.refused(f"chain.yaml:6:14: tx: {self.path(name)} would be overwritten: rx at {chain}:5:14 reads", chain)
            chain = self.chain()
            for option in ("--record", "--eve", "--trace"):
                self.refused(f"{option}: {self.path(name)} would be overwritten: rx at", chain, option, self.path(name))
            self.refused(f"--tx: {self.path(name)} would be overwritten", chain, "--tx", f"pcap:{self.path(name)}")

    def test_outputs_differ_and_are_no_files_of_the_chain(self):
        chain = self.chain(nfs=FIREWALL)
        self.refused("--record: out would be overwritten: --tx writes", chain, "--tx", "pcap:out", "--record", "out")
        self.refused("--trace: out would be overwritten: --record writes", chain, "--record", "out", "--trace", "out")
        self.refused("would be overwritten: the chain file reads", chain, "--record", chain)
        self.write("own.rules", b"deny tcp any any any 22\n")
        chain = self.chain(nfs="[{name: fw, type: firewall, config: {rules: own.rules, default: allow}}]")
        self.refused(f"would be overwritten: 'rules' at {chain}:8:52 reads", chain, "--trace", self.path("own.rules"))

    def test_outputs_of_the_file_are_those_of_options_and_are_named_from_its_folder(self):
        chain = self.chain(tx="null", nfs=FIREWALL, more="  outputs: {record: r, eve: e, trace: t}\n")
        self.assertEqual(self.catena("run", chain, cwd="/").returncode, 0)
        in_file = self.read("r")
        self.assertEqual(len(in_file.splitlines()), len(self.frames))
        self.assertEqual(self.read("e"), b"")
        self.assertIn("traceEvents", json.loads(self.read("t")))
        chain = self.chain(tx="null", nfs=FIREWALL)
        self.assertEqual(self.catena("run", chain, "--record", "by-option", cwd=self.folder).returncode, 0)
        self.assertEqual(self.read("by-option"), in_file)
        chain = self.chain(tx="null", nfs=FIREWALL, more="  outputs: {record: not-this}\n")
        self.assertEqual(self.catena("run", chain, "--record", "over", cwd=self.folder).returncode, 0)
        self.assertEqual(self.read("over"), in_file)
        self.assertFalse(os.path.exists(self.path("not-this")))

    def test_outputs_of_the_file_are_refused_at_their_place(self):
        for key in ("record", "eve", "trace"):
            chain = self.chain(more=f"  outputs: {{{key}: in.pcap}}\n")
            self.refused(f"{chain}:8:{15 + len(key)}: '{key}': {self.path('in.pcap')} would be overwritten: rx at", chain)
        chain = self.chain(tx="{pcap: out}", more="  outputs: {record: out}\n")
        self.refused(f"{chain}:8:21: 'record': {self.path('out')} would be overwritten: tx at {chain}:6:14 writes", chain)
        chain = self.chain(more="  outputs: {record: no/such/folder}\n")
        self.refused(f"{chain}:8:21: 'record': {self.path('no/such/folder')} cannot be written: no such folder", chain)

    def test_a_file_that_an_nf_writes_is_no_other_file(self):
        monitor = "[{{name: mon, type: monitor, config: {{export: [{{format: json, file: {}}}]}}}}]"
        self.refused("'file': " + self.path("in.pcap") + " would be overwritten: rx at",
                     self.chain(nfs=monitor.format("in.pcap")))
        self.refused("would be overwritten: 'file' at", self.chain(tx="{pcap: flows}", nfs=monitor.format("flows")))

    def test_an_output_that_cannot_be_is_said_by_check(self):
        self.refused(f"chain.yaml:6:14: tx: {self.path('no/out.pcap')} cannot be written: no such folder: "
                     f"{self.path('no')}; create it first", self.chain(tx="{pcap: no/out.pcap}"))
        self.refused("--record: /no/such/record cannot be written", self.chain(), "--record", "/no/such/record")
        self.refused(f"tx: {self.folder}/ is a folder", self.chain(tx="{pcap: .}"))

    def test_a_run_that_cannot_start_leaves_outputs_as_they_were(self):
        for name in ("out.pcap", "record", "trace"):
            self.write(name, b"of yesterday")
        self.write("bad.pcap", b"this is no capture at all")
        outputs = ("--record", self.path("record"), "--trace", self.path("trace"))
        self.refused("not a pcap or pcapng capture", self.chain(rx="{pcap: bad.pcap}"), *outputs)
        if not os.path.exists("/dev/nvidiactl"):
            result = self.catena("run", self.chain(nfs=NIDS), "--device", "cuda", *outputs)
            self.assertEqual(result.returncode, 1)
        for name in ("out.pcap", "record", "trace"):
            self.assertEqual(self.read(name), b"of yesterday")

    # ---- numbers and stamps

    def test_packets_have_the_numbers_and_stamps_of_the_capture(self):
        stamps = [1_700_000_000_000_000 + 17 * number for number in range(300)]
        frames = [bytes(3000) if number % 7 in (0, 3) else udp_frame(number, 40) for number in range(300)]
        self.write("in.pcap", pcap(frames, stamps))
        kept = [number for number in range(300) if number % 7 not in (0, 3)]
        for workers in ("1", "3"):
            if os.path.exists(self.path("record")):  # lines are appended
                os.unlink(self.path("record"))
            result = self.catena("run", self.chain(nfs=FIREWALL), "--json", "--record", self.path("record"), "--workers", workers)
            self.assertEqual(result.returncode, 0, result.stderr)
            report = json.loads(result.stdout)
            self.assertEqual(report["rx"]["drops"], {"too_long": 300 - len(kept)})
            self.assertTrue(report["accounted"])
            lines = [json.loads(line) for line in self.read("record").splitlines()]
            self.assertEqual([line["packet"] for line in lines], kept)
            self.assertEqual(frames_of(self.read("out.pcap")), [(1000 * stamps[number], frames[number]) for number in kept])

    # ---- streams

    def feed(self, fifo, data, pieces=7):
        """Writes `data` in pieces that do not end where frames do; returns the thread."""
        def work():
            with open(fifo, "wb", buffering=0) as file:
                step = len(data) // pieces + 1
                for at in range(0, len(data), step):
                    file.write(data[at:at + step])
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self.addCleanup(thread.join, TIMEOUT_S)
        return thread

    def test_a_fifo_is_read_as_the_file_is_also_with_an_nf_on_a_device(self):
        data = self.read("in.pcap")
        self.assertEqual(self.catena("run", self.chain(nfs=NIDS)).returncode, 0)
        expected = self.read("out.pcap")
        os.mkfifo(self.path("fifo"))
        for device in ("none", "opencl"):
            chain = self.chain(rx="{pcap: fifo}", nfs=NIDS, device=device)
            check = self.catena("check", chain)
            self.assertEqual(check.returncode, 0, check.stderr)
            self.feed(self.path("fifo"), data)
            result = self.catena("run", chain)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.read("out.pcap"), expected)
            self.assertEqual(b"for a simple IMIX" in result.stderr, device == "opencl", result.stderr)

    def test_standard_input_and_output_are_captures(self):
        self.assertEqual(self.catena("run", self.chain(nfs=FIREWALL)).returncode, 0)
        expected = self.read("out.pcap")
        for ports, options in (({}, ("--rx", "pcap:-", "--tx", "pcap:-")),
                               ({"rx": '{pcap: "-"}', "tx": '{pcap: "-"}'}, ())):
            chain = self.chain(nfs=FIREWALL, **ports)
            result = self.catena("run", chain, *options, input=self.read("in.pcap"))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout, expected)
            self.assertIn(b"account   2000 in", result.stderr)
        report = self.catena("run", chain, "--json", input=self.read("in.pcap"))
        self.assertEqual(report.stdout, expected)

    def test_lines_may_go_to_standard_output_of_one_kind(self):
        chain = self.chain(tx="null", nfs=FIREWALL)
        result = self.catena("run", chain, "--record", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([json.loads(line)["packet"] for line in result.stdout.splitlines()], list(range(2000)))
        self.assertIn(b"account   2000 in", result.stderr)
        self.refused("--record: - would be overwritten: --tx writes", chain, "--tx", "pcap:-", "--record", "-")

    def test_what_a_shell_opened_for_standard_output_is_not_emptied(self):
        chain = self.chain(nfs=FIREWALL)
        log = self.path("log.jsonl")
        self.write("log.jsonl", b"a line from before\n")
        for _ in range(2):
            with open(log, "ab") as end:
                subprocess.run([BIN, "run", chain, "-q", "--tx", "null", "--record", "-"], stdout=end, env=self.env,
                               stderr=subprocess.DEVNULL, timeout=TIMEOUT_S, check=True)
        with open(log, "rb") as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[0], b"a line from before")
        self.assertEqual(len(lines), 1 + 2 * len(self.frames))
        self.assertEqual({json.loads(line)["nf"] for line in lines[1:]}, {"fw"})

    def test_standard_output_is_known_by_its_other_names(self):
        chain = self.chain(nfs=FIREWALL)
        self.assertEqual(self.catena("run", chain).returncode, 0)
        done = self.catena("run", chain, "--tx", "pcap:/dev/stdout")
        self.assertEqual(done.stdout, self.read("out.pcap"))
        self.assertIn(b"account", done.stderr)
        for other in ("/dev/stdout", "/proc/self/fd/1", self.path("both")):
            with open(self.path("both"), "wb") as both:
                done = subprocess.run([BIN, "run", chain, "-q", "--tx", "pcap:-", "--record", other], stdout=both,
                                      stderr=subprocess.PIPE, env=self.env, text=True, timeout=TIMEOUT_S, check=False)
            self.assertEqual(done.returncode, 1, other)
            self.assertIn("--record", done.stderr)

    def test_standard_output_that_cannot_be_written_is_a_failure(self):
        for words in (("run", self.chain(nfs=FIREWALL), "-q", "--tx", "null"), ("show", "schema"), ("completion", "bash"),
                      ("doctor", "--json"), ("check", self.chain(nfs=FIREWALL), "--json")):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([BIN, *words], stdout=full, stderr=subprocess.PIPE, env=self.env, text=True,
                                      timeout=TIMEOUT_S, check=False)
            self.assertEqual(done.returncode, 1, words)
            self.assertIn("catena: standard output cannot be written", done.stderr)

    def test_errors_stay_out_of_packets_on_standard_output(self):
        done = subprocess.run([BIN, "run", self.chain(nfs=FIREWALL), "--json", "--rx", "pcap:nope.pcap", "--tx", "pcap:-"],
                              capture_output=True, env=self.env, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn('"ok": false', done.stderr)

    def test_a_socket_by_its_name_is_no_file(self):
        bound = socket.socket(socket.AF_UNIX)
        self.addCleanup(bound.close)
        bound.bind(self.path("s.sock"))
        bound.listen()
        for option in ("--rx", "--tx", "--record"):
            name = self.path("s.sock") if option == "--record" else "pcap:" + self.path("s.sock")
            done = self.catena("run", self.chain(nfs=FIREWALL), option, name)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"s.sock is a socket", done.stderr)
            self.assertIn(b"FIFO", done.stderr)

    def test_a_fifo_that_brings_no_capture_or_breaks_off_is_said(self):
        os.mkfifo(self.path("fifo"))
        self.write("out.pcap", b"of yesterday")
        chain = self.chain(rx="{pcap: fifo}")
        self.feed(self.path("fifo"), b"this is no capture at all", 1)
        result = self.catena("run", chain)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"fifo: not a pcap or pcapng capture", result.stderr)
        self.assertEqual(self.read("out.pcap"), b"of yesterday")
        self.feed(self.path("fifo"), self.read("in.pcap")[:-5])
        result = self.catena("run", chain)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"fifo: frame 2000 cannot be read", result.stderr)
        self.assertEqual(len(frames_of(self.read("out.pcap"))), 1999)

    def test_a_fifo_whose_writer_says_nothing_holds_up_neither_packets_nor_the_end(self):
        os.mkfifo(self.path("fifo"))
        for workers in ("1", "2"):
            process = subprocess.Popen([BIN, "run", self.chain(rx="{pcap: fifo}", tx="null"), "--json", "--workers", workers],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)
            try:
                with open(self.path("fifo"), "wb", buffering=0) as fifo:
                    # whole frames, half of one, and then nothing
                    fifo.write(pcap(self.frames[:20])[:-30])
                    line = ""
                    while f"sent {19:>12}" not in line:
                        line = process.stderr.readline()
                        self.assertIsNone(process.poll())
                    process.send_signal(signal.SIGINT)
                    output, _ = process.communicate(timeout=TIMEOUT_S)
            finally:
                process.kill()
                process.wait()
            self.assertEqual(process.returncode, 0)
            self.assertEqual(json.loads(output)["tx"]["sent_packets"], 19)

    def test_a_reader_gets_packets_while_more_are_waited_for(self):
        for name in ("in", "out"):
            os.mkfifo(self.path(name))
        process = subprocess.Popen([BIN, "run", self.chain(rx="{pcap: in}", tx="{pcap: out}"), "-q"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)
        try:
            with open(self.path("in"), "wb", buffering=0) as fifo:
                fifo.write(pcap(self.frames[:20]))
                # before that nobody reads what the run writes
                while f"waiting for a reader of {self.path('out')}" not in (line := process.stderr.readline()):
                    self.assertIn("waiting for a capture", line)
                with open(self.path("out"), "rb") as out:
                    text = out.read(24 + sum(16 + len(frame) for frame in self.frames[:20]))
                    fifo.close()
                    self.assertEqual(out.read(), b"")
            self.assertEqual([frame for _, frame in frames_of(text)], self.frames[:20])
            process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
        self.assertEqual(process.returncode, 0)

    def test_what_can_be_read_once_is_not_replayed(self):
        os.mkfifo(self.path("fifo"))
        result = self.catena("check", self.chain(rx="{pcap: fifo, loops: 2}"))
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"'loops' is 2, but", result.stderr)


if __name__ == "__main__":
    unittest.main()
