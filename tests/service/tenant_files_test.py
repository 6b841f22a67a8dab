#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that a hostile tenant names: the service opens those that are the tenant's to read, and nothing of its own.
What it reads of them has a bound.
"""

import ctypes
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import unittest

from command import HAS_PROCESSES, NO_PROCESSES
from frames import capture, datagram
from harness import DATA, TenantTest, firewall, wait_for

PAYLOAD = "6,543.21 to account 0815 of the bank"
REFUSED = "only root may name"
MIB = 1 << 20


def exchange(one, other):
    """Exchanges two names in one step."""
    libc = ctypes.CDLL(None, use_errno=True)
    here, flag = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if libc.renameat2(here, str(one).encode(), here, str(other).encode(), flag) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


# A request looks at the name several times: some must find one file alone, some both. The pauses, of 0.1 ms to 1 s, are
# as often short as long, so that there are both kinds however fast the machine is.
EXCHANGES = """
import random, sys, tenant_files_test, time
print("begun", flush=True)
while True:
    tenant_files_test.exchange(sys.argv[1], sys.argv[2])
    time.sleep(10 ** random.uniform(-4, 0))
"""


class FilesTest(TenantTest):
    def descriptors(self):
        """What the service has open: {number: what the kernel calls it}."""
        folder = f"/proc/{self.service.process.pid}/fd"
        found = {}
        for number in os.listdir(folder):
            try:
                found[int(number)] = os.readlink(f"{folder}/{number}")
            except FileNotFoundError:
                pass  # it was closed meanwhile
        return found

    def memories(self):
        """Those with packets first."""
        found = [(number, name) for number, name in self.descriptors().items() if name.startswith("/memfd:")]
        return dict(sorted(found, key=lambda each: "catena_" not in each[1]))

    def run_victims_chain(self):
        """The victim's packets are in memory, and wait for more."""
        fifo = self.victim.fifo("rx")
        writer = os.open(fifo, os.O_RDWR)  # does not wait for a reader
        self.addCleanup(os.close, writer)
        os.write(writer, capture([datagram(PAYLOAD.encode() + b"%d" % number) for number in range(64)]))
        nfs = f"[{self.victim.vendor_nf()}]" if HAS_PROCESSES else "[]"
        self.victim.applied(self.victim.chain("v", rx=f"{{pcap: {fifo}}}", nfs=nfs))
        wait_for(lambda: self.victim.get("v")["tx"]["sent_packets"] == 64)

    def link(self, target):
        """A link of the attacker's; its path."""
        path = self.attacker.folder / f"link{len(os.listdir(self.attacker.folder))}"
        os.symlink(target, path)
        os.lchown(path, self.attacker.uid, self.attacker.uid)
        return str(path)

    def refuse(self, file, **options):
        status, answer = self.attacker.apply(file, **options)
        self.assertEqual(status, 403, answer)
        self.assertIn(REFUSED, answer["error"])
        self.assertNotIn("memfd", answer["error"])  # nor where it leads
        self.assertEqual(self.attacker.ask("GET", "/v1/chains")[1]["chains"], [])


