#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make deb` goes by that can be tried without building anything: the version, and what is added at packing.

The packages themselves are tried by `make deb-test`.
"""

import gzip
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATE = "2026-03-04T23:30:00-02:00"  # the next day in UTC


def sorted_by_debian(low, high):
    return subprocess.run(["dpkg", "--compare-versions", low, "lt", high], check=False).returncode == 0


class Version(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name) / "tree"
        (self.tree / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "package-version", self.tree / "tools")
        self.set_version("1.2.0")

    def set_version(self, version):
        (self.tree / "CMakeLists.txt").write_text(f"project(catena VERSION {version} LANGUAGES C CXX)\n")

    def run_in_tree(self, *words):
        person = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
                  for what, value in (("NAME", "a"), ("EMAIL", "a@localhost"), ("DATE", DATE))}
        return subprocess.run([str(word) for word in words], cwd=self.tree, capture_output=True, text=True, check=False,
                              env={**os.environ, **person, "GIT_CONFIG_GLOBAL": os.devnull,
                                   "GIT_CEILING_DIRECTORIES": str(self.tree.parent)})

    def git(self, *words):
        done = self.run_in_tree("git", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def commit(self):
        if not (self.tree / ".git").exists():
            self.git("init", "--quiet")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "more")
        return f"git20260305.{self.git('rev-parse', '--short=7', 'HEAD')}"

    def version(self):
        done = self.run_in_tree(self.tree / "tools" / "package-version")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.strip()

    def test_before_at_and_after_its_tag(self):
        before = self.version_after(self.commit(), "~")
        self.git("tag", "v1.2.0")
        self.assertEqual(self.version(), "1.2.0")
        after = self.version_after(self.commit(), "+")
        for low, high in ((before, "1.2.0"), ("1.2.0", after), (after, "1.2.1~git20260306.0000000")):
            self.assertTrue(sorted_by_debian(low, high), f"{low} {high}")

    def version_after(self, commit, sign):
        self.assertEqual(self.version(), f"1.2.0{sign}{commit}")
        return self.version()

    def test_towards_the_next_version_a_tag_of_the_last_one_does_not_count(self):
        self.commit()
        self.git("tag", "v1.2.0")
        self.set_version("1.3.0")
        self.assertEqual(self.commit(), self.version().removeprefix("1.3.0~"))

    def test_files_that_differ_from_the_commit_show(self):
        commit = self.commit()
        (self.tree / "CMakeLists.txt").write_text((self.tree / "CMakeLists.txt").read_text() + "# more\n")
        self.assertEqual(self.version(), f"1.2.0~{commit}.changed")
        self.git("tag", "v1.2.0")
        self.assertTrue(sorted_by_debian("1.2.0", self.version()), self.version())

    def test_a_tag_that_says_another_version_is_an_error(self):
        self.commit()
        self.git("tag", "v1.3.0")
        done = self.run_in_tree(self.tree / "tools" / "package-version")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("v1.3.0, and CMakeLists.txt says 1.2.0", done.stderr)

    def test_without_git_it_says_so(self):
        for inside_another in (False, True):
            if inside_another:
                subprocess.run(["git", "init", "--quiet", self.tree.parent], check=True)
            done = self.run_in_tree(self.tree / "tools" / "package-version")
            self.assertEqual((done.returncode, done.stdout), (0, "1.2.0~nogit\n"), done.stderr)
            self.assertIn("no git history", done.stderr)


class Completed(unittest.TestCase):
    def test_each_package_has_what_debian_wants_where_it_wants_it(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file in ("doc/catena/LICENSE", "man/man1/catena.1", "zsh/site-functions/_catena"):
                path = folder / "program" / "usr" / "share" / file
                path.parent.mkdir(parents=True)
                path.write_text("text\n")
            subprocess.run([ROOT / "packaging" / "debian" / "complete", folder, "1.2.0~nogit", "Some One <a@localhost>"],
                           check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "1772667000"})
            for component, package in (("program", "catena"), ("nca", "libnca0"), ("sdk", "catena-dev")):
                doc = folder / component / "usr" / "share" / "doc" / package
                self.assertIn("Apache-2.0", (doc / "copyright").read_text())
                changes = gzip.decompress((doc / "changelog.gz").read_bytes()).decode()
                self.assertIn(f"catena (1.2.0~nogit) unstable", changes)
                self.assertIn(" -- Some One <a@localhost>  Wed, 04 Mar 2026 23:30:00 +0000\n", changes)
            usr = folder / "program" / "usr"
            self.assertEqual(gzip.decompress((usr / "share/man/man1/catena.1.gz").read_bytes()), b"text\n")
            self.assertTrue((usr / "share/zsh/vendor-completions/_catena").exists())
            self.assertIn("Group=catena", (usr / "lib/systemd/system/catena.service.d/group.conf").read_text())
            for gone in ("share/doc/catena/LICENSE", "share/man/man1/catena.1", "share/zsh/site-functions"):
                self.assertFalse((usr / gone).exists(), gone)


class Scripts(unittest.TestCase):
    """What dpkg runs, with programs in the place of the system's that write down how they are called."""

    def run_script(self, name, *arguments, has_group):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            log.touch()
            for program in ("getent", "groupadd", "systemctl", "deb-systemd-invoke", "rm"):
                path = pathlib.Path(folder) / program
                failing = program == "getent" and not has_group
                path.write_text(f'#!/bin/sh\necho "{program} $*" >>{log}\nexit {int(failing)}\n')
                path.chmod(0o755)
            subprocess.run([ROOT / "packaging" / "debian" / "catena" / name, *arguments], check=True,
                           env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
            return log.read_text()

    def test_an_installation_makes_the_group_once_and_enables_nothing(self):
        for has_group in (False, True):
            done = self.run_script("postinst", "configure", "", has_group=has_group)
            self.assertEqual("groupadd --system catena" in done, not has_group, done)
            for verb in ("enable", "start"):
                self.assertNotIn(verb, done)

    def test_what_the_service_remembers_goes_with_purge_alone(self):
        for action in ("remove", "upgrade", "purge"):
            done = self.run_script("postrm", action, has_group=True)
            self.assertEqual("rm -rf /var/lib/catena /var/cache/catena" in done, action == "purge", done)

    def test_an_upgrade_does_not_disable_the_service(self):
        self.assertIn("disable catena.service", self.run_script("prerm", "remove", has_group=True))
        self.assertNotIn("disable", self.run_script("prerm", "upgrade", "1.3.0", has_group=True))


if __name__ == "__main__":
    unittest.main()
