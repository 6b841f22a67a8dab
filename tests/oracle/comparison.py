# SPDX-License-Identifier: Apache-2.0
"""Runs Catena over frames that another program reads, too, for the oracles of this folder that compare both. A script that
uses it takes CATENA [--device none].
"""
import argparse
import contextlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from frames import write_frames

CHAIN = """apiVersion: catena/v1
kind: Chain
metadata: {{name: oracle}}
spec:
  rx: {{pcap: in.pcap}}
  tx: {{pcap: out.pcap}}
  device: {device}
  shards: {shards}
  nfs:
"""


class Comparison:
    """A folder with in.pcap, for Catena and for another program."""

    def __init__(self, folder, options):
        self.folder = folder
        self.options = options

    def seen_by_tshark(self, *fields, options=()):
        """These fields of each frame, as a tuple. Without tshark the script is skipped."""
        if shutil.which("tshark") is None:
            print("tshark is not installed")
            sys.exit(77)
        words = [word for name in fields for word in ("-e", name)]
        output = subprocess.run(["tshark", "-n", *options, "-r", self.folder / "in.pcap", "-T", "fields", *words], check=True,
                                capture_output=True, text=True).stdout
        return [tuple(line.split("\t")) for line in output.splitlines()]

    def run(self, shards, nfs, *options):
        """The output of `catena run`. `nfs`: of each its name and its other keys; all run on the device, if there is one."""
        device = self.options.device
        place = "cpu" if device == "none" else "gpu"
        lines = [f"    - {{name: {name}, on: {place}, {keys}}}\n" for name, keys in nfs.items()]
        for old in self.folder.glob("*.json*"):  # lines are appended
            old.unlink()
        (self.folder / "chain.yaml").write_text(CHAIN.format(device=device, shards=shards) + "".join(lines))
        return subprocess.run([self.options.catena, "run", "chain.yaml", "--record", "rec.jsonl", "-q", *options],
                              cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True).stdout

    def lines(self, name):
        """The values of a file of JSON lines."""
        return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]


@contextlib.contextmanager
def comparison(sent, files):
    """A Comparison of frames. `files`: texts that chains name, by file name. The folder is removed at the end."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("catena")
    arguments.add_argument("--device", default="none")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, text in files.items():
            (folder / file).write_text(text)
        write_frames(folder / "in.pcap", sent)
        yield Comparison(folder, options)
