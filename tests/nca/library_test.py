#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libnca as others use it: installed, found by pkg-config, from C99 and from Python, without DPDK.

Environment: CATENA_BUILD, the build folder to install from; PYTHONPATH, the folder tests/.
"""

import collections
import ctypes
import os
import pathlib
import re
import shutil
import struct
import tempfile
import unittest

from command import call

try:
    import cffi
except ImportError:
    cffi = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["CATENA_BUILD"])
CAPTURE = ROOT / "examples" / "branch-office.pcap"
STRINGS = ["GET ", "HTTP/1.1", "com", "example", "om", "google"]


def read_capture(path):
    data, at, packets = path.read_bytes(), 24, []
    while at < len(data):
        length = struct.unpack_from("<8xI", data, at)[0]
        packets.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return packets


def matches_in(packets):
    """(packet, string, end) of every occurrence, by looking at every place."""
    found = []
    for number, packet in enumerate(packets):
        for string, text in enumerate(STRINGS):
            at = packet.find(text.encode())
            while at >= 0:
                found.append((number, string, at + len(text)))
                at = packet.find(text.encode(), at + 1)
    return found


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="catena-nca-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "prefix"
        call("cmake", "--install", BUILD, "--prefix", cls.prefix, "--component", "nca")
        cls.library = next(cls.prefix.rglob("libnca.so.0"))
        pkgconfig = next(cls.prefix.rglob("nca.pc")).parent
        cls.env = {"PKG_CONFIG_PATH": f"{pkgconfig}:{os.environ.get('PKG_CONFIG_PATH', '')}",
                   "LD_LIBRARY_PATH": str(cls.library.parent)}
        cls.strings = cls.folder / "strings.txt"
        cls.strings.write_text("".join(text + "\n" for text in STRINGS))
        cls.packets = read_capture(CAPTURE)
        cls.expected = matches_in(cls.packets)
        assert len(cls.expected) > 1000

    def build(self, name, *packages, options=(), folder=ROOT / "examples" / "nca"):
        program = self.folder / name
        flags = call("pkg-config", "--cflags", "--libs", "nca", *packages, env=self.env).stdout.split()
        # headers of DPDK are GNU C
        call("cc", "-std=gnu99" if "libdpdk" in packages else "-std=c99", "-Wall", "-Wextra", "-Werror",
             "-o", program, folder / f"{name}.c", *options, *flags)
        return program

    def parse(self, output):
        return [tuple(int(word) for word in line.split("\t")) for line in output.splitlines()]

    def test_it_shows_the_api_and_nothing_else(self):
        shown = {line.split()[-1].split("@")[0]
                 for line in call("nm", "-D", "--defined-only", self.library).stdout.splitlines() if " A " not in line}
        header = re.sub(r"/\*.*?\*/", "", (self.prefix / "include" / "nca" / "nca.h").read_text(), flags=re.S)
        declared = set(re.findall(r"\b(nca_\w+)\s*\([^*]", header))
        self.assertEqual(shown, declared)
        self.assertIn("nca_add_packets", shown)

    def test_it_needs_no_dpdk(self):
        needed = call("ldd", self.library).stdout
        self.assertNotIn("librte", needed)
        self.assertNotIn("not found", needed)
        self.assertNotRegex(call("nm", "-D", self.library).stdout, r"\brte_")
        self.assertIn("[libnca.so.0]", call("readelf", "-d", self.library).stdout)

    def test_the_header_is_c99_and_cxx(self):
        for compiler, language in (("cc", "-std=c99"), ("c++", "-std=c++11")):
            source = self.folder / ("header.c" if compiler == "cc" else "header.cpp")
            source.write_text("#include <nca/nca.h>\n#include <nca/nca.h>\n")
            call(compiler, language, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                 f"-I{self.prefix}/include", source)

    def test_each_struct_with_a_size_begins_without_a_warning(self):
        """What nca.h says of NCA_INIT, for every struct that begins with its size: in C99 and C++, with each compiler."""
        header = (self.prefix / "include" / "nca" / "nca.h").read_text()
        structs = re.findall(r"typedef struct (\w+) \{\n  size_t size;(.*?)\n\}", re.sub(r"/\*.*?\*/", "", header, flags=re.S),
                             flags=re.S)
        self.assertIn("nca_stream_config", dict(structs))
        checks = ""
        for name, body in structs:
            members = [f"made.{member}" + (".begin_ns" if kind == "nca_times" else "[0]" if array else "")
                       for kind, member, array in re.findall(r"(\w+)[ *]+(\w+)(\[\d+\])?;", body)]
            self.assertGreater(len(members), 2, name)
            checks += (f"  {{ {name} made = NCA_INIT({name});\n"
                       f"    if (made.size != sizeof made || {' || '.join(members)}) return 1; }}\n")
        text = f"#include <nca/nca.h>\nint main(void) {{\n{checks}  return 0;\n}}\n"
        compilers = [("cc", "c", "c99"), ("c++", "cpp", "c++11"), ("c++", "cpp", "c++20"),
                     ("clang", "c", "c99"), ("clang++", "cpp", "c++11")]
        for compiler, suffix, standard in compilers:
            if shutil.which(compiler) is None:
                continue
            with self.subTest(compiler=compiler, standard=standard):
                source, program = self.folder / f"begins.{suffix}", self.folder / "begins"
                source.write_text(text)
                call(compiler, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2",
                     f"-I{self.prefix}/include", "-o", program, source)
                call(program)

    def test_a_wrong_file_is_no_null_pointer(self):
        """An application prints what the status means, then the text of the failure: both are of the file."""
        means = ctypes.CDLL(str(self.library)).nca_error_text
        means.restype = ctypes.c_char_p
        self.assertEqual(means(-1).decode(), "an invalid argument or configuration")

    def test_what_an_installation_says_builds_and_runs_a_program(self):
        hint = call(ROOT / "tools" / "library-hint", self.prefix).stdout
        command = hint.splitlines()[-1].strip()
        self.assertTrue(command.startswith("cc app.c "), hint)
        (self.folder / "app.c").write_text("#include <nca/nca.h>\n#include <stdio.h>\n"
                                           "int main(void) { return puts(nca_version()) < 0; }\n")
        call("bash", "-ec", f"cd '{self.folder}' && {command} -o app")
        self.assertRegex(call("env", "-u", "LD_LIBRARY_PATH", self.folder / "app").stdout, r"^\d+\.\d+\.\d+$")

    def test_where_the_loader_searches_an_installation_asks_for_no_more_than_ldconfig(self):
        tools = self.folder / "tools"
        tools.mkdir()
        for user in ("0", "1000"):
            (tools / "ldconfig").write_text(f'#!/bin/sh\n[ $# -gt 0 ] || echo run >> {tools}/ran\n'
                                            f'echo "{self.library.parent}: (from a file)"\n')
            (tools / "id").write_text(f"#!/bin/sh\necho {user}\n")
            for tool in tools.glob("[il]d*"):
                tool.chmod(0o755)
            said = call(ROOT / "tools" / "library-hint", self.prefix, env={"PATH": f"{tools}:{os.environ['PATH']}"}).stdout
            self.assertIn(f"programs find libnca in {self.library.parent}", said)
            self.assertEqual("sudo ldconfig" in said, user != "0", said)
        self.assertEqual((tools / "ran").read_text(), "run\n")

    def test_match_pcap_prints_every_match(self):
        program = self.build("match_pcap", "libpcap")
        for device in ("cpu", "opencl", "auto"):
            with self.subTest(device=device):
                done = call(program, self.strings, CAPTURE, device, env=self.env)
                self.assertEqual(collections.Counter(self.parse(done.stdout)), collections.Counter(self.expected))
        done = call(program, self.folder / "missing.txt", CAPTURE, "cpu", env=self.env, fails=True)
        self.assertIn("missing.txt", done.stderr)
        self.assertIn("gpu", call(program, self.strings, CAPTURE, "gpu", env=self.env, fails=True).stderr)

    def test_refused_rules_are_listed(self):
        rules = self.folder / "some.rules"
        rules.write_text('# by reason\n'
                         'alert tcp any any -> any any (msg:"a"; content:"one"; pcre:"/x/"; sid:1;)\n'
                         'alert tcp any any -> any any (content:"two"; sid:2;)\n'
                         'alert \\\n  http any any -> any any (content:"three"; sid:3;)\n')
        program = self.build("refused_rules", folder=ROOT / "tests" / "nca")
        self.assertEqual(call(program, rules, env=self.env).stdout,
                         f"2 rules refused\n{rules}:2:55: pcre\n{rules}:5:3: protocol http\n")

    @unittest.skipIf(shutil.which("valgrind") is None, "valgrind is not installed")
    def test_valgrind_finds_no_leak_and_no_byte_that_nobody_wrote(self):
        """An application, and every call of the API as it should and should not be used. On the device `cpu` alone:
        what PoCL's compiler keeps is not ours. One thread at a time runs under valgrind: without turns (`--fair-sched`),
        a thread that polls keeps the others from running."""
        valgrind = ["valgrind", "--quiet", "--fair-sched=yes", "--leak-check=full",
                    "--errors-for-leak-kinds=definite,possible", "--error-exitcode=9"]
        done = call(*valgrind, self.build("match_pcap", "libpcap"), self.strings, CAPTURE, "cpu", env=self.env)
        self.assertEqual(collections.Counter(self.parse(done.stdout)), collections.Counter(self.expected))
        done = call(*valgrind, BUILD / "src" / "nca" / "nca_test", "--gtest_filter=devices/Everywhere.*/cpu",
                    env={"OCL_ICD_VENDORS": "/nonexistent"})
        self.assertRegex(done.stdout, r"PASSED.* \d\d tests")

    @unittest.skipIf(cffi is None, "cffi is not installed")
    def test_match_pcap_py_prints_every_match(self):
        done = call("python3", ROOT / "examples" / "nca" / "match_pcap.py", self.prefix / "include" / "nca" / "nca.h",
                    self.strings, CAPTURE, "cpu", env=self.env)
        self.assertEqual(collections.Counter(self.parse(done.stdout)), collections.Counter(self.expected))

    def hook(self, capture, options=()):
        program = self.build("dpdk_hook", "libdpdk", options=options)
        out = self.folder / "out.pcap"
        done = call(program, "--no-huge", "-m", "256", "--no-shconf", "--no-telemetry", "--no-pci", "-l", "0",
                    f"--vdev=net_pcap0,rx_pcap={capture},tx_pcap={out}", "--", self.strings, "cpu", env=self.env, limit=240)
        return done.stdout, read_capture(out)

    def write_frames(self, name, frames):
        capture = self.folder / name
        with capture.open("wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
            for frame in frames:
                file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
        return capture

    def test_dpdk_hook_sends_on_what_holds_no_string(self):
        said, sent = self.hook(CAPTURE)
        matched = {packet for packet, _, _ in self.expected}
        kept = [packet for number, packet in enumerate(self.packets) if number not in matched]
        self.assertIn(f"{len(self.packets)} received, {len(matched)} matched, 0 not looked at, 0 not sent, "
                      f"{len(kept)} sent", said)
        self.assertEqual(sent, kept)

    def test_dpdk_hook_goes_on_after_a_packet_that_is_too_long(self):
        frames = [bytes(12) + b"\x08\x00" + bytes(length) for length in (60, 6000, 61)]
        said, sent = self.hook(self.write_frames("long.pcap", frames))
        self.assertIn("3 received, 0 matched, 1 not looked at, 0 not sent, 2 sent", said)
        self.assertEqual(sent, [frames[0], frames[2]])

    def test_dpdk_hook_goes_on_where_the_port_takes_no_more_packets(self):
        frames = [bytes(12) + b"\x08\x00" + bytes(length) for length in range(60, 66)]
        stuck = self.folder / "stuck.h"
        stuck.write_text("""
            #include <rte_ethdev.h>
            /* takes two packets, none of those that come next, and the last one again */
            static uint16_t stuck_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **packets, uint16_t count) {
              static unsigned taken;
              if (taken >= 2 && rte_pktmbuf_data_len(*packets) < 14 + 65) {
                return 0;
              }
              ++taken;
              return rte_eth_tx_burst(port, queue, packets, count);
            }
            #define rte_eth_tx_burst stuck_tx_burst
            """)
        said, sent = self.hook(self.write_frames("stuck.pcap", frames), options=("-include", stuck))
        self.assertIn("6 received, 0 matched, 0 not looked at, 3 not sent, 3 sent", said)
        self.assertEqual(sent, [frames[0], frames[1], frames[5]])


if __name__ == "__main__":
    unittest.main()
