#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""catena-bench as one types it, on OpenCL and with short runs. CATENA_BENCH names the program."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.dom.minidom

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

    def adaptchain(self, *arguments):
        return bench("adaptchain", "--quick", "--device", "opencl", "--seconds", "0.1", "--tuning",
                      "pool_slots: 2048, units_per_launch: 2", "--output", self.path("adaptchain"), *arguments)

    def plot(self, folder, figures):
        """tools/plot draws each figure, as SVG and PNG; with Debian's Python, as Matplotlib is Debian's."""
        tool = pathlib.Path(__file__).resolve().parents[2] / "tools" / "plot"
        subprocess.run(["/usr/bin/python3", tool, self.path(folder)], check=True, capture_output=True)
        for figure in figures:
            xml.dom.minidom.parse(self.path(f"{folder}/{figure}.svg"))
            with open(self.path(f"{folder}/{figure}.png"), "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")

    def test_adaptchain_measures_checks_and_writes_its_page(self):
        result = self.adaptchain("--chains", "C4,C4-decrypt", "--sizes", "64,512", "--modes", "copy, staged;adaptive", "--parts",
                                 "source,throughput,decrypt,latency",
                                  "--replicas", "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("adaptchain/results.json"), encoding="utf-8") as file:
            results = json.load(file)
        kinds = {}
        for cell in results["cells"]:
            kinds.setdefault(cell["part"], []).append(cell)
            self.assertNotIn("error", cell)
            self.assertEqual(cell["replicas"], 2)
            self.assertGreaterEqual(cell["samples"]["compared"], 256, cell)
            self.assertEqual(cell["samples"]["different"], 0, cell)
            for repeat in cell["repeats"]:
                self.assertGreater(repeat["received_packets"], 0)
                self.assertEqual(repeat["received_packets"], repeat["sent_packets"])
                self.assertEqual(repeat["dropped_packets"], 0)
                self.assertLessEqual(repeat["latency_us"]["p50"], repeat["latency_us"]["p95"])
                self.assertEqual([stage["name"] for stage in repeat["stages"]],
                                 ["rx", "tx"] if cell["part"] == "source" else ["rx", "fw", "vpn", "ids", "rt", "tx"])
            self.assertLessEqual(cell["gbps"]["min"], cell["gbps"]["median"])
            self.assertAlmostEqual(cell["gbps"]["median"],
                                   cell["packets_per_second"]["median"] * cell["wire_bytes"] * 8 / 1e9, places=6)
        self.assertEqual({part: len(cells) for part, cells in kinds.items()},
                         {"anchor": 2, "source": 4, "throughput": 4, "decrypt": 4, "latency": 4})
        self.assertEqual(len(results["runs"]), 1)
        self.assertGreater(results["runs"][0]["copy_gb_per_s"], 0)
        self.assertEqual(results["samples"], {"compared": sum(cell["samples"]["compared"] for cell in results["cells"]),
                                              "different": 0})
        by_mode = {cell["mode"]: cell["repeats"][0] for cell in kinds["throughput"] if cell["wire_bytes"] == 512}
        # copy moves the frame for IPsec and again the payload for the NIDS
        self.assertGreater(by_mode["copy, staged"]["host_to_device_bytes_per_packet"], 508 + 400)
        self.assertLess(by_mode["adaptive"]["host_to_device_bytes_per_packet"],
                        by_mode["copy, staged"]["host_to_device_bytes_per_packet"])
        for cell in kinds["latency"]:
            percents = [point["percent"] for point in cell["latency_cdf"]]
            times = [point["us"] for point in cell["latency_cdf"]]
            self.assertEqual((percents, times), (list(range(101)), sorted(times)))
        with open(self.path("adaptchain/README.md"), encoding="utf-8") as file:
            page = file.read()
        figures = results["figures"]
        for rate in (10, 100):
            self.assertIn(f"c4-timeline-{rate}.svg", page)
            self.assertIn("vpn device 1", [row["name"] for row in figures[f"c4-timeline-{rate}"]["rows"]])
        self.plot("adaptchain", figures)
        for figure in re.findall(r"\(([^)]*\.svg)\)", page):
            self.assertTrue(os.path.exists(self.path("adaptchain/" + figure)), figure)
        self.assertIn(f"[{len(results['cells'])}/{len(results['cells'])}]", result.stderr)

    def test_adaptchain_takes_launches_apart_and_keeps_that(self):
        options = ("--sizes", "64", "--parts", "stages,batch,conflicts")
        result = self.adaptchain(*options)
        self.assertEqual(result.returncode, 0, result.stderr)
        path = self.path("adaptchain/results.json")
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
        cells = {(cell["part"], cell["chain"], cell["mode"]): cell for cell in results["cells"]}
        gpu_nfs = {"F": ["fw"], "F-I": ["fw", "vpn"], "F-I-N": ["fw", "vpn", "ids"], "C3": ["vpn", "ids"], "IPsec": ["vpn"],
                   "IPsec-resident": ["before", "vpn", "behind"], "NIDS": ["ids"],
                   "NIDS-resident": ["before", "ids", "behind"]}
        phases = ["fill", "submit", "to device", "kernel", "to host", "deliver"]
        traced = set()
        for (part, chain, _), cell in cells.items():
            self.assertNotIn("error", cell)
            self.assertEqual(cell["samples"]["different"], 0, cell)
            repeat, = cell["repeats"]
            if part == "anchor":
                self.assertNotIn("launches", repeat)
                continue
            self.assertEqual([nf["name"] for nf in repeat["nfs"]], gpu_nfs[chain])
            # on a busy machine an NF may have no launch in so short a run that begins and ends in it
            self.assertLessEqual({launches["nf"] for launches in repeat["launches"]}, set(gpu_nfs[chain]))
            traced |= {launches["nf"] for launches in repeat["launches"]}
            for launches in repeat["launches"]:
                self.assertEqual(launches["packets"], 1024 * launches["launches"], (chain, launches))
                self.assertEqual(list(launches["median_us"]), phases)
                self.assertGreater(launches["median_us"]["kernel"], 0)
        self.assertEqual(traced, {nf for nfs in gpu_nfs.values() for nf in nfs})
        bytes_of = {chain: {nf["name"]: nf["host_to_device_bytes_per_packet"] for nf in cell["repeats"][0]["nfs"]}
                    for (part, chain, _), cell in cells.items() if part == "stages"}
        # on the device already: no frame, no payload
        self.assertLess(bytes_of["IPsec-resident"]["vpn"], bytes_of["IPsec"]["vpn"] / 2)
        self.assertLess(bytes_of["NIDS-resident"]["ids"], bytes_of["NIDS"]["ids"] / 2)
        with open(self.path("adaptchain/README.md"), encoding="utf-8") as file:
            page = file.read()
        self.assertLessEqual({"ipsec-parts", "nids-parts", "c3-batch", "conflicts"}, set(results["figures"]))
        for heading in ("on the device, figure 1", "of C3, figure 11(b)", "of moves, figure 3"):
            self.assertIn(heading, page)
        self.plot("adaptchain", results["figures"])
        result = self.adaptchain(*options, "--resume")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("kept 12 measurements of earlier runs", result.stderr)
        with open(path, encoding="utf-8") as file:
            again = json.load(file)
        self.assertEqual([cell for cell in results["cells"] if cell["part"] != "anchor"],
                         [cell for cell in again["cells"] if cell["part"] != "anchor"])

    def test_adaptchain_keeps_whole_tables_and_measures_the_others(self):
        options = ("--chains", "C1", "--sizes", "64", "--modes", "copy;adaptive", "--parts", "throughput")
        self.assertEqual(self.adaptchain(*options).returncode, 0)
        path = self.path("adaptchain/results.json")
        with open(path, encoding="utf-8") as file:
            first = json.load(file)
        more = ("--chains", "C1,C4", *options[2:], "--resume")
        result = self.adaptchain(*more)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("kept 2 measurements of earlier runs", result.stderr)
        with open(path, encoding="utf-8") as file:
            second = json.load(file)
        self.assertEqual([(cell["part"], cell["chain"], cell["run"]) for cell in second["cells"]],
                         [("anchor", "C4", 0)] * 2 + [("anchor", "C4", 1)] * 2 + [("throughput", "C1", 0)] * 2 +
                         [("throughput", "C4", 1)] * 2)
        self.assertEqual([cell for cell in first["cells"] if cell["part"] == "throughput"], second["cells"][4:6])
        # a table that lacks something is measured as a whole
        del second["cells"][5]["repeats"][0]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(second, file)
        self.assertIn("kept 2 measurements of earlier runs", self.adaptchain(*more).stderr)
        with open(path, encoding="utf-8") as file:
            self.assertEqual([cell["run"] for cell in json.load(file)["cells"][6:]], [2, 2, 1, 1])
        second["commit"] = "another"
        for text, words in ((json.dumps(second), "are of commit another"), ("{}", "is no result of this benchmark"),
                            (json.dumps({"benchmark": "adaptchain"}), "results.json: ")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            result = self.adaptchain(*more)
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stderr)

    def test_adaptchain_says_what_it_does_not_know(self):
        for arguments, words in ((("--chains", "C6"), "there is no chain 'C6'; allowed: C1, C2"),
                                 (("--parts", "cost"), "there is no part 'cost'; allowed: source"),
                                 (("--sizes", "63"), "frames of 63 bytes: write 64 to 1518"),
                                 (("--data", self.path("no")), "fw.rules; give the folder bench/chains/data")):
            result = self.adaptchain(*arguments)
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stderr)
        self.assertEqual(self.adaptchain("--replicas", "none").returncode, 2)

    def isoptr(self, *arguments):
        return bench("isoptr", "--quick", "--device", "opencl", "--seconds", "0.1", "--tuning",
                     "pool_slots: 2048, units_per_launch: 2", "--output", self.path("isoptr"), *arguments)

    def test_isoptr_measures_with_checks_and_without_and_writes_its_page(self):
        result = self.isoptr("--sizes", "64,512", "--packets", "256")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("isoptr/results.json"), encoding="utf-8") as file:
            results = json.load(file)
        self.assertEqual(results["failed_cells"], 0)
        names = {}
        for cell in results["cells"]:
            names.setdefault(cell["part"], []).append((cell["name"], cell["wire_bytes"]))
            for checks in ("checked", "unchecked"):
                samples = cell["samples"][checks]
                self.assertEqual(samples["different"], 0, cell)
                # of a kernel a packet of each flow, of a chain at least a run
                self.assertGreaterEqual(samples["compared"], 1024 if cell["part"] == "kernels" else 256, cell)
            repeat, = cell["repeats"]
            self.assertAlmostEqual(cell["overhead_percent"]["median"],
                                   100 * (repeat["checked_ns_per_packet"] / repeat["unchecked_ns_per_packet"] - 1), places=6)
            self.assertNotEqual(cell["limit"], "-", cell)
            if cell["part"] == "chains":
                self.assertLessEqual({"moves", "kernels", "rx", "vpn", "ids", "tx"}, set(cell["busy"]))
        kernels = ["firewall", "ipsec-encrypt", "ipsec-decrypt", "nids", "nat", "lb", "router", "monitor", "remark"]
        self.assertEqual(names["kernels"], [(name, size) for name in kernels for size in (64, 512)])
        self.assertEqual(names["chains"], [(name, size) for name in ("S_a", "S_b", "S_c", "S_d") for size in (64, 512)])
        with open(self.path("isoptr/README.md"), encoding="utf-8") as file:
            page = file.read()
        self.assertNotIn("failed:", page)
        self.assertIn("- S_d: firewall(G) ipsec(G) nids(G) router(G)", page)
        self.plot("isoptr", results["figures"])
        for figure in re.findall(r"\(([^)]*\.svg)\)", page):
            self.assertTrue(os.path.exists(self.path("isoptr/" + figure)), figure)

    def test_isoptr_says_what_it_does_not_know(self):
        for arguments, words in ((("--parts", "all"), "there is no part 'all'; allowed: kernels, chains"),
                                 (("--names", "cipher"), "there is no kernel or chain 'cipher'; allowed: firewall"),
                                 (("--data", self.path("no")), "fw.rules; give the folder bench/chains/data")):
            result = self.isoptr(*arguments)
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stderr)
        self.assertEqual(self.isoptr("--repeats", "0").returncode, 2)

    def test_catena_has_no_way_to_run_without_checks(self):
        """No option, and nothing of the program that changes the header."""
        catena = pathlib.Path(BENCH).parent.parent / "src" / "cli" / "catena"
        with open(BENCH, "rb") as file:
            self.assertIn(b"accesses not checked", file.read())
        with open(catena, "rb") as file:
            text = file.read()
        self.assertIn(b"bool kChecked = true;", text, "the header that it compiles")
        self.assertNotIn(b"kChecked = false", text)
        self.assertNotIn(b"accesses not checked", text)

    def nca(self, *arguments):
        return bench("nca", "--quick", "--output", self.path("nca"), *arguments)

    def test_nca_measures_checks_and_writes_its_page(self):
        result = self.nca("--device", "opencl", "--streams", "2", "--threads", "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("nca/results.json"), encoding="utf-8") as file:
            results = json.load(file)
        self.assertTrue(results["device"].startswith("opencl: "))
        self.assertEqual(results["failed_cells"], 0)
        kinds = {}
        for cell in results["cells"]:
            kinds.setdefault(cell["part"], []).append(cell)
            self.assertNotIn("error", cell)
            self.assertGreater(cell["hyperscan_core_gbps"]["median"], 0)
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
        self.assertGreater(min(results["copies_gbps"].values()), 0)
        for cell in kinds["draft"]:
            self.assertGreater(min(cell["batch_us"].values()), 0, cell)
        for cell in kinds["queues"]:
            self.assertTrue(0 <= cell["hidden_share"]["median"] <= 1, cell)
        # with one buffer nothing is left that a copy could hide behind
        self.assertAlmostEqual(kinds["queues"][0]["hidden_share"]["median"], 0, places=6)
        for cell in kinds["kernel"]:
            self.assertAlmostEqual(cell["ratio"], cell["gbps"]["median"] / cell["kernel_gbps"]["median"], places=6)
        with open(self.path("nca/README.md"), encoding="utf-8") as file:
            page = file.read()
        self.assertNotIn("failed:", page)
        self.assertIn("copy time hidden with 3 queues | 95 % on an H200", page)
        self.assertLessEqual({"queues-gbps", "timeline-3"}, set(results["figures"]))
        self.plot("nca", results["figures"])

    def test_nca_leaves_out_what_a_device_does_not_have_and_says_so(self):
        result = self.nca("--device", "cpu", "--parts", "queues,kernel")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("nca/results.json"), encoding="utf-8") as file:
            results = json.load(file)
        self.assertEqual([cell["part"] for cell in results["cells"]], ["queues"] * 4)
        self.assertIn("The part kernel is left out", result.stderr)

    def test_nca_says_what_it_does_not_know(self):
        for arguments, words in ((("--parts", "cost"), "there is no part 'cost'; allowed: draft"),
                                 (("--data", self.path("no")), "strings.txt; give the folder bench/nca/data")):
            result = self.nca("--device", "cpu", *arguments)
            self.assertEqual(result.returncode, 1)
            self.assertIn(words, result.stderr)
        self.assertEqual(self.nca("--device", "gpu").returncode, 2)


if __name__ == "__main__":
    unittest.main()
