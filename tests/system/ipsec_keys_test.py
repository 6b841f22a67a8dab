#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keys whose past is not known, in a chain that follows its file, and keys that two NFs would encrypt with. CATENA_BIN
names the program."""

import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import unittest

BIN = os.environ["CATENA_BIN"]
TIMEOUT_S = 120
ESP_AT = 14 + 20
SLOW = "{generator: {packet: 128, flows: 50, rate: 20000}}"

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: keys}}
spec:
  rx: {rx}
  tx: {tx}
  device: none
  shards: {shards}
  nfs:
{nfs}"""

# shards, and where the NF is
PLACES = [(1, "none"), (3, "none"), (1, "process"), (3, "process")]


def vpn(sa, name="vpn", place="none", more=""):
    return f"    - {{name: {name}, type: ipsec, isolation: {place}, config: {{direction: encrypt, sa: {sa}{more}}}}}\n"


def association(spi, key=None, selector=""):
    """Its keys are those of number `key`; the SPI's own where that is not said."""
    number = spi if key is None else key
    return (f"  - spi: {spi}\n    source: 192.0.2.1\n    destination: 198.51.100.1\n"
            f"    encryption_key: \"{number:040x}\"\n    authentication_key: \"{number:040x}\"\n"
            + (f"    selector: {selector}\n" if selector else ""))


def wait_for(what, process=None):
    """The first true value of what(), which must come to be before the process ends."""
    end = time.monotonic() + TIMEOUT_S
    while not (value := what()):
        assert time.monotonic() < end, "it did not come to be"
        assert process is None or process.poll() is None, "the run has ended"
        time.sleep(0.005)
    return value


class Folder:
    """Files of a chain, and what its runs leave."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.out = self.path / "out.pcap"

    def write_associations(self, *associations, file="sa.yaml"):
        # in place: a process was shown this file, and not its name
        (self.path / file).write_text("associations:\n" + "".join(associations))

    def write_chain(self, nfs, shards=1, rx=SLOW, tx=None, file="chain.yaml"):
        tx = tx or f'{{dpdk: "net_pcap0,tx_pcap={self.out}"}}'
        (self.path / file).write_text(CHAIN.format(rx=rx, tx=tx, shards=shards, nfs=nfs))
        return str(self.path / file)

    def states(self, folder="sa.yaml.state"):
        """The next number of each SPI that has a state."""
        states = {}
        for file in (self.path / folder).glob("*"):
            if not file.name.endswith((".lock", ".new")):
                text = file.read_text()
                states[int(re.search(r"^spi: (\d+)$", text, re.M)[1])] = int(re.search(r"^next: (\d+)$", text, re.M)[1])
        return states

    def numbers(self):
        """SPI and sequence number, as the IV has it, of each packet that left, in their order."""
        data, at, numbers = self.out.read_bytes(), 24, []
        while at + 16 <= len(data):
            length = struct.unpack_from("<I", data, at + 8)[0]
            if at + 16 + length <= len(data):
                numbers.append(struct.unpack_from("!I4xQ", data, at + 16 + ESP_AT))
            at += 16 + length
        return numbers

    def use_before(self, spi):
        """Has another run use the association's keys, with its states in another folder, and kills it: the next number."""
        before = self.path / "before.pcap"
        self.write_associations(association(spi), file="before.yaml")
        chain = self.write_chain(vpn("before.yaml", more=", state: before"), file="before-chain.yaml",
                                 rx="{generator: {packet: 128, rate: 2000}}",
                                 tx=f'{{dpdk: "net_pcap0,tx_pcap={before}"}}')
        with Run(self, chain, "--new-keys", str(spi)) as run:
            wait_for(lambda: before.exists() and before.stat().st_size > 10_000, run.process)
            run.process.kill()
            run.process.wait(TIMEOUT_S)
        return self.states("before")[spi]

    def bring_back_states(self):
        for file in (self.path / "before").glob("*"):
            shutil.copy(file, self.path / "sa.yaml.state")


