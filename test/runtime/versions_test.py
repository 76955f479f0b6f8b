"""Names that our libraries have in common with libc and the unwinder, and those that they ask for, with their versions.

usage: versions_test.py LIBKARST.SO COMPANION.SO...
"""
import collections
import re
import subprocess
import sys
import unittest

RUNTIME, *COMPANIONS = sys.argv[1:]
LIBRARIES = [RUNTIME, *COMPANIONS]
# What format/session.h calls the least glibc (kLeastGlibc is a name that came with it).
LEAST_GLIBC = (2, 26)


def symbols(library):
    """(name, version or "", is the default, address), of those that it defines; None as the address: it asks for it."""
    text = subprocess.run(["readelf", "-W", "--dyn-syms", library], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 8 or fields[4] not in ("GLOBAL", "WEAK"):
            continue
        name, default, version = re.fullmatch(r"([^@]+)(@*)(.*)", fields[7]).groups()
        if not (version and name == version):  # the version's own symbol
            yield name, version, default == "@@", None if fields[6] == "UND" else fields[1]


def number(version):
    return tuple(map(int, version.removeprefix("GLIBC_").split(".")))


def versions_of_libc():
    """By name: the versions that have code of their own, the default one last."""
    found = collections.defaultdict(dict)
    needed = subprocess.run(["ldd", *LIBRARIES], check=True, capture_output=True, text=True).stdout
    libc = re.search(r"libc\.so\.6 => (\S+)", needed)[1]
    for library in (libc, libc.replace("libc.so.6", "libgcc_s.so.1")):
        for name, version, default, address in symbols(library):
            if address is not None and version != "GLIBC_PRIVATE":
                found[name].setdefault(address, []).append((default, version))
    return {name: sorted(((any(d for d, _ in same), {v for _, v in same}) for same in by_address.values()),
                         key=lambda each: each[0])
            for name, by_address in found.items()}


class Versions(unittest.TestCase):
    def test_what_stands_before_several_says_which(self):
        """A name without a version stands before all: then there must be one meaning."""
        libc = versions_of_libc()
        several = set()
        for library in LIBRARIES:
            for name, version, _, address in symbols(library):
                meanings = libc.get(name, [])
                if address is None or len(meanings) < 2:
                    continue
                several.add(name)
                with self.subTest(library=library, name=name):
                    self.assertTrue(any(version in versions for _, versions in meanings), f"{name}@{version}")
        self.assertEqual(several, {"posix_spawn", "posix_spawnp", "pthread_cond_wait", "pthread_cond_timedwait"})

    def test_the_newest_is_what_a_name_alone_means(self):
        libc = versions_of_libc()
        ours = collections.defaultdict(list)
        for name, version, default, address in symbols(RUNTIME):
            if address is not None and version:
                ours[name].append((version, default))
        self.assertEqual(sorted(ours), ["posix_spawn", "posix_spawnp"])
        for name, mine in ours.items():
            # Each meaning that libc has, and no other.
            self.assertEqual({v for v, _ in mine}, {v for _, versions in libc[name] for v in versions})
            self.assertEqual([v for v, default in mine if default], list(libc[name][-1][1]))

    def test_what_is_asked_for_is_in_the_oldest_glibc_that_will_do(self):
        asked = 0
        for library in LIBRARIES:
            for name, version, _, address in symbols(library):
                if address is not None or not version.startswith("GLIBC_"):
                    continue
                asked += 1
                self.assertLessEqual(number(version), LEAST_GLIBC, f"{library}: {name}@{version}")
        self.assertGreater(asked, 50)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
