#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of chain files against the chain files of the tree, and against what `catena check` refuses.

CATENA_BIN names the program, CATENA_SOURCE the source tree.
"""

import copy
import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

import yaml

try:
    import jsonschema
except ImportError:
    jsonschema = None

BIN = os.environ["CATENA_BIN"]
SOURCE = os.environ["CATENA_SOURCE"]
TIMEOUT_S = 120
CORE = min(os.sched_getaffinity(0))  # one that chains may use

GOOD = {"apiVersion": "catena/v1", "kind": "Chain", "metadata": {"name": "a"},
        "spec": {"rx": {"generator": {"packet": "imix"}}, "tx": None,
                 "nfs": [{"name": "rm", "type": "remark", "on": "gpu", "config": {"map": [{"from": 1, "to": 2}]}}]}}


class Loader(yaml.SafeLoader):
    """YAML 1.2, as yaml-cpp and editors read it: `on` is a word."""


Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))


def catena(*arguments):
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        result = catena("show", "schema")
        assert result.returncode == 0, result.stderr
        cls.schema = json.loads(result.stdout)
        validator = jsonschema.validators.validator_for(cls.schema)
        validator.check_schema(cls.schema)
        cls.validator = validator(cls.schema)

    def test_the_chains_of_the_tree_are_valid(self):
        files = glob.glob(os.path.join(SOURCE, "examples", "**", "*.yaml"), recursive=True)
        chains = []
        for path in files:
            with open(path, encoding="utf-8") as file:
                document = yaml.load(file, Loader)
            if isinstance(document, dict) and document.get("kind") == "Chain":
                chains.append(path)
                self.validator.validate(document)
        self.assertGreaterEqual(len(chains), 5)

    def test_the_pages_have_the_kinds_of_rx_and_tx_and_all_keys(self):
        check = subprocess.run([os.path.join(SOURCE, "tools", "render-keys"), "--check"], input=json.dumps(self.schema),
                               capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        self.assertEqual(check.returncode, 0, check.stderr)
        pages = ""
        for name in ("chain-file", "traffic", "graph", "overload", "isolation"):
            with open(os.path.join(SOURCE, "docs", f"{name}.md"), encoding="utf-8") as page:
                pages += page.read()

        def names_in(schema):
            for name, value in schema.get("properties", {}).items():
                yield name
                for part in (value, value.get("items", {}), *value.get("anyOf", ())):
                    yield from names_in(part)
        for name in set(names_in(self.schema)):
            self.assertRegex(pages, rf"`([a-z]+\.)*{name}[`:]", f"docs have no key '{name}'")

    def test_schema_and_check_agree(self):
        def changed(*path, value):
            document = copy.deepcopy(GOOD)
            place = document
            for key in path[:-1]:
                place = place[key]
            if value is KeyError:
                del place[path[-1]]
            else:
                place[path[-1]] = value
            return document

        nf = ("spec", "nfs", 0)
        for document, is_good in ((GOOD, True),
                                  (changed("apiVersion", value="catena/v2"), False),
                                  (changed("kind", value=KeyError), False),
                                  (changed("metadata", "name", value="a b"), False),
                                  (changed("metadata", "name", value="a" * 65), False),
                                  (changed("spec", "devise", value="auto"), False),
                                  (changed("spec", "device", value="opencl"), True),
                                  (changed("spec", "device", value="gpu"), False),
                                  (changed("spec", "rx", value={}), False),
                                  (changed("spec", "rx", value={"dpdk": "net_null0"}), True),
                                  (changed("spec", "rx", value={"dpdk": ["net_null0", "net_null1"]}), True),
                                  (changed("spec", "rx", value={"dpdk": []}), False),
                                  (changed("spec", "rx", value={"dpdk": ["net_null0", "net_null0"]}), False),
                                  (changed("spec", "rx", value={"dpdk": "net_null0", "generator": {}}), False),
                                  (changed("spec", "rx", value={"dev": "veth0"}), True),
                                  (changed("spec", "rx", value={"dev": "veth0", "dpdk": "net_null0"}), False),
                                  (changed("spec", "link_local", value="drop"), True),
                                  (changed("spec", "link_local", value="forward"), False),
                                  (changed("spec", "rx", "generator", "packet", value=59), False),
                                  (changed("spec", "rx", "generator", "packet", value=1792), True),
                                  (changed("spec", "rx", value={"replay": {"packet": [60, 1793]}}), False),
                                  (changed("spec", "rx", value={"replay": {"packet": [60, 64], "flows": 7}}), True),
                                  (changed("spec", "tx", value=KeyError), False),
                                  (changed("spec", "tx", value={"pcap": "out.pcap"}), True),
                                  (changed("spec", "tuning", value={"unit_packets": 3}), False),
                                  (changed("spec", "outputs", value={"record": "/dev/null"}), True),
                                  (changed("spec", "outputs", value={"rekord": "/dev/null"}), False),
                                  (changed("spec", "workers", value="auto"), True),
                                  (changed("spec", "workers", value=257), False),
                                  (changed("spec", "cores", value=[CORE]), True),
                                  (changed("spec", "cores", value=[]), False),
                                  (changed("spec", "transfers", value={"mode": "copy", "pushdown": "off"}), True),
                                  (changed("spec", "transfers", value={"methods": ["gather", "staged"]}), True),
                                  (changed("spec", "transfers", value={"methods": ["gather", "dma"]}), False),
                                  (changed("spec", "sharing", value={"mode": "fair", "compute_units": 4}), True),
                                  (changed("spec", "sharing", value={"mode": "fair", "parts": "red"}), False),
                                  (changed("spec", "tuning", value={"unit_packets": 4}), True),
                                  (changed("spec", "nfs", value=GOOD["spec"]["nfs"] * 65), False),
                                  (changed(*nf, "on", value="gup"), False),
                                  (changed(*nf, "type", value=KeyError), False),
                                  (changed(*nf, "on_unsupported", value="drop"), True),
                                  (changed(*nf, "link_local", value="drop"), True),
                                  (changed(*nf, "link_local", value="ask"), False),
                                  (changed(*nf, "config", "unlisted", value="drop"), True),
                                  (changed(*nf, "config", "unlisted", value="loose"), False),
                                  (changed(*nf, "config", "mpa", value=[]), False)):
            self.assertEqual(self.validator.is_valid(document), is_good, document)
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                json.dump(document, file)
                file.flush()
                checked = catena("check", file.name)
            self.assertEqual(checked.returncode == 0, is_good, (document, checked.stderr))


if __name__ == "__main__":
    unittest.main()