class Run:
    """A chain that runs, and follows its file."""

    OUTCOMES = ("chain replaced", "the chain keeps running unchanged", ": changed: ", "nothing has changed")

    def __init__(self, folder, chain, *words):
        self.folder = folder
        self.log = folder.path / f"log{time.monotonic_ns()}"
        with open(self.log, "wb") as log:
            # below nohup it would be told to ignore the signal
            self.process = subprocess.Popen([BIN, "run", chain, *words], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log,
                                            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def said(self):
        return self.log.read_text(errors="replace")

    def wait_for_packets(self):
        size = self.folder.out.stat().st_size if self.folder.out.exists() else 0
        wait_for(lambda: self.folder.out.exists() and self.folder.out.stat().st_size > size + 100_000, self.process)

    def follow(self):
        """Has the chain look at its file: what the log says then, up to what became of it."""
        before = len(self.said())
        self.process.send_signal(signal.SIGHUP)
        wait_for(lambda: any(outcome in self.said()[before:] for outcome in self.OUTCOMES), self.process)
        return self.said()[before:]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT_S)


class KeysTest(unittest.TestCase):
    def folder(self):
        scratch = tempfile.TemporaryDirectory(dir="/tmp")
        self.addCleanup(scratch.cleanup)
        os.chmod(scratch.name, 0o755)
        return Folder(scratch.name)

    def command(self, *words):
        return subprocess.run([BIN, *words], capture_output=True, text=True, check=False, timeout=TIMEOUT_S)

    def assert_unbroken(self, numbers, spi, first=1):
        of_spi = [number for each, number in numbers if each == spi]
        self.assertEqual(of_spi, list(range(first, first + len(of_spi))), f"numbers of SPI {spi}")

    def assert_refused(self, run, said, spi=5000):
        self.assertIn("the chain keeps running unchanged", said)
        self.assertIn(f"no state of the association with SPI {spi}, and its keys are refused", said)
        self.assertIn(f"pass --new-keys {spi} to `catena run` or `catena apply`", said)
        self.assertNotIn("chain replaced", said)
        self.assertNotIn(spi, run.folder.states())


class Following(KeysTest):
    """SPI 5000 takes all packets where the file has it, and so its numbers show in what leaves."""

    def test_keys_that_a_change_refuses_are_not_taken_by_another_chain(self):
        for shards, place in PLACES:
            with self.subTest(shards=shards, place=place):
                folder = self.folder()
                used = folder.use_before(5000)
                self.assertGreater(used, 1)
                folder.write_associations(association(4096))
                chain = folder.write_chain(vpn("sa.yaml", place=place), shards)
                with Run(folder, chain, "--new-keys", "4096") as run:
                    run.wait_for_packets()
                    folder.write_associations(association(5000), association(4096))
                    self.assert_refused(run, run.follow())
                    run.wait_for_packets()
                    if shards == 1 or place == "process":  # in several shards of a chain it does not change at all
                        folder.bring_back_states()
                        self.assertNotIn("keeps running unchanged", run.follow())
                        wait_for(lambda: 5000 in dict(folder.numbers()), run.process)
                    self.assertEqual(run.end(), 0, run.said())
                numbers = folder.numbers()
                self.assert_unbroken(numbers, 4096)
                self.assert_unbroken(numbers, 5000, used)

    def test_a_chain_of_another_shape_asks_as_a_change_does_and_so_does_the_next_one(self):
        firewall = "    - {name: fw, type: firewall, isolation: none, config: {rules: all.rules, default: allow}}\n"
        for place in ("none", "process"):
            with self.subTest(place=place):
                folder = self.folder()
                folder.use_before(5000)
                (folder.path / "all.rules").write_text("allow any any any any any\n")
                folder.write_associations(association(4096))
                chain = folder.write_chain(vpn("sa.yaml", place=place))
                with Run(folder, chain, "--new-keys", "4096") as run:
                    run.wait_for_packets()
                    for nfs in (firewall + vpn("sa.yaml", place=place), vpn("sa.yaml", place=place)):
                        folder.write_chain(nfs)
                        folder.write_associations(association(5000), association(4096))
                        self.assert_refused(run, run.follow())
                        folder.write_associations(association(4096))
                        self.assertIn("chain replaced", run.follow())
                        run.wait_for_packets()
                        folder.write_associations(association(5000), association(4096))
                        self.assert_refused(run, run.follow())
                    self.assertEqual(run.end(), 0, run.said())
                self.assertEqual({spi for spi, _ in folder.numbers()}, {4096})
                self.assert_unbroken(folder.numbers(), 4096)

    def test_a_chain_with_other_settings_of_its_run_asks_too(self):
        """The next chain has the settings of the changed file, and the consent of the command line was for the first one."""
        folder = self.folder()
        folder.write_associations(association(4096))
        chain = folder.write_chain(vpn("sa.yaml"))
        with Run(folder, chain, "--new-keys", "4096") as run:
            run.wait_for_packets()
            folder.write_chain(vpn("sa.yaml"), "1\n  workers: 1")
            folder.write_associations(association(5000), association(4096))
            self.assert_refused(run, run.follow())
            folder.write_associations(association(4096))
            self.assertIn("chain replaced", run.follow())
            run.wait_for_packets()
            folder.write_associations(association(5000), association(4096))
            self.assert_refused(run, run.follow())
            self.assertEqual(run.end(), 0, run.said())
        self.assert_unbroken(folder.numbers(), 4096)

    def test_an_nf_that_comes_is_asked_for_the_state_of_its_keys(self):
        for place in ("none", "process"):
            with self.subTest(place=place):
                folder = self.folder()
                folder.write_associations(association(4096))
                folder.write_associations(association(5000), file="more.yaml")
                chain = folder.write_chain(vpn("sa.yaml", place=place))
                with Run(folder, chain, "--new-keys", "4096") as run:
                    run.wait_for_packets()
                    folder.write_chain(vpn("sa.yaml", place=place) + vpn("more.yaml", "more", place))
                    self.assert_refused(run, run.follow())
                    self.assertEqual(folder.states("more.yaml.state"), {})
                    run.wait_for_packets()
                    self.assertEqual(run.end(), 0, run.said())