class Names(FilesTest):
    def setUp(self):
        super().setUp()
        self.run_victims_chain()
        memory = next(number for number, name in self.memories().items() if "catena_packets" in name)
        self.names = ["/proc/self/maps", self.link("/proc/self/maps"), f"/proc/self/fd/{memory}",
                      self.link(f"/proc/self/fd/{memory}"), self.link("/dev/fd") + f"/{memory}",
                      self.link(f"/proc/{self.service.process.pid}/fd/{memory}")]

    def test_memory_is_the_services_alone(self):
        memories = self.memories()
        self.assertTrue(any("catena_packets" in name for name in memories.values()), memories)
        for number, name in memories.items():
            mode = os.stat(f"/proc/{self.service.process.pid}/fd/{number}").st_mode
            self.assertEqual(mode & 0o777, 0o600, name)

    def test_no_chain_file_is_in_the_process(self):
        for name in self.names:
            self.refuse(name)

    def test_no_file_that_an_nf_reads_is_in_the_process(self):
        for name in self.names:
            for nf in ("type: firewall, config: {rules: FILE, default: allow}", "type: nids, config: {rules: FILE}",
                       "type: nids, config: {strings: FILE}", "type: router, config: {routes: FILE}",
                       "type: ipsec, config: {direction: encrypt, sa: FILE}",
                       "type: firewall, isolation: none, config: {rules: FILE, default: allow}"):
                self.refuse(self.attacker.chain("a", nfs=f"[{{name: x, {nf.replace('FILE', name)}}}]"))

    def test_no_capture_key_or_profile_is_in_the_process(self):
        for name in self.names:
            self.refuse(self.attacker.chain("a", rx=f"{{pcap: {name}}}"))
            self.refuse(self.attacker.chain("a"), rx=f"pcap:{name}")
            self.refuse(self.attacker.chain("a"), profile=name)
            self.refuse(self.attacker.chain("a", more=f"  transfers: {{profile: {name}}}\n"))
            signals = f"  flow: {{signals: {{downstream: ['127.0.0.1:7400'], key: {name}}}}}\n"
            self.refuse(self.attacker.chain("a", tx="null", more=signals))

    def test_no_output_is_in_the_process(self):
        for name in self.names:
            self.refuse(self.attacker.chain("a", tx=f"{{pcap: {name}}}"))
            for option in ("record", "eve", "trace"):
                self.refuse(self.attacker.chain("a"), **{option: name})
                self.refuse(self.attacker.chain("a", more=f"  outputs: {{{option}: {name}}}\n"))
            monitor = f"[{{name: m, type: monitor, config: {{export: [{{format: json, file: {name}}}]}}}}]"
            self.refuse(self.attacker.chain("a", nfs=monitor))

    def test_nor_is_a_terminal_or_a_standard_stream(self):
        for name in ("/dev/stdin", "/dev/stdout", "/dev/ptmx"):
            for ends in ({"rx": f"{{pcap: {name}}}"}, {"tx": f"{{pcap: {name}}}"}):
                status, answer = self.attacker.apply(self.attacker.chain("a", **ends))
                self.assertIn(status, (400, 403), answer)

    def test_what_is_open_in_a_folder_that_is_closed_stays_there(self):
        """Its mode would allow it, and the way there does not."""
        path = pathlib.Path(self.victim.write("out.pcap", ""))
        self.victim.applied(self.victim.chain("w", tx=f"{{pcap: {path}}}"))
        path.chmod(0o666)
        number = next(number for number, name in self.descriptors().items() if name == str(path))
        size = path.stat().st_size
        for ends in ({"rx": f"{{pcap: {self.link(f'/proc/self/fd/{number}')}}}"},
                     {"tx": f"{{pcap: {self.link(f'/proc/self/fd/{number}')}}}"}):
            self.refuse(self.attacker.chain("a", **ends))
        self.assertGreaterEqual(path.stat().st_size, size)

    def test_links_of_a_tenant_work_elsewhere(self):
        rules = self.attacker.write("own.rules", pathlib.Path(f"{DATA}/fw.rules").read_text())
        frames = self.attacker.write("own.pcap", capture([datagram(b"x")] * 3))
        nfs = firewall(self.link(self.link(pathlib.Path(rules).name)))
        out = self.link(self.attacker.folder / "out.pcap")  # leads to what is not there yet
        file = self.link(self.attacker.chain("a", rx=f"{{pcap: {self.link(frames)}}}", tx=f"{{pcap: {out}}}", nfs=nfs))
        self.attacker.applied(file, record="/dev/null")
        wait_for(lambda: self.attacker.get("a")["state"] == "finished")
        self.assertEqual(self.attacker.get("a")["rx"]["received_packets"], 3)
        self.assertEqual(os.stat(self.attacker.folder / "out.pcap").st_uid, self.attacker.uid)

    def test_names_that_change_while_they_are_opened_give_nothing_away(self):
        for other in (self.names[1], self.names[3]):
            plain = self.attacker.write("plain.rules", pathlib.Path(f"{DATA}/fw.rules").read_text())
            file = self.attacker.chain("a", nfs=firewall(plain))
            changing = subprocess.Popen([sys.executable, "-c", EXCHANGES, plain, other], stdout=subprocess.PIPE,
                                        cwd=os.path.dirname(os.path.abspath(__file__)))
            self.addCleanup(changing.communicate)
            self.addCleanup(changing.kill)
            self.assertEqual(changing.stdout.readline(), b"begun\n")
            seen = {200: 0, 403: 0}
            while min(seen.values()) < 10 or sum(seen.values()) < 100:
                status, answer = self.attacker.ask("POST", "/v1/chains", {"file": file, "dry_run": True})
                if status == 400:
                    self.assertIn("cannot be read as a file", answer["error"])
                else:
                    self.assertIn(status, seen, answer)
                    seen[status] += 1
            changing.kill()
            changing.wait()
            os.unlink(plain)  # which of the two it is now, nobody knows


@unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
class Plugins(FilesTest):
    def search(self, files):
        return self.attacker.chain("a", nfs=f"[{self.attacker.hostile_nf(files=files, search=PAYLOAD)}]")

    def found(self, files):
        """In how many of the files the attacker's NF finds the victim's payload; None: it does not get them."""
        status, answer = self.attacker.apply(self.search(files))
        if status == 403:
            self.assertIn(REFUSED, answer["error"])
            self.assertNotIn("memfd", answer["error"])
            return None
        self.assertEqual(status, 201, answer)
        found = wait_for(lambda: self.attacker.get("a")["nfs"][0]["statistics"])["files_with_text"]
        self.assertEqual(self.attacker.delete("a")[0], 200)
        return found

    def test_an_nf_searches_no_memory_for_packets_of_others(self):
        loot = self.attacker.write("loot", f"... {PAYLOAD} ...")
        self.assertEqual(self.found([loot]), 1)  # were it shown, it would find it
        self.run_victims_chain()
        links = {number: self.link(f"/proc/self/fd/{number}") for number in range(3, 160)}
        memories = self.memories()
        self.assertGreaterEqual(len(memories), 2, memories)  # of the chain, and what its NF's process shares with it
        for number in memories:
            self.assertIsNone(self.found([links[number]]))
        self.assertIsNone(self.found(list(links.values())))

    def test_nor_anything_else_of_the_process(self):
        self.run_victims_chain()
        long = self.attacker.write("long", bytes(MIB))  # a sandbox takes files as long as the longest that it is shown
        for name in ("/proc/self/maps", "/proc/self/status", "/proc/self/mountinfo", "/proc/self/environ"):
            for file in (name, self.link(name)):
                self.assertIsNone(self.found([long, file]))

    def test_an_object_and_an_image_are_the_tenants(self):
        self.run_victims_chain()
        memory = next(iter(self.memories()))
        for name in (f"/proc/self/fd/{memory}", self.link(f"/proc/self/fd/{memory}"), "/proc/self/exe"):
            self.refuse(self.attacker.chain("a", nfs=f"[{{name: x, plugin: {name}, config: {{}}}}]"))
        for name in ("/proc/self/cwd", "/proc/self/root", self.link("/proc/self/cwd")):
            isolation = f"isolation: {{container: {name}}}"
            self.refuse(self.attacker.chain("a", nfs=f"[{{name: x, plugin: /x.so, {isolation}, config: {{}}}}]"))

    def test_what_an_nf_writes_is_the_tenants(self):
        self.run_victims_chain()
        plugin = self.attacker.copy(os.environ["CATENA_TALLY_NF"])
        memory = next(iter(self.memories()))
        for name in (f"/proc/self/fd/{memory}", self.link(f"/proc/self/fd/{memory}"), self.link("/proc/self/comm")):
            nf = f"{{name: x, plugin: {plugin}, writes: [{{file: {name}}}], config: {{file: {name}}}}}"
            self.refuse(self.attacker.chain("a", nfs=f"[{nf}]"))

    def test_no_reader_of_what_an_nf_writes_keeps_the_service_waiting(self):
        fifo = self.attacker.fifo()
        monitor = f"[{{name: m, type: monitor, isolation: none, config: {{export: [{{format: json, file: {fifo}}}]}}}}]"
        self.attacker.applied(self.attacker.chain("a", rx="{generator: {count: 100}}", nfs=monitor))
        wait_for(lambda: self.attacker.get("a")["state"] == "failed")
        self.assertIn("would wait for its reader", self.attacker.get("a")["error"])

    def test_an_image_that_is_exchanged_shows_no_folder_of_others(self):
        closed = self.folder / "closed"
        closed.mkdir(mode=0o700)
        (closed / "name-of-a-secret").write_text("x")
        image = self.attacker.folder / "image"
        (image / "opt").mkdir(parents=True)
        shutil.copy(os.environ["CATENA_HOSTILE_NF"], image / "opt" / "hostile.so")
        isolation = f"isolation: {{container: {image}}}"
        nf = f'{{name: x, plugin: /opt/hostile.so, {isolation}, config: {{compute: die}}}}'
        self.attacker.applied(self.attacker.chain("a", nfs=f"[{nf}]"))
        wait_for(lambda: self.attacker.get("a")["nfs"][0]["process_restarts"] > 0)
        exchange(image, self.link(closed))
        wait_for(lambda: "Permission denied" in self.service.log())
        self.assertNotIn("name-of-a-secret", self.service.log())


