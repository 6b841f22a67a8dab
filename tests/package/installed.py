# SPDX-License-Identifier: Apache-2.0
"""What the installed program must do in a Debian that has nothing else of ours: as packages put it there, or an image."""

import json
import pathlib
import re
import subprocess

from command import descendants_of, name_of

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = "/usr/share/doc/catena"
USER = ("setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "env", "HOME=/srv/user")
PROGRAMS = ("/usr/bin/catena", "/usr/libexec/catena/catena-nf", "/usr/libexec/catena/catena-device-server",
            "/usr/libexec/catena/catena-static-check")


class Root:
    """A root file system, and commands that run in it (tools/in-root)."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def command(self, *words, network=False):
        return [str(SOURCE / "tools" / "in-root"), *(["--network"] if network else []), str(self.folder),
                *(str(word) for word in words)]

    def call(self, *words, network=False, fails=False, limit=600):
        """What it prints; an AssertionError with all that it printed if it failed, with `fails` if it did not."""
        done = subprocess.run(self.command(*words, network=network), capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=limit)
        if (done.returncode != 0) != fails:
            raise AssertionError(f"{words}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stderr if fails else done.stdout

    def shell(self, script, **options):
        return self.call("bash", "-ec", script, **options)

    @staticmethod
    def process(started, name):
        """The process called `name` that runs in the root; `started` is what runs command()."""
        pids = [started.pid, *descendants_of(started.pid)]
        if name not in (names := {name_of(pid): pid for pid in reversed(pids)}):
            raise AssertionError(f"no {name} among {pids}")
        return names[name]

    def path(self, name):
        return self.folder / str(name).lstrip("/")

    def write(self, name, text):
        self.path(name).parent.mkdir(parents=True, exist_ok=True)
        self.path(name).write_text(text)

    def make_user(self):
        """User 1000 with a home and the examples in it, which he may write to."""
        self.shell(f"useradd --uid 1000 --create-home --home-dir /srv/user user; cp -r {DOCUMENTS}/examples /srv/user/;"
                   "mkdir /srv/user/out; chown -R user: /srv/user")


class Installed:
    """Tests of the program in `root`, which the class that has them sets up."""

    root: Root

    def run_demo(self, device, *options, chain="examples/branch-office.yaml"):
        """The report, the packets and the records of the demo's chain, run by a user."""
        self.root.call(*USER, "sh", "-ec", f"cd /srv/user && exec catena run {chain} --device {device} --json "
                       f"--tx pcap:out/{device}.pcap --record out/{device}.jsonl {' '.join(options)} >out/report.json")
        home = self.root.path("/srv/user/out")
        return (json.loads((home / "report.json").read_text()), (home / f"{device}.pcap").read_bytes(),
                (home / f"{device}.jsonl").read_text())

    def test_it_says_its_version_and_how_this_machine_is(self):
        self.assertRegex(self.root.call("catena", "--version"), r"\d+\.\d+\.\d+")
        said = self.root.call(*USER, "catena", "doctor")
        self.assertNotIn("PROBLEM", said)
        for line in (r"ok +DPDK", r"ok +opencl", r"ok +kernel cache"):
            self.assertRegex(said, line)
        self.assertRegex(self.root.call("catena", "doctor"), r"ok +interfaces +may be opened")

    def test_the_demo_gives_the_same_on_the_cpu_and_on_an_opencl_device(self):
        on_cpu, packets, records = self.run_demo("none")
        self.assertTrue(on_cpu["accounted"])
        self.assertEqual(on_cpu["rx"]["received_packets"], 118400)
        on_device, device_packets, device_records = self.run_demo("opencl")
        self.assertIn("gpu", {nf["on"] for nf in on_device["nfs"]})
        self.assertEqual(packets, device_packets)
        self.assertEqual(records, device_records)
        self.assertGreater(len(packets), 1 << 20)

    def test_nfs_have_sandboxed_processes(self):
        text = self.root.path(f"{DOCUMENTS}/examples/branch-office.yaml").read_text()
        apart = re.sub(r"( +)on: [gc]pu\n", r"\g<0>\1isolation: process\n", text)
        self.assertEqual(apart.count("isolation"), 4)
        self.root.write("/srv/user/examples/apart.yaml", apart)
        _, packets, _ = self.run_demo("none")
        report, from_processes, _ = self.run_demo("none", chain="examples/apart.yaml")
        self.assertTrue(report["accounted"])
        self.assertEqual(packets, from_processes)

    def test_kernels_of_strangers_are_checked(self):
        guard = f"{DOCUMENTS}/examples/nf-plugin/ttl_guard"
        self.root.call("catena", "check-kernel", f"{guard}/ttl_guard.kernel.cpp", f"{guard}/ttl_guard.layout.hpp")
        self.root.write("/srv/user/out/bad.kernel.cpp", "#include <catena/kernel/context.hpp>\n"
                        "CATENA_KERNEL(bad) { *reinterpret_cast<catena::u32*>(catena::u64{4096}) = 1; }\n")
        self.assertIn("bad.kernel.cpp:2", self.root.shell("! catena check-kernel /srv/user/out/bad.kernel.cpp 2>&1"))

    def test_programs_find_their_libraries_and_nothing_of_the_build(self):
        for program in PROGRAMS:
            self.assertNotIn("not found", self.root.call("ldd", program))
            self.assertFalse(str(SOURCE).encode() in self.root.path(program).read_bytes(), program)