class Named(KeysTest):
    """--new-keys names the SPIs whose keys are new."""

    def test_keys_of_other_spis_are_refused(self):
        for shards, place in PLACES:
            with self.subTest(shards=shards, place=place):
                folder = self.folder()
                folder.write_associations(association(4096), association(5000), association(6000))
                chain = folder.write_chain(vpn("sa.yaml", place=place), shards, "{generator: {packet: 128, count: 1000}}")
                for words, missing in (((), "4096,5000,6000"), (("--new-keys", "5000"), "4096,6000"),
                                       (("--new-keys", "0x1000,6000"), "5000")):
                    result = self.command("run", chain, *words)
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertIn(f"pass --new-keys {missing} to", result.stderr)
                    self.assertEqual(folder.states(), {})
                result = self.command("run", chain, "--new-keys", "4096,5000,6000")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(set(folder.states()), {4096, 5000, 6000})

    def test_an_spi_without_an_association_is_an_error(self):
        folder = self.folder()
        folder.write_associations(association(4096))
        both = vpn("sa.yaml") + vpn("sa.yaml", "back").replace("encrypt", "decrypt")
        chain = folder.write_chain(both, 1, "{generator: {packet: 128, count: 1000}}", "null")
        for command in ("check", "run"):
            result = self.command(command, chain, "--new-keys", "4096,4711,4712")
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn("--new-keys: no association of the chain has SPI 4711, 4712; write SPIs of its SA files",
                          result.stderr + result.stdout)
            self.assertEqual(self.command(command, chain, "--new-keys", "4096").returncode, 0)


