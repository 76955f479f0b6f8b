#!/usr/bin/env python3
"""Programs of an older Debian, whose glibc is not the one that libkarst was built with: they do the same when traced.

  KARST_BIN=build/bin python3 -B test/programs/old_glibc.py [RELEASE]     status 1 when anything differs

Makes a root of RELEASE (bullseye: glibc 2.31) by debootstrap, builds old_glibc.cc in it by that release's g++, and runs
it and some of its programs there, by chroot and by its dynamic linker. Needs root, and takes two minutes.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BIN = Path(os.environ.get("KARST_BIN", Path(__file__).resolve().parent.parent.parent / "build/bin")).resolve()
MODES = ((), ("--system", "locks,memory,files,net,time"), ("--system", "memory=4K"), ("--library", "*"),
         ("--sample", "1000"), ("--fibers=boost",), ("--no-patch", "--sample", "1000"))


def run(*command):
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    errors = b"".join(line for line in done.stderr.splitlines(True) if not line.startswith(b"karst: "))
    return (done.returncode, done.stdout, errors), done.stderr.decode(errors="replace")


def commands(root):
    loader = ("/usr/sbin/chroot", root)
    libraries = f"{root}/usr/lib/x86_64-linux-gnu"
    directly = (f"{libraries}/ld-linux-x86-64.so.2", "--library-path", libraries)
    script = 'my %h; $h{$_}=1 for 1..1000; print join(",",sort keys %h); if(fork()==0){exit 3} wait; print $?>>8; print `echo sys`'
    return [(*loader, "/old_glibc"), (*directly, f"{root}/old_glibc"), (*loader, "/usr/bin/dpkg", "-l"),
            (*loader, "/usr/bin/apt-cache", "policy"), (*loader, "/bin/bash", "-c", "for i in 1 2; do echo $i | cat; done; exit 5"),
            (*loader, "/usr/bin/perl", "-e", script), (*directly, f"{root}/usr/bin/perl", "-e", script),
            (*directly, f"{root}/usr/bin/sort", "/etc/services")]


def compare(root):
    """Each program in each mode; what it says is as untraced, and its own calls, not only those of chroot, are there."""
    bad = 0
    for command in commands(root):
        expected, _ = run(*command)
        for mode in MODES:
            found, errors = run(BIN / "karst", "run", "-o", f"{root}/trace.karst", *mode, *command)
            told = re.search(r"([\d,]+) calls kept", errors)
            calls = int(told[1].replace(",", "")) if told else 0
            works = found == expected and (calls > 20 or "--no-patch" in mode)
            bad += not works
            print("same   " if works else "DIFFERS", f"{calls:9,} calls |", *mode, "|", " ".join(command)[:100], flush=True)
            if not works:
                print(expected, found, errors, sep="\n")
    return bad


def main():
    release = sys.argv[1] if len(sys.argv) > 1 else "bullseye"
    with tempfile.TemporaryDirectory() as root:
        subprocess.run(["debootstrap", "--variant=minbase", "--include=g++", release, root], check=True, stdout=subprocess.DEVNULL)
        source = Path(__file__).with_suffix(".cc")
        (Path(root) / source.name).write_bytes(source.read_bytes())
        subprocess.run(["chroot", root, "g++", "-O2", "-g", "-o", "/old_glibc", f"/{source.name}", "-pthread", "-ldl"], check=True)
        library = BIN.parent / "lib"
        inside = Path(f"{root}{library}")
        inside.mkdir(parents=True)
        for file in library.glob("libkarst*.so.0"):
            (inside / file.name).write_bytes(file.read_bytes())
        subprocess.run(["mount", "--bind", "/proc", f"{root}/proc"], check=True)
        try:
            bad = compare(root)
        finally:
            subprocess.run(["umount", f"{root}/proc"], check=True)
    print(f"{bad} differ" if bad else "all the same")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
