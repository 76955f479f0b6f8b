"""script/release in a repository of its own, with a script/package of its own: what it refuses, what it makes ready."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(os.environ["KARST_SOURCE_ROOT"])
PACKAGE = """#!/bin/sh
mkdir -p "$1"
for name in karst-1.2.3-linux-x86_64.tar.gz karst_1.2.3_amd64.deb; do echo package >"$1/$name"; done
"""
CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 1.2.3\n\n- All.\n"


@unittest.skipIf(shutil.which("git") is None, "no git")
class ReleaseTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.here = Path(scratch.name)
        (self.here / "script").mkdir()
        shutil.copy(ROOT / "script/release", self.here / "script")
        self.write("script/package", PACKAGE).chmod(0o755)
        self.write("CMakeLists.txt", "project(karst VERSION 1.2.3 LANGUAGES C)\n")
        self.write("CHANGELOG.md", CHANGELOG)
        self.write(".gitignore", "/build/\n")
        self.git("init", "-q")
        self.commit()

    def write(self, name, text):
        (self.here / name).write_text(text)
        return self.here / name

    def git(self, *words):
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=self.here, check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "All")

    def release(self, version="1.2.3"):
        return subprocess.run([self.here / "script/release", version], capture_output=True, text=True)

    def assert_refused(self, why, version="1.2.3"):
        done = self.release(version)
        self.assertIn(why, done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse((self.here / "build").exists())

    def test_makes_packages_ready_and_tags_nothing(self):
        done = self.release()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("git tag -a v1.2.3", done.stdout)
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=self.here / "build/release", check=True)
        self.assertEqual(subprocess.check_output(["git", "tag"], cwd=self.here), b"")

    def test_refuses_a_tree_with_changes(self):
        self.write("CHANGELOG.md", CHANGELOG + "- More.\n")
        self.assert_refused("not committed")

    def test_refuses_another_version_than_the_sources_have(self):
        self.assert_refused("CMakeLists.txt has version 1.2.3, not 1.2.4", "1.2.4")

    def test_refuses_a_changelog_without_the_version(self):
        self.write("CHANGELOG.md", CHANGELOG.replace("## 1.2.3", "## 1.2.2"))
        self.commit()
        self.assert_refused("has no part '## 1.2.3'")

    def test_refuses_a_changelog_with_unreleased_lines(self):
        self.write("CHANGELOG.md", CHANGELOG.replace("## Unreleased\n", "## Unreleased\n\n- Something.\n"))
        self.commit()
        self.assert_refused("1 lines under Unreleased")

    def test_refuses_a_version_that_has_a_tag(self):
        self.git("tag", "v1.2.3")
        self.assert_refused("there is a tag v1.2.3")


if __name__ == "__main__":
    unittest.main()
