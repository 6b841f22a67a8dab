#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""catena-bench as one types it, on OpenCL and with short runs. CATENA_BENCH names the program."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from bench_pages import adaptchain, havs, isoptr, nca  # noqa: E402
from bench_pages.page import Results  # noqa: E402

BENCH = os.environ["CATENA_BENCH"]
TIMEOUT_S = 240


def bench(*arguments):
    return subprocess.run([BENCH, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


class Benchmarks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        # not the profiles of whoever runs the tests
        os.environ["CATENA_DATA_DIR"] = self.path("data")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def bench(self, part, *arguments, resume=False):
        """Its result, and what OUT has."""
        out = self.path(f"{part}.json")
        done = bench(part, "--quick", "--out", out, *arguments, *(["--resume"] if resume else []))
        if not os.path.exists(out):
            return done, None
        with open(out, encoding="utf-8") as file:
            return done, json.load(file)

    def check_head(self, results, part):
        """What results of all parts have."""
        self.assertEqual(results["part"], part)
        for field in ("commit", "machine", "device", "command"):
            self.assertTrue(results[field], field)
        self.assertEqual(results["repeats"], 1)
        self.assertEqual([run["command"] for run in results["runs"]][-1], results["command"])
        for cell in results["cells"]:
            self.assertNotIn("error", cell)
            self.assertLess(cell["run"], len(results["runs"]))

    def test_help_names_the_groups_that_sizes_do_not_change(self):
        self.assertIn("the groups latency and conflicts always have 1024", " ".join(bench("adaptchain", "--help").stdout.split()))

    def refuses(self, part, usage, *pairs):
        """`usage`: what comes before; then pairs of arguments and the words of the answer."""
        for arguments, words in pairs:
            done, _ = self.bench(part, *usage, *arguments)
            self.assertEqual(done.returncode, 1 if "--data" in arguments else 2, done.stderr)
            self.assertIn(words, done.stderr)

    ADAPTCHAIN = ("--device", "opencl", "--seconds", "0.1", "--tuning", "pool_slots: 2048, units_per_launch: 2")

    def adaptchain(self, *arguments, resume=False):
        return self.bench("adaptchain", *self.ADAPTCHAIN, *arguments, resume=resume)

    def test_adaptchain_measures_and_checks(self):
        done, results = self.adaptchain("--chains", "C4,C4-decrypt", "--sizes", "64,512", "--modes", "copy, staged,adaptive",
                                        "--groups", "source,throughput,decrypt,latency", "--replicas", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_head(results, "adaptchain")
        kinds = {}
        for cell in results["cells"]:
            kinds.setdefault(cell["group"], []).append(cell)
            self.assertEqual(cell["replicas"], 2)
            self.assertGreaterEqual(cell["samples"]["compared"], 256, cell)
            self.assertEqual(cell["samples"]["different"], 0, cell)
            for repeat in cell["repeats"]:
                self.assertGreater(repeat["received"], 0)
                # of a window: at either end of it chains hold up to their pools
                self.assertLessEqual(abs(repeat["received"] - repeat["sent"]), 2 * 2048)
                self.assertEqual(repeat["dropped"], 0)
                self.assertLessEqual(repeat["latency_us"]["p50"], repeat["latency_us"]["p95"])
                self.assertEqual([stage["name"] for stage in repeat["stages"]],
                                 ["rx", "tx"] if cell["group"] == "source" else ["rx", "fw", "vpn", "ids", "rt", "tx"])
        self.assertEqual({group: len(cells) for group, cells in kinds.items()},
                         {"anchor": 2, "source": 4, "throughput": 4, "decrypt": 4, "latency": 4})
        self.assertGreater(results["runs"][0]["copy_gb_per_s"], 0)
        compared = sum(cell["samples"]["compared"] for cell in results["cells"])
        self.assertIn(f"18 measurements, 0 failed; {compared} packets compared with the CPU's, 0 different", done.stdout)
        by_mode = {cell["mode"]: cell["repeats"][0] for cell in kinds["throughput"] if cell["wire_bytes"] == 512}
        # copy moves the frame for IPsec and again the payload for the NIDS
        self.assertGreater(by_mode["copy, staged"]["bytes_to_device"], 508 + 400)
        self.assertLess(by_mode["adaptive"]["bytes_to_device"], by_mode["copy, staged"]["bytes_to_device"])
        for cell in kinds["latency"]:
            self.assertEqual([percent for _, percent in cell["latency_cdf"]], list(range(101)))
            self.assertEqual(cell["latency_cdf"], sorted(cell["latency_cdf"]))
        self.assertIn("[16/16] latency, C4", done.stderr)
        page = adaptchain.page(Results(results))
        self.assertIn("## C4: firewall(G) ipsec(G) nids(G) router(C), figure 13", page.markdown())
        for rate in (10, 100):
            self.assertIn("vpn device 1", [row["name"] for row in page.figures[f"c4-timeline-{rate}"]["rows"]])

    def test_adaptchain_takes_launches_apart_and_keeps_that(self):
        options = ("--sizes", "64", "--groups", "stages,batch,conflicts")
        done, results = self.adaptchain(*options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_head(results, "adaptchain")
        cells = {(cell["group"], cell["chain"], cell["mode"]): cell for cell in results["cells"]}
        gpu_nfs = {"F": ["fw"], "F-I": ["fw", "vpn"], "F-I-N": ["fw", "vpn", "ids"], "C3": ["vpn", "ids"], "IPsec": ["vpn"],
                   "IPsec-resident": ["before", "vpn", "behind"], "NIDS": ["ids"],
                   "NIDS-resident": ["before", "ids", "behind"]}
        phases = ["fill", "submit", "to device", "kernel", "to host", "deliver"]
        traced = set()
        for (group, chain, _), cell in cells.items():
            self.assertEqual(cell["samples"]["different"], 0, cell)
            repeat, = cell["repeats"]
            if group == "anchor":
                self.assertNotIn("launches", repeat)
                continue
            self.assertEqual([nf["name"] for nf in repeat["nfs"]], gpu_nfs[chain])
            found = repeat.get("launches", [])
            # on a busy machine an NF may have no launch in so short a run that begins and ends in it
            self.assertLessEqual({launches["name"] for launches in found}, set(gpu_nfs[chain]))
            traced |= {launches["name"] for launches in found}
            for launches in found:
                self.assertEqual(launches["packets"], 1024 * launches["launches"], (chain, launches))
                self.assertEqual(list(launches["median_us"]), phases)
                self.assertGreater(launches["median_us"]["kernel"], 0)
        self.assertEqual(traced, {nf for nfs in gpu_nfs.values() for nf in nfs})
        bytes_of = {chain: {nf["name"]: nf["bytes_to_device"] for nf in cell["repeats"][0]["nfs"]}
                    for (group, chain, _), cell in cells.items() if group == "stages"}
        # on the device already: no frame, no payload
        self.assertLess(bytes_of["IPsec-resident"]["vpn"], bytes_of["IPsec"]["vpn"] / 2)
        self.assertLess(bytes_of["NIDS-resident"]["ids"], bytes_of["NIDS"]["ids"] / 2)
        page = adaptchain.page(Results(results))
        self.assertLessEqual({"ipsec-parts", "nids-parts", "c3-batch", "conflicts"}, set(page.figures))
        for heading in ("on the device, figure 1", "of C3, figure 11(b)", "of moves, figure 3"):
            self.assertIn(heading, page.markdown())
        done, again = self.adaptchain(*options, resume=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"kept (\d+) of \1 measurements of earlier runs")
        self.assertEqual([cell for cell in results["cells"] if cell["group"] != "anchor"],
                         [cell for cell in again["cells"] if cell["group"] != "anchor"])

    def test_adaptchain_keeps_whole_tables_and_measures_the_others(self):
        options = ("--sizes", "64", "--modes", "copy,adaptive", "--groups", "throughput")
        self.assertEqual(self.adaptchain("--chains", "C1", *options)[0].returncode, 0)
        done, second = self.adaptchain("--chains", "C1,C4", *options, resume=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("kept 2 of 4 measurements of earlier runs", done.stderr)
        self.assertEqual(sorted((cell["group"], cell["chain"], cell["run"]) for cell in second["cells"]),
                         [("anchor", "C4", 0)] * 2 + [("anchor", "C4", 1)] * 2 + [("throughput", "C1", 0)] * 2 +
                         [("throughput", "C4", 1)] * 2)
        # a table that lacks something is measured as a whole
        next(cell for cell in second["cells"] if cell["chain"] == "C1")["repeats"].clear()
        with open(self.path("adaptchain.json"), "w", encoding="utf-8") as file:
            json.dump(second, file)
        done, third = self.adaptchain("--chains", "C1,C4", *options, resume=True)
        self.assertIn("kept 2 of 4 measurements of earlier runs", done.stderr)
        self.assertEqual([(cell["chain"], cell["run"]) for cell in third["cells"] if cell["group"] == "throughput"],
                         [("C1", 2), ("C1", 2), ("C4", 1), ("C4", 1)])
        third["commit"] = "another"
        for text, words in ((json.dumps(third), 'are of part "adaptchain", commit "another"'), ("{}", "is no result of this part"),
                            ("{", "is no JSON")):
            with open(self.path("adaptchain.json"), "w", encoding="utf-8") as file:
                file.write(text)
            done = bench("adaptchain", "--quick", "--out", self.path("adaptchain.json"), *self.ADAPTCHAIN, *options, "--resume")
            self.assertEqual(done.returncode, 1)
            self.assertIn(words, done.stderr)

    def test_adaptchain_says_what_it_does_not_know(self):
        self.refuses("adaptchain", self.ADAPTCHAIN, (("--chains", "C6"), "--chains: there is no 'C6'; allowed: C1, C2"),
                     (("--groups", "cost"), "--groups: there is no 'cost'; allowed: source"),
                     (("--sizes", "63"), "--sizes: there is no '63'; allowed: 64 to 1518"),
                     (("--repeats", "010"), "--repeats: '010' is no decimal number; write 10 without leading zeros"),
                     (("--replicas", "none"), "--replicas: there is no 'none'; allowed: best, or 1 to 64"),
                     (("--data", self.path("no")), "fw.rules; give the folder bench/chains/data"))
        done = bench("adaptchain", "--quick")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--out", done.stderr)

    ISOPTR = ADAPTCHAIN

    def test_isoptr_measures_with_checks_and_without(self):
        done, results = self.bench("isoptr", *self.ISOPTR, "--sizes", "64,512", "--packets", "256")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_head(results, "isoptr")
        names = {}
        for cell in results["cells"]:
            names.setdefault(cell["group"], []).append((cell["chain"], cell["wire_bytes"]))
            self.assertEqual(cell["samples"]["different"], 0, cell)
            # with checks and without: of a kernel a packet of each flow, of a chain at least a run each
            self.assertGreaterEqual(cell["samples"]["compared"], 2 * (1024 if cell["group"] == "kernels" else 256), cell)
            repeat, = cell["repeats"]
            self.assertGreater(min(repeat["checked_ns"], repeat["unchecked_ns"]), 0)
            if cell["group"] == "chains":
                self.assertLessEqual({"moves", "kernels", "rx", "vpn", "ids", "tx"}, {one["what"] for one in cell["busy"]})
        kernels = ["firewall", "ipsec-encrypt", "ipsec-decrypt", "nids", "nat", "lb", "router", "monitor", "remark"]
        self.assertEqual(names["kernels"], [(name, size) for name in kernels for size in (64, 512)])
        self.assertEqual(names["chains"], [(name, size) for name in ("S_a", "S_b", "S_c", "S_d") for size in (64, 512)])
        made = Results(results)
        self.assertNotIn("-", [isoptr.limit_of(made, cell) for cell in results["cells"]])
        page = isoptr.page(made)
        self.assertIn("- S_d: firewall(G) ipsec(G) nids(G) router(G)", page.markdown())
        self.assertEqual(set(page.figures), {"kernels-256", "chains"})

    def test_isoptr_says_what_it_does_not_know(self):
        self.refuses("isoptr", self.ISOPTR, (("--groups", "all"), "there is no 'all'; allowed: kernels, chains"),
                     (("--chains", "cipher"), "there is no 'cipher'; allowed: firewall"),
                     (("--repeats", "0"), "seconds and repeats must be above 0"),
                     (("--data", self.path("no")), "fw.rules; give the folder bench/chains/data"))

    def test_catena_has_no_way_to_run_without_checks(self):
        """No option, and nothing of the program that changes the header."""
        catena = pathlib.Path(BENCH).parent.parent / "src" / "apps" / "catena" / "catena"
        self.assertIn(b"kChecked = false", pathlib.Path(BENCH).read_bytes())
        text = catena.read_bytes()
        self.assertIn(b"bool kChecked = true;", text, "the header that it compiles")
        self.assertNotIn(b"kChecked = false", text)
        self.assertNotIn(b"accesses not checked", text)

    def test_nca_measures_and_checks(self):
        done, results = self.bench("nca", "--device", "opencl", "--streams", "2", "--threads", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_head(results, "nca")
        self.assertTrue(results["device"].startswith("opencl: "))
        kinds = {}
        for cell in results["cells"]:
            kinds.setdefault(cell["group"], []).append(cell)
            self.assertGreater(min(cell["hyperscan_core_gbps"]), 0)
            for repeat in cell["repeats"]:
                self.assertGreater(repeat["gbps"], 0)
                # the warm-up's last, three that are measured, and what is in flight
                self.assertGreaterEqual(repeat["buffers"], 4 * cell["streams"])
                if cell["matching_percent"] == 0:
                    self.assertEqual(repeat["matches"], 0)
                else:
                    # a packet that matches has a string, and few have another one in it
                    self.assertAlmostEqual(repeat["matches"] / repeat["packets"], 0.4, delta=0.1)
            bytes_each = repeat["gbps"] / repeat["mpps"] * 1000 / 8
            self.assertAlmostEqual(bytes_each, cell["packet_bytes"] or 583, delta=0.001 if cell["packet_bytes"] else 40)
        self.assertEqual([(cell["strings"], cell["packet_bytes"], cell["matching_percent"]) for cell in kinds["draft"]],
                         [(1000, 0, 0), (1000, 0, 35), (1000, 64, 0), (1000, 64, 35)])
        self.assertEqual([(cell["queues"], cell["streams"], cell["threads"]) for cell in kinds["queues"]],
                         [(1, 1, 4), (2, 1, 4), (3, 1, 4), (4, 1, 4)])
        self.assertEqual([(cell["streams"], cell["threads"], cell["matching_percent"]) for cell in kinds["streams"]],
                         [(1, 4, 0), (1, 4, 35)])
        self.assertGreater(min(results["runs"][0]["copies_gbps"].values()), 0)
        for cell in kinds["draft"]:
            self.assertGreater(min(cell["batch_us"].values()), 0, cell)
        for cell in kinds["queues"]:
            self.assertTrue(0 <= cell["repeats"][0]["hidden_share"] <= 1, cell)
        # with one buffer nothing is left that a copy could hide behind
        self.assertAlmostEqual(kinds["queues"][0]["repeats"][0]["hidden_share"], 0, places=6)
        for cell in kinds["kernel"]:
            self.assertGreater(cell["repeats"][0]["kernel_gbps"], 0)
        page = nca.page(Results(results))
        self.assertNotIn("failed:", page.markdown())
        self.assertIn("copy time hidden with 3 queues | 95 % on an H200", page.markdown())
        self.assertLessEqual({"queues-gbps", "timeline-3"}, set(page.figures))

    def test_nca_leaves_out_what_a_device_does_not_have_and_says_so(self):
        done, results = self.bench("nca", "--device", "cpu", "--groups", "queues,kernel")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([cell["group"] for cell in results["cells"]], ["queues"] * 4)
        self.assertIn("The group kernel is left out", done.stderr)
        self.assertEqual(len(results["notes"]), 1)

    HAVS = ("--seconds", "0.1", "--connections", "4")

    def havs(self, *arguments):
        if "havs" not in bench("--help").stdout:
            self.skipTest("built without the TCP stack")
        return self.bench("havs", *self.HAVS, *arguments)

    def test_havs_measures_and_checks(self):
        done, results = self.havs("--engine", "free,opencl", "--groups", "core,small,response")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_head(results, "havs")
        alone = ["reference", "cpu", "cpu, streaming stores"]
        ways = alone + [f"{mode}, {engine}" for engine in ("free", "opencl") for mode in ("sync", "async", "full")]
        for group, sizes, connections in (("core", [16384], 4), ("small", [64, 128, 256, 512], 4),
                                          ("response", [64, 1024, 4096, 16384, 65536], 1)):
            self.assertEqual([(cell["body_bytes"], cell["way"], cell["connections"]) for cell in results["cells"]
                              if cell["group"] == group], [(size, way, connections) for size in sizes for way in ways])
        for cell in results["cells"]:
            for repeat in cell["repeats"]:
                self.assertGreater(repeat["gbps_per_core"], 0, cell)
                self.assertGreater(repeat["compared"], 0, cell)
                cycles = repeat["cycles"]
                self.assertGreater(min(cycles["tcp"], cycles["session"]), 0, cell)
                self.assertEqual(cycles["copy"] > 0, cell["way"] != "reference", cell)
                self.assertTrue("free" in cell["way"] or repeat["wrong"] == 0, "an engine without copies brings no bytes")
                if cell["way"] in ("reference", "cpu") or cell["way"].startswith("full") and cell["body_bytes"] < 8192:
                    self.assertEqual(repeat["pieces"]["engine"], 0, cell)
                elif cell["body_bytes"] >= 16384:
                    self.assertGreater(repeat["pieces"]["engine"], 0, cell)
        page = havs.page(Results(results)).markdown()
        self.assertNotIn("failed:", page)
        self.assertIn("### 16,384 B, 4 connections", page)
        self.assertIn("| full, opencl |", page)

    def test_havs_measures_engines_alone(self):
        done, results = self.havs("--groups", "copies", "--sizes", "1024,65536")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_head(results, "havs")
        self.assertLessEqual({"cpu", "opencl", "dmadev-skeleton"}, {cell["engine"] for cell in results["cells"]})
        for cell in results["cells"]:
            points = cell["repeats"][0]["points"]
            self.assertEqual([point["bytes"] for point in points], [1024, 65536])
            self.assertGreater(min(min(point["gbps"], point["cpu_ns"]) for point in points), 0, cell)
        self.assertIn("## Engines alone", havs.page(Results(results)).markdown())

    def test_havs_says_what_it_does_not_know(self):
        self.refuses("havs", self.HAVS, (("--groups", "cost"), "there is no 'cost'; allowed: core"))
        done, _ = self.havs("--groups", "small", "--engine", "abacus")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("copy engine 'abacus' is not known", done.stderr)

    def test_nca_says_what_it_does_not_know(self):
        self.refuses("nca", ("--device", "cpu"), (("--groups", "cost"), "there is no 'cost'; allowed: draft"),
                     (("--queues", "63"), "there is no '63'; allowed: 1 to 62"),
                     (("--data", self.path("no")), "strings.txt; give the folder bench/nca/data"))
        self.refuses("nca", (), (("--device", "gpu"), "there is no 'gpu'; allowed: auto, cuda, opencl, cpu"))


if __name__ == "__main__":
    unittest.main()