@unittest.skipUnless(HAS_PROCESSES, NO_PROCESSES)
class Sizes(FilesTest):
    def serve(self, *words, **popen):
        # what it must not read would else end this machine
        limit = 2048 * MIB
        return super().serve(*words, **popen,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))

    def read_bytes(self):
        io = pathlib.Path(f"/proc/{self.service.process.pid}/io").read_text()
        return int(io.split("rchar: ")[1].split("\n")[0])

    def peak_bytes(self):
        status = pathlib.Path(f"/proc/{self.service.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def sparse(self, tebibytes=1):
        path = self.attacker.write("big", "")
        os.truncate(path, tebibytes << 40)
        return path

    def test_a_file_of_an_nf_that_is_not_made_is_not_read(self):
        big = self.sparse()
        read, peak = self.read_bytes(), self.peak_bytes()
        status, answer = self.attacker.apply(
            self.attacker.chain("a", nfs=f"[{{name: x, plugin: /etc/passwd, config: {{f: {big}}}}}]"))
        self.assertEqual(status, 400, answer)
        self.assertIn("/etc/passwd", answer["error"])
        self.assertLess(self.read_bytes() - read, 64 * MIB)
        self.assertLess(self.peak_bytes() - peak, 256 * MIB)

    def test_of_one_that_is_made_no_more_is_read_than_a_bound(self):
        read, peak = self.read_bytes(), self.peak_bytes()
        file = self.attacker.chain("a", nfs=f"[{self.attacker.hostile_nf(compute=self.sparse())}]")
        for _ in range(2):  # made, and compared with what it was made of
            self.attacker.applied(file)
            wait_for(lambda: self.attacker.get("a")["tx"]["sent_packets"] > 0)
        self.assertLess(self.read_bytes() - read, 64 * MIB)
        self.assertLess(self.peak_bytes() - peak, 256 * MIB)

    def test_many_files_have_one_bound_and_are_not_held(self):
        names = []
        for number in range(13):
            names.append(self.attacker.write(f"big{number}", ""))
            os.truncate(names[-1], 60 * MIB)
        read, peak = self.read_bytes(), self.peak_bytes()
        nfs = [self.attacker.hostile_nf(files=names[:10]),
               self.attacker.hostile_nf("other", create=names[10], compute=names[11], finish=names[12])]
        self.attacker.applied(self.attacker.chain("a", nfs=f"[{', '.join(nfs)}]"))
        wait_for(lambda: self.attacker.get("a")["tx"]["sent_packets"] > 0)
        self.assertLess(self.read_bytes() - read, (512 + 180 + 64) * MIB)
        self.assertLess(self.peak_bytes() - peak, 256 * MIB)

    def test_files_of_other_kinds_are_as_long_as_they_may_be(self):
        big = self.sparse()
        read, peak = self.read_bytes(), self.peak_bytes()
        nfs = [firewall(big), f"[{{name: x, type: nids, config: {{rules: {big}}}}}]",
               f"[{{name: x, type: router, config: {{routes: {big}}}}}]",
               f"[{{name: x, type: ipsec, config: {{direction: encrypt, sa: {big}}}}}]"]
        for file, options in [(big, {}), (self.attacker.chain("p"), {"profile": big}),
                              *((self.attacker.chain(f"n{at}", nfs=nf), {}) for at, nf in enumerate(nfs))]:
            status, answer = self.attacker.apply(file, **options)
            self.assertEqual(status, 400, answer)
            self.assertIn("bytes", answer["error"])
        self.assertLess(self.read_bytes() - read, 64 * MIB)
        self.assertLess(self.peak_bytes() - peak, 256 * MIB)


if __name__ == "__main__":
    unittest.main()
