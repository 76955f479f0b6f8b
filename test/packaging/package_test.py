"""The packages: the .tar.gz unpacked somewhere, the .deb unpacked into a root of its own; both trace from there."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from installed import ALL_CALLS, BUILD, ROOT, WORK, Installed, command


GLIBC = r"/(ld-linux[^/]*|lib(c|m)\.so\.[0-9]+)$"


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

    def test_archive_has_what_its_programs_load(self):
        archive, = (self.base / "out").glob("karst-*-linux-x86_64.tar.gz")
        command("tar", "-xzf", archive, "-C", self.directory, "--strip-components=1")
        for program in ("bin/karst", "lib/karst/karst-tail-calls"):
            loaded = re.findall(r"(/\S+) \(0x", command("ldd", self.directory / program))
            needed = self.directory / "lib/karst/needed"
            others = [path for path in loaded if os.path.realpath(os.path.dirname(path)) != str(needed.resolve())]
            self.assertEqual([path for path in others if not re.search(GLIBC, path)], [])
            self.assertNotEqual(len(others), len(loaded))
        terms = {path.parent.name for path in (needed / "copyright").glob("*/copyright")}
        self.assertLessEqual({"libdw1", "libtracefs1", "libstdc++6"}, terms)

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

    def test_debian_package_has_no_error_of_lintian(self):
        if shutil.which("lintian") is None:
            self.skipTest("lintian is not installed")
        done = subprocess.run(["lintian", "--fail-on", "none", self.deb()], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("E:")], [])

    def bring(self, root, program, to=None, which=""):
        """Puts a program and the libraries that it loads into the root, where they are here; of those that match."""
        files = {str(program): to or str(program)}
        for path in re.findall(r"(/\S+) \(0x", command("ldd", program)):
            if re.search(which, path):
                files[path] = path
        for here, there in files.items():
            target = root / there.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                shutil.copy(os.path.realpath(here), target)

    def test_the_package_of_sql_makes_queries_work(self):
        if not (BUILD / "lib/karst-sql/libduckdb.so").exists():
            self.skipTest("script/setup has not fetched DuckDB")
        version = re.search(r"_([0-9.]+)_", self.deb().name)[1]
        out = self.directory / "out"
        out.mkdir()
        command(ROOT / "packaging/pack_sql", BUILD, out, version)
        root = self.directory / "root"
        command("dpkg-deb", "-x", self.deb(), root)
        self.prefix = root / "usr"
        copy = self.example()
        command("make", "-C", copy, "CC=karst-gcc", "CXX=karst-g++", env=self.environment())
        query = [self.bin / "karst", "query", self.directory / "app.karst", "SELECT count(*) + 42000 AS n FROM calls"]
        command(query[0], "run", "-o", query[2], copy / "app")
        wanted = str(sum(ALL_CALLS.values()) + 42000)
        without = subprocess.run(query, capture_output=True, text=True)
        self.assertIn("install karst-sql", without.stderr)
        package, = out.glob("karst-sql_*.deb")
        self.assertIn(f"karst (= {version})", command("dpkg-deb", "-f", package, "Depends"))
        for line in command("dpkg-deb", "-c", package).splitlines():
            self.assertRegex(line, r"^[-d]\S+ root/root ", line)
        command("dpkg-deb", "-x", package, root)
        self.assertIn(wanted, command(*query))
        archive, = out.glob("karst-sql-*.tar.gz")
        whole, = (self.base / "out").glob("karst-[0-9]*.tar.gz")
        for one in (whole, archive):
            command("tar", "-xzf", one, "-C", self.directory)
        query[0] = self.directory / whole.name.removesuffix(".tar.gz") / "bin/karst"
        self.assertIn(wanted, command(*query))
        if shutil.which("lintian") is not None:
            said = subprocess.run(["lintian", "--fail-on", "none", package], capture_output=True, text=True).stdout
            self.assertEqual([line for line in said.splitlines() if line.startswith("E:")], [])

    def test_packages_in_a_root_without_compilers(self):
        namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
        may = subprocess.run([*namespace, "true"], capture_output=True, text=True)
        if may.returncode != 0:
            self.skipTest(f"no mount namespace can be made: {may.stderr.strip()}")
        server = self.directory / "server"
        command(BUILD / "bin/karst-g++", "-O2", "-g", "-pthread", ROOT / "examples/server/server.cc", "-o", server)
        archive, = (self.base / "out").glob("karst-*-linux-x86_64.tar.gz")
        unpack = {"deb": lambda root: command("dpkg-deb", "-x", self.deb(), root),
                  "tar.gz": lambda root: command("tar", "-xzf", archive, "-C", root / "usr", "--strip-components=1")}
        for kind, unpacked_in in unpack.items():
            with self.subTest(kind):
                root = self.directory / kind
                for directory in ("usr", "proc", "tmp", "dev"):
                    (root / directory).mkdir(parents=True)
                unpacked_in(root)
                for program in ("/bin/sh", "/usr/bin/sort"):
                    self.bring(root, os.path.realpath(program), program)
                # The archive has all but glibc.
                self.bring(root, root / "usr/bin/karst", "/usr/bin/karst", GLIBC if kind == "tar.gz" else "")
                self.bring(root, server, "/tmp/server")
                (root / "dev/null").touch()

                def inside(line):
                    return command(*namespace, "sh", "-c", 'mount --bind /proc "$0/proc" && exec chroot "$0" /bin/sh -c "$1"',
                                   root, f"cd /tmp && {line}", env={"PATH": "/usr/bin:/bin:/usr/sbin"})

                self.assertRegex(inside("karst run ./server && karst slow"), r" 1\. Server::serve took [\d.]+ ms, [\d,]+ times")
                self.assertRegex(inside("echo b > words; karst run -o sort.karst sort words && karst report sort.karst --limit 3"),
                                 r"sort: [\d,]+ of [\d,]+ functions patched")
                said = inside("echo 'int main() {}' > a.c; karst-gcc a.c; echo $?")
                self.assertRegex(said, r"karst-gcc: .*gcc.*\n127")


if __name__ == "__main__":
    unittest.main(verbosity=2)
