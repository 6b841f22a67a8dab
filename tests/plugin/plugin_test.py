#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NFs outside the tree: installs Catena, builds the example project and a fresh NF against it, and runs both.

Environment: CATENA_BUILD, the build folder to install from; PYTHONPATH, the folder tests/.
"""

import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from command import call

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["CATENA_BUILD"])

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: plugin}}
spec:
  rx: {{pcap: {capture}}}
  tx: {{pcap: {output}}}
  device: {device}
  nfs:
    - {{name: guard, type: ttl_guard, on: {on}, config: {{minimum: 100}}}}
    - {{name: probe, type: probe, on: {on}, config: {{minimum: 0}}}}
"""


class Plugins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="catena-plugin-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "prefix"
        cls.project = cls.folder / "project"
        call("cmake", "--install", BUILD, "--prefix", cls.prefix)
        shutil.copytree(ROOT / "examples" / "nf-plugin", cls.project)
        call(cls.prefix / "bin" / "catena-new-nf", "probe", "--in", cls.project)
        call("cmake", "-S", cls.project, "-B", cls.project / "build", "-G", "Ninja",
             f"-DCMAKE_PREFIX_PATH={cls.prefix}", *cls.launcher(),
             # as strict as the tree's own build: a new NF may become a part of it
             "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wshadow -Wconversion -Werror")
        call("cmake", "--build", cls.project / "build")
        cls.catena = cls.prefix / "bin" / "catena"
        cls.path = f"{cls.project}/build/ttl_guard:{cls.project}/build/probe"

    @staticmethod
    def launcher():
        return ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []

    def interface(self):
        """The number that a plug-in is built with: what the installed headers say."""
        (number,) = {found for header in (self.prefix / "include").rglob("*.hpp")
                     for found in re.findall(r"kPluginInterface = (\d+)", header.read_text())}
        return number

    def test_the_manual_page_and_completions_come_with_the_program(self):
        for name in ("share/man/man1/catena.1", "share/bash-completion/completions/catena",
                     "share/zsh/site-functions/_catena", "share/fish/vendor_completions.d/catena.fish"):
            self.assertGreater((self.prefix / name).stat().st_size, 0, name)

    def test_nothing_installed_needs_the_source_tree(self):
        hidden = ["unshare", "--map-root-user", "--mount", "bash", "-ec", 'mount -t tmpfs none "$0"; exec "$@"', ROOT]
        try:
            call(*hidden, "true")
        except AssertionError as error:
            self.skipTest(f"a folder cannot be hidden here: {error}")
        self.assertIn("No such file", call(*hidden, "ls", ROOT / "Makefile", fails=True).stderr)
        folder = self.folder / "away"
        examples = folder / "examples"
        shutil.copytree(self.prefix / "share" / "doc" / "catena" / "examples", examples)
        (folder / "out").mkdir()  # where the example's tx is
        settings = {"CATENA_CACHE_DIR": folder / "cache", "CATENA_DATA_DIR": folder / "no-data"}

        def catena(*arguments):
            return call(*hidden, self.catena, *arguments, env=settings).stdout

        captures = []
        for device in ("none", "opencl"):
            output = folder / f"{device}.pcap"
            report = json.loads(catena("run", examples / "branch-office.yaml", "--device", device, "--tx", f"pcap:{output}",
                                       "--json"))
            self.assertTrue(report["accounted"])
            captures.append(output.read_bytes())
        self.assertEqual(captures[0], captures[1])
        self.assertGreater(len(captures[0]), 1 << 20)
        self.assertIn("fine", catena("check", examples / "branch-office.yaml"))
        self.assertIn("kernel cache", catena("doctor"))
        self.assertIn("#define", catena("show", "program", examples / "branch-office.yaml", "fw",
                                         "--device", "opencl"))

    def test_their_own_tests_pass(self):
        done = call("ctest", "--test-dir", self.project / "build", "--output-on-failure")
        self.assertIn("100% tests passed", done.stdout)
        self.assertIn("probe_conformance", done.stdout)

    def test_they_show_with_the_file_they_come_from(self):
        nfs = {nf["type"]: nf for nf in json.loads(
            call(self.catena, "--nf-path", self.path, "show", "nfs", "--json").stdout)}
        self.assertEqual(nfs["ttl_guard"]["origin"], f"{self.project}/build/ttl_guard/ttl_guard.so")
        self.assertEqual(nfs["probe"]["origin"], f"{self.project}/build/probe/probe.so")
        self.assertEqual(nfs["router"]["origin"], "")
        self.assertTrue(nfs["probe"]["gpu"])

    def test_the_environment_names_folders_too(self):
        shown = call(self.catena, "show", "nfs", env={"CATENA_NF_PATH": self.path}).stdout
        self.assertIn("ttl_guard  (cpu, gpu)  from ", shown)

    def test_both_placements_give_the_same_packets(self):
        outputs = []
        for on, device in (("cpu", "none"), ("gpu", "opencl")):
            output = self.folder / f"{on}.pcap"
            chain = self.folder / f"{on}.yaml"
            chain.write_text(CHAIN.format(capture=ROOT / "examples" / "branch-office.pcap", output=output, on=on,
                                          device=device))
            report = json.loads(call(self.catena, "--nf-path", self.path, "run", chain, "--json").stdout)
            self.assertTrue(report["accounted"])
            self.assertGreater(report["nfs"][0]["drops"]["ttl_too_low"], 0)
            self.assertGreater(report["tx"]["sent_packets"], 0)
            self.assertEqual(report["nfs"][0]["on"], on)
            outputs.append(output.read_bytes())
        self.assertEqual(outputs[0], outputs[1])

    def test_installed_ones_need_no_option(self):
        call("cmake", "--install", self.project / "build", "--prefix", self.prefix)
        self.addCleanup(shutil.rmtree, self.prefix / "lib" / "catena")
        self.assertIn("probe  (cpu, gpu)", call(self.catena, "show", "nfs").stdout)

    def test_the_same_type_twice_is_refused_with_both_files(self):
        done = call(self.catena, "--nf-path", f"{self.path}:{self.path}", "show", "nfs", fails=True)
        self.assertIn(f"{self.project}/build/ttl_guard/ttl_guard.so: NF type 'ttl_guard' is registered already, from ",
                      done.stderr)

    def test_what_is_no_network_function_is_refused_by_name(self):
        wrong = self.folder / "wrong"
        wrong.mkdir()
        self.addCleanup(shutil.rmtree, wrong)
        for text, message in ((b"not an object", "cannot be loaded as a network function"),):
            (wrong / "thing.so").write_bytes(text)
            done = call(self.catena, "--nf-path", wrong, "show", "nfs", fails=True)
            self.assertIn(f"{wrong}/thing.so: {message}", done.stderr)
        for source, message in (
                ("int nothing;", "it does not export catena_nf_plugin"),
                ('struct { unsigned i; const char* v; void* d; } catena_nf_plugin = {99, "9.9.9", 0};',
                 "was built against Catena 9.9.9 (interface 99)"),
                # a descriptor of interface 1 is shorter than what this program reads
                ('struct { unsigned i; const char* v; void* d; } catena_nf_plugin = {1, "0.1.0", 0};',
                 f"was built against Catena 0.1.0 (interface 1), this is interface {self.interface()}: build it again")):
            (wrong / "thing.c").write_text(source)
            call("cc", "-shared", "-fPIC", "-o", wrong / "thing.so", wrong / "thing.c")
            done = call(self.catena, "--nf-path", wrong, "show", "nfs", fails=True)
            self.assertIn(message, done.stderr)