class Shared(KeysTest):
    """Two NFs that encrypt with the same keys, under other SPIs."""

    def setUp(self):
        self.files = self.folder()
        self.files.write_associations(association(4096), association(4097))
        self.files.write_associations(association(7000), association(7001, key=4097), file="other.yaml")

    def chain(self, place, shards, tx, second="other.yaml"):
        return self.files.write_chain(vpn("sa.yaml", "inner", place) + vpn(second, "outer", place), shards,
                                      "{generator: {packet: 128, count: 1000}}", tx)

    def assert_refused(self, result):
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stderr, r"chain\.yaml:\d+:\d+: NF 'outer': the association with SPI 7001 has the keys of "
                                        r"the association with SPI 4097 of NF 'inner'")
        self.assertNotIn("another run", result.stderr)
        self.assertEqual(self.files.states(), {})
        self.assertEqual(self.files.states("other.yaml.state"), {})

    def test_two_nfs_with_the_same_keys_are_refused_wherever_packets_go(self):
        for shards, place in PLACES:
            for tx in (None, f"{{pcap: {self.files.out}}}", "null"):
                with self.subTest(shards=shards, place=place, tx=tx):
                    chain = self.chain(place, shards, tx)
                    self.assert_refused(self.command("check", chain))
                    self.assert_refused(self.command("run", chain, "--new-keys", "4096"))

    def test_nfs_of_one_process_and_of_several_are_refused_too(self):
        for places in (("{group: g}", "{group: g}"), ("process", "none"), ("none", "process")):
            with self.subTest(places=places):
                chain = self.files.write_chain(
                    vpn("sa.yaml", "inner", places[0]) + vpn("other.yaml", "outer", places[1]), 1,
                    "{generator: {packet: 128, count: 1000}}", "null")
                self.assert_refused(self.command("check", chain))
                self.assert_refused(self.command("run", chain))

    def test_one_file_for_two_nfs_is_refused(self):
        chain = self.chain("none", 1, "null", second="sa.yaml")
        for words in (("check", chain), ("run", chain)):
            result = self.command(*words)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, "NF 'outer': the association with SPI 4096 has the keys of the association "
                                            "with SPI 4096 of NF 'inner'")

    def test_other_keys_the_way_back_and_a_chain_that_takes_off_what_it_put_on_are_fine(self):
        self.files.write_associations(association(7000), association(7001), file="other.yaml")
        self.assertEqual(self.command("run", self.chain("none", 1, "null")).returncode, 0)
        decrypt = vpn("sa.yaml", "back").replace("encrypt", "decrypt")
        chain = self.files.write_chain(vpn("sa.yaml") + decrypt + decrypt.replace("back", "again"), 1,
                                       "{generator: {packet: 128, count: 1000}}", "null")
        for command in ("check", "run"):
            result = self.command(command, chain)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_change_that_gives_one_nf_the_keys_of_the_other_is_refused(self):
        for place in ("none", "process"):
            for is_live in (True, False):
                with self.subTest(place=place, is_live=is_live):
                    self.files = self.folder()
                    self.files.write_associations(association(4096), association(4097))
                    self.files.write_associations(association(7001), file="other.yaml")
                    tx = None if is_live else f"{{pcap: {self.files.out}}}"
                    chain = self.files.write_chain(vpn("sa.yaml", "inner", place) + vpn("other.yaml", "outer", place),
                                                   tx=tx)
                    with Run(self.files, chain, "--new-keys", "4096,4097,7001") as run:
                        run.wait_for_packets()
                        self.files.write_associations(association(7001, key=4097), file="other.yaml")
                        said = run.follow()
                        self.assertIn("the chain keeps running unchanged", said)
                        self.assertIn("NF 'outer': the association with SPI 7001 has the keys of the association with SPI "
                                      "4097 of NF 'inner'", said)
                        self.assertEqual(run.end(), 0, run.said())


class Ports(KeysTest):
    """Selectors that later fragments of a datagram do not match (RFC 4301, section 7.2)."""

    WARNING = ("WARNING *NF 'vpn': the selector of the association with SPI 4096 has ports, which only the first fragment "
               "of a datagram shows")

    def command(self, *words):
        result = subprocess.run([BIN, *words], capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout + result.stderr

    def said(self, place, direction, *associations):
        folder = self.folder()
        folder.write_associations(*associations)
        chain = folder.write_chain(vpn("sa.yaml", place=place).replace("encrypt", direction),
                                   rx="{generator: {packet: 128, count: 100}}", tx="null")
        return self.command("check", chain), self.command("run", chain, "--quiet")

    def test_a_selector_with_ports_is_warned_of_by_check_and_at_the_start(self):
        web = association(4096, selector="{protocol: tcp, destination_port: 443}")
        for place in ("none", "process"):
            for direction, reason in (("encrypt", "`fragment`"), ("decrypt", "`selector_mismatch`")):
                with self.subTest(place=place, direction=direction):
                    for said in self.said(place, direction, web):
                        self.assertRegex(said, self.WARNING)
                        self.assertIn(reason, said)
                        self.assertEqual(said.count("WARNING"), 1, said)

    def test_where_another_association_has_the_rest_nobody_is_warned(self):
        web = association(4096, selector="{protocol: tcp, destination_port: 443}")
        for rest in ("{protocol: tcp, destination_port: opaque}", "{protocol: tcp}", ""):
            for said in self.said("none", "encrypt", web, association(4097, selector=rest)):
                self.assertNotIn("WARNING", said, rest)
        for said in self.said("none", "encrypt", web, association(4097, selector="{protocol: udp}")):
            self.assertRegex(said, self.WARNING)

    def test_json_has_the_warning(self):
        folder = self.folder()
        folder.write_associations(association(4096, selector="{protocol: udp, source_port: 53}"))
        self.assertRegex(self.command("check", folder.write_chain(vpn("sa.yaml")), "--json"),
                         r'"warnings": \[\s*"NF .vpn.: the selector of the association with SPI 4096 has ports')


if __name__ == "__main__":
    unittest.main(verbosity=2)
