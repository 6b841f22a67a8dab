#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages of out/packages in a clean Debian 12: `make deb-test`. Needs root, and the mirror that apt knows.

What apt installs with `apt install ./catena_*.deb` must be enough to run chains; everything else that a package has is
tried with the programs it is for: man, systemd, three shells, a C compiler, CMake.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from installed import DOCUMENTS, Installed, Root, SOURCE, USER

PACKAGES = pathlib.Path(os.environ.get("CATENA_PACKAGES", SOURCE / "out" / "packages"))
UNIT = "/usr/lib/systemd/system/catena.service"
LIMIT_S = 120


def package(name):
    (found,) = PACKAGES.glob(f"{name}_*.deb")
    return found


def setUpModule():
    """One root for all: what a class installs is there for those after it (load_tests)."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="deb-root-", dir=SOURCE / "out"))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    begin = time.monotonic()
    subprocess.run([SOURCE / "tools" / "debian-root", folder / "root"], check=True)
    print(f"a clean Debian 12: {time.monotonic() - begin:.0f} s", flush=True)
    root = Packages.root = Root(folder / "root")
    # what comes with other packages is not started
    root.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n")
    root.path("/usr/sbin/policy-rc.d").chmod(0o755)
    root.call("apt-get", "update", network=True)
    install(root, "catena")
    root.make_user()


def install(root, *names):
    """Packages of ours, and others by name, as `apt install` takes them."""
    begin = time.monotonic()
    wanted = []
    for name in names:
        if list(PACKAGES.glob(f"{name}_*.deb")):
            shutil.copy(package(name), root.folder)
            name = f"./{package(name).name}"
        wanted.append(name)
    root.call("apt-get", "install", "-y", *wanted, network=True)
    print(f"apt install {' '.join(wanted)}: {time.monotonic() - begin:.0f} s", flush=True)


def load_tests(loader, _tests, _pattern):
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in (Alone, WithOthers, Removed))


class Packages(unittest.TestCase):
    root: Root


class Alone(Installed, Packages):
    """Nothing but the package and what apt takes with it."""

    def test_its_files_are_whole_and_its_dependencies_are_there(self):
        self.assertEqual(self.root.call("dpkg", "--verify", "catena"), "")
        self.root.call("apt-get", "check")
        files = self.root.call("dpkg", "-L", "catena").split()
        for wanted in (UNIT, "/usr/bin/catena", f"{DOCUMENTS}/README.md", f"{DOCUMENTS}/docs/service.md",
                       f"{DOCUMENTS}/copyright", "/usr/share/man/man1/catena.1.gz"):
            self.assertIn(wanted, files)
        self.assertFalse([name for name in files if "nvrtc" in name], "NVRTC is no part of the package")

    def test_the_service_has_a_group_and_waits_for_its_administrator(self):
        self.assertRegex(self.root.call("getent", "group", "catena"), r"^catena:x:\d+:$")
        wants = self.root.path("/etc/systemd/system/multi-user.target.wants/catena.service")
        self.assertFalse(wants.is_symlink())
        self.assertIn("ExecStart=/usr/bin/catena serve", self.root.path(UNIT).read_text())

    def test_members_of_its_group_use_the_service(self):
        socket = "/run/catena-test/catena.sock"
        self.root.shell("mkdir -p /run/catena-test && chgrp catena /run/catena-test")
        command = self.root.command("setpriv", "--regid", "catena", "--clear-groups", "catena", "serve", "--socket", socket,
                                    "--state", "/var/lib/catena")
        member = ("setpriv", "--reuid", "1000", "--regid", "1000", "--groups", "catena", "env", "HOME=/srv/user")
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as service:
            try:
                while "serves at" not in (line := service.stderr.readline()):
                    self.assertTrue(line, "the service ended")
                self.assertIn("its group may use it",
                              self.root.call(*USER, "catena", "get", "--socket", socket, fails=True))
                self.root.call(*member, "catena", "apply", "/srv/user/examples/branch-office.yaml", "--socket", socket)
                end = time.monotonic() + LIMIT_S
                while (chain := json.loads(self.root.call(*member, "catena", "get", "branch-office", "--json", "--socket",
                                                          socket)))["state"] != "finished":
                    self.assertLess(time.monotonic(), end, chain)
                    time.sleep(0.2)
                output = self.root.path("/srv/user/out/branch-office.pcap")
                self.assertEqual(output.stat().st_uid, 1000)
                self.assertGreater(output.stat().st_size, 1 << 20)
            finally:
                os.kill(self.root.process(service, "catena"), signal.SIGTERM)
                rest = service.stderr.read()
        self.assertEqual(service.returncode, 0, rest)


class WithOthers(Packages):
    """Beside the programs that parts of the packages are for."""

    @classmethod
    def setUpClass(cls):
        install(cls.root, "catena-dev", "libnca0", "systemd", "man-db", "bash-completion", "zsh", "fish", "ninja-build")

    def test_systemd_takes_the_unit_and_does_not_start_it(self):
        self.assertEqual(self.root.shell(f"systemd-analyze verify {UNIT} 2>&1"), "")
        self.assertEqual(self.root.shell("systemctl is-enabled catena || true").strip(), "disabled")
        self.assertIn("Group=catena", self.root.path(f"{UNIT}.d/group.conf").read_text())

    def test_man_shows_the_page(self):
        page = self.root.call("man", "-P", "cat", "catena")
        for heading in ("NAME", "SYNOPSIS", "COMMANDS"):
            self.assertIn(heading, page)
        self.assertIn("catena", self.root.call("apropos", "-e", "catena"))

    def test_shells_complete_commands(self):
        bash = ". /usr/share/bash-completion/bash_completion; _completion_loader catena || true; complete -p catena; " \
               "COMP_WORDS=(catena pro); COMP_CWORD=1; $(complete -p catena | sed 's/.*-F \\([^ ]*\\).*/\\1/'); echo ${COMPREPLY[@]}"
        self.assertIn("profile", self.root.shell(bash))
        self.assertIn("profile", self.root.call("fish", "-c", "complete -C 'catena pro'"))
        self.assertIn("_catena", self.root.call(
            "zsh", "-f", "-c", "autoload -Uz compinit; compinit -D -u; print $_comps[catena]; autoload +X _catena"))

    def test_network_functions_of_others_are_built_tested_and_loaded(self):
        self.root.shell("mkdir -p /srv/build; cp -r /usr/share/catena/nf-plugin /srv/build/nfs; catena-new-nf probe --in /srv/build/nfs;"
                        "cmake -S /srv/build/nfs -B /srv/build/build -G Ninja >/dev/null; cmake --build /srv/build/build")
        tested = self.root.call("ctest", "--test-dir", "/srv/build/build", "--output-on-failure")
        self.assertIn("100% tests passed", tested)
        self.assertIn("probe_conformance", tested)
        shown = json.loads(self.root.call("catena", "--nf-path", "/srv/build/build/ttl_guard:/srv/build/build/probe", "show", "nfs",
                                          "--json"))
        self.assertLessEqual({"ttl_guard", "probe", "router"}, {nf["type"] for nf in shown})

    def test_c_programs_are_built_with_libnca_and_find_it(self):
        self.root.shell(f"mkdir -p /srv/build; cd /srv/build; cc -std=c99 -Wall -Wextra -Werror {DOCUMENTS}/examples/nca/match_pcap.c"
                        " -o match_pcap $(pkg-config --cflags --libs nca libpcap); printf 'GET \\nHTTP/1.1\\n' >strings")
        found = {device: self.root.call("/srv/build/match_pcap", "/srv/build/strings", f"{DOCUMENTS}/examples/branch-office.pcap", device)
                 for device in ("cpu", "opencl")}
        self.assertGreater(found["cpu"].count("\n"), 100)
        self.assertEqual(found["cpu"], found["opencl"])
        self.assertRegex(self.root.call("ldd", "/srv/build/match_pcap"), r"libnca\.so\.0 => (/usr)?/lib/\S+/libnca\.so\.0")

    def test_the_library_says_which_package_a_program_needs(self):
        version = re.escape(package("libnca0").name.split("_")[1])
        self.assertRegex(self.root.path("/var/lib/dpkg/info/libnca0.shlibs").read_text(),
                         rf"^libnca 0 libnca0 \(>= {version}\)")


class Removed(Packages):
    def test_what_was_installed_goes_and_what_the_service_remembers_goes_with_purge(self):
        files = [name for name in self.root.call("dpkg", "-L", "catena").split() if self.root.path(name).is_file()]
        self.assertGreater(len(files), 50)
        self.root.write("/var/lib/catena/chain", "remembered")
        self.root.call("apt-get", "remove", "-y", "catena")
        self.assertEqual([name for name in files if self.root.path(name).exists()], [])
        self.assertTrue(self.root.path("/var/lib/catena/chain").exists())
        self.root.call("apt-get", "purge", "-y", "catena")
        self.assertFalse(self.root.path("/var/lib/catena").exists())


if __name__ == "__main__":
    unittest.main()