class NewNf(unittest.TestCase):
    def test_names_that_cannot_be_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("Upper", "1st", "a-b", "a/b", "", "router", "class", "co_await", "packet", "nf", "testing"):
                done = call(ROOT / "tools" / "new-nf", "--in", folder, "--", name, fails=True)
                self.assertIn("new-nf: ", done.stderr)
            self.assertEqual(os.listdir(folder), [])

    def test_a_new_folder_becomes_a_project(self):
        with tempfile.TemporaryDirectory() as folder:
            project = pathlib.Path(folder) / "new" / "project"
            call(ROOT / "tools" / "new-nf", "rate_limit", "--in", project)
            call(ROOT / "tools" / "new-nf", "second", "--in", project)
            self.assertIn("find_package(Catena REQUIRED)", (project / "CMakeLists.txt").read_text())
            self.assertTrue((project / "rate_limit" / "rate_limit.cpp").exists())
            self.assertTrue((project / "second" / "CMakeLists.txt").exists())

    def test_its_readme_is_for_its_author_to_write(self):
        with tempfile.TemporaryDirectory() as folder:
            call(ROOT / "tools" / "new-nf", "rate_limit", "--in", folder)
            text = (pathlib.Path(folder) / "rate_limit" / "README.md").read_text()
            self.assertTrue(text.startswith("# rate_limit\n"), text)
            self.assertIn("type: rate_limit", text)
            for of_the_model in ("ttl", "5082", "time to live"):
                self.assertNotIn(of_the_model, text.lower())
            for part in ("## Configuration", "## Results", "## Limits"):
                self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
