"""The packages: the .tar.gz unpacked somewhere, the .deb unpacked into a root of its own; both trace from there."""
import re
import shutil
import tempfile
import unittest
from pathlib import Path

from installed import ALL_CALLS, BUILD, WORK, Installed, command


class PackageTest(Installed):
    @classmethod
    def setUpClass(cls):
        WORK.mkdir(parents=True, exist_ok=True)
        cls.base = Path(tempfile.mkdtemp(prefix="packages.", dir=WORK))
        cls.addClassCleanup(shutil.rmtree, cls.base, ignore_errors=True)
        kinds = "TGZ;DEB" if shutil.which("dpkg-shlibdeps") else "TGZ"
        command("cpack", "-G", kinds, "-B", cls.base / "out", cwd=BUILD)

    def trace_the_example(self, prefix):
        self.prefix = prefix
        copy = self.example()
        command("make", "-C", copy, "CC=karst-gcc", "CXX=karst-g++", env=self.environment())
        self.assertEqual(self.counts(copy / "app"), ALL_CALLS)

    def test_archive_works_where_it_is_unpacked(self):
        archives = list((self.base / "out").glob("karst-*-linux-x86_64.tar.gz"))
        self.assertEqual(len(archives), 1)
        (self.directory / "anywhere").mkdir()
        command("tar", "-xzf", archives[0], "-C", self.directory / "anywhere")
        trees = list((self.directory / "anywhere").iterdir())
        self.assertEqual([t.name for t in trees], [archives[0].name.removesuffix(".tar.gz")])
        self.trace_the_example(trees[0])

    def deb(self):
        debs = list((self.base / "out").glob("karst_*_amd64.deb"))
        if not debs:
            self.skipTest("dpkg-shlibdeps (package dpkg-dev) is not installed, so no .deb was made")
        return debs[0]

    def test_debian_package_works_in_another_root(self):
        root = self.directory / "root"
        command("dpkg-deb", "-x", self.deb(), root)
        self.assertEqual([p.name for p in root.iterdir()], ["usr"])
        self.trace_the_example(root / "usr")

    def test_debian_package_depends_on_what_its_programs_load(self):
        root = self.directory / "root"
        command("dpkg-deb", "-x", self.deb(), root)
        depends = command("dpkg-deb", "-f", self.deb(), "Depends")
        needed = re.findall(r"\(NEEDED\)\s+Shared library: \[(.*)\]", command("readelf", "-d", root / "usr/bin/karst"))
        self.assertIn("libdw.so.1", needed)
        for library, package in (("libdw.so.1", "libdw1"), ("libzstd.so.1", "libzstd1"), ("libstdc++.so.6", "libstdc++6"),
                                 ("libc.so.6", "libc6"), ("libre2.so.9", "libre2-9")):
            if library in needed:
                self.assertRegex(depends, rf"(^|, ){re.escape(package)}\b")
        # The traced program's part needs libc alone.
        self.assertEqual(re.findall(r"Shared library: \[(.*)\]", command("readelf", "-d", root / "usr/lib/libkarst.so")),
                         ["libc.so.6"])

    def test_debian_package_is_in_good_order(self):
        listing = command("dpkg-deb", "-c", self.deb())
        for line in listing.splitlines():
            self.assertRegex(line, r"^[-dl]\S+ root/root ", line)
        root = self.directory / "root"
        command("dpkg-deb", "-R", self.deb(), root)
        command("md5sum", "--quiet", "-c", "DEBIAN/md5sums", cwd=root)
        # The dynamic linker's cache learns of libkarst.
        self.assertIn("ldconfig", (root / "DEBIAN/postinst").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
