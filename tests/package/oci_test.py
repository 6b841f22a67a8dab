#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The container image in out/, unpacked as an engine would: `make oci-test`. Needs root.

Its program is held to what the package is held to; nothing else is needed, and there is no network.
"""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from installed import Installed, Root, SOURCE

OUT = SOURCE / "out"


class Image(Installed, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="oci-root-", dir=OUT))
        cls.addClassCleanup(shutil.rmtree, folder)
        (cls.archive,) = OUT.glob("catena_*_oci.tar")
        layout = folder / "layout"
        layout.mkdir()
        subprocess.run(["tar", "-C", layout, "-xf", cls.archive], check=True)
        (manifest,) = json.loads((layout / "index.json").read_text())["manifests"]
        tag = manifest["annotations"]["org.opencontainers.image.ref.name"]
        subprocess.run(["umoci", "unpack", "--image", f"{layout}:{tag}", folder / "bundle"], check=True)
        cls.config = json.loads((folder / "bundle" / "config.json").read_text())
        cls.root = Root(folder / "bundle" / "rootfs")
        cls.root.make_user()

    def test_without_arguments_it_says_how_it_is_used(self):
        self.assertEqual(self.config["process"]["args"], ["catena", "--help"])
        environment = self.config["process"]["env"]
        said = self.root.call("env", "-i", *environment, *self.config["process"]["args"])
        self.assertIn("Usage: catena", said)

    def test_another_program_reads_it(self):
        image = json.loads(subprocess.run(["skopeo", "inspect", f"oci-archive:{self.archive}"], check=True,
                                          capture_output=True, text=True).stdout)
        self.assertEqual(len(image["Layers"]), 2)
        self.assertEqual(image["Labels"]["org.opencontainers.image.version"], self.archive.name.split("_")[1])

    def test_nothing_of_its_making_is_left(self):
        for name in ("catena_*.deb", "var/lib/apt/lists/*", "var/cache/apt/archives/*.deb", "etc/resolv.conf"):
            left = [path for path in self.root.folder.glob(name) if path.is_file() and path.stat().st_size > 0]
            self.assertEqual(left, [], name)


if __name__ == "__main__":
    unittest.main()
