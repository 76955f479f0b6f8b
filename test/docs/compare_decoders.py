"""compare_decoders.py MAKE_FIXTURE DECODE_TRACE: both decoders must say the same about the same files."""
import pathlib
import subprocess
import sys
import tempfile

make_fixture, decode_trace = sys.argv[1:]
failed = False
with tempfile.TemporaryDirectory() as directory:
    for kind in ("worked", "small", "notes", "logs", "synthetic", "packed-notes", "packed-logs", "packed-synthetic"):
        path = pathlib.Path(directory) / (kind + ".karst")
        subprocess.run([make_fixture, kind, path], check=True)
        ours = subprocess.run([make_fixture, "list", path], check=True, stdout=subprocess.PIPE).stdout
        theirs = subprocess.run([sys.executable, decode_trace, path], check=True, stdout=subprocess.PIPE).stdout
        lines = ours.splitlines(), theirs.splitlines()
        for number, (a, b) in enumerate(zip(*lines), 1):
            if a != b:
                print(f"{kind}, line {number}\n  reader:  {a.decode()}\n  decoder: {b.decode()}")
                failed = True
                break
        if len(lines[0]) != len(lines[1]) or not lines[0]:
            print(f"{kind}: {len(lines[0])} and {len(lines[1])} lines")
            failed = True
sys.exit(failed)
