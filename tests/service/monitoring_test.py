#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alert rules of examples/monitoring: each metric exists, and promtool takes the rules."""

import json
import pathlib
import re
import shutil
import subprocess
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "monitoring"
METRIC = re.compile(r"\bcatena_\w+")
LABELS_OF_PROMETHEUS = {"le"}


def board_expressions():
    board = json.loads((FOLDER / "grafana.json").read_text())
    texts = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return texts + [each["query"] for each in board["templating"]["list"] if each["type"] == "query"]


def alert_expressions():
    groups = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


class Unit(unittest.TestCase):
    def test_it_shows_no_metrics_to_every_local_user(self):
        unit = (ROOT / "systemd" / "catena.service.in").read_text()
        self.assertEqual(re.findall(r"^ExecStart=(.*)$", unit, re.M), ["@CATENA_PROGRAM@ serve"])


def names_in_code():
    """Of metrics; times are counted in nanoseconds there."""
    sources = [path for kind in ("*.cpp", "*.hpp") for path in (ROOT / "src").rglob(kind)]
    names = {name for path in sources for name in re.findall(r'"(catena_\w+)"', path.read_text())}
    return names | {re.sub("_ns(_total|$)", r"_seconds\1", name) for name in names}


def rows_of_docs():
    """(names, labels) of each row of the tables of docs/metrics.md."""
    for line in (ROOT / "docs" / "metrics.md").read_text().splitlines():
        cells = line.split("|")
        if len(cells) > 3 and "`catena_" in cells[1]:
            yield set(METRIC.findall(cells[1])), set(re.findall(r"`(\w+)`", cells[2]))


class Monitoring(unittest.TestCase):
    def test_each_metric_exists(self):
        counted = names_in_code()
        documented = set().union(*(names for names, _ in rows_of_docs()))
        for text in board_expressions() + alert_expressions():
            names = METRIC.findall(text)
            self.assertTrue(names, text)
            for name in names:
                name = re.sub("_bucket$", "", name)
                with self.subTest(name=name):
                    self.assertIn(name, documented)
                    self.assertIn(name, counted)

    def test_each_label_is_one_of_its_metric(self):
        labels = {name: of | LABELS_OF_PROMETHEUS | {"chain"} for names, of in rows_of_docs() for name in names}
        for text in board_expressions() + alert_expressions():
            for name, chosen in re.findall(r"(catena_\w+){([^}]*)}", text):
                for label in re.findall(r"(\w+)=", chosen):
                    self.assertIn(label, labels[re.sub("_bucket$", "", name)], text)

    def test_a_dashboard_has_each_panel_once(self):
        panels = json.loads((FOLDER / "grafana.json").read_text())["panels"]
        for key in ("id", "title"):
            self.assertEqual(len({panel[key] for panel in panels}), len(panels))
        self.assertEqual(len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}), len(panels))

    @unittest.skipIf(shutil.which("promtool") is None, "promtool (Debian's prometheus) is not installed")
    def test_promtool_takes_the_rules_and_expressions(self):
        done = subprocess.run(["promtool", "check", "rules", FOLDER / "alerts.yml"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rules = {"groups": [{"name": "board", "rules": [
            {"record": f"board:{number}", "expr": text.replace("$chain", ".*")}
            for number, text in enumerate(board_expressions()) if not text.startswith("label_values")]}]}
        done = subprocess.run(["promtool", "check", "rules", "/dev/stdin"], input=yaml.safe_dump(rules), capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
