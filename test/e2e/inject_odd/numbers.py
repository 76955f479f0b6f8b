"""numbers.py KARST ATTACKER: root, alone with its processes in a namespace of numbers. Ends with "unharmed"."""
import os
import select
import signal
import subprocess
import sys
import time

karst, attacker = sys.argv[1:]


def words_of(number):
    """Of /proc/NUMBER/status."""
    try:
        return dict(line.split(":\t", 1) for line in open(f"/proc/{number}/status").read().splitlines() if ":\t" in line)
    except (FileNotFoundError, ProcessLookupError):
        return {}


hostile = subprocess.Popen([attacker, "6"], stdout=subprocess.PIPE, text=True, user=65534, group=65534, extra_groups=[])
target, last = map(int, hostile.stdout.readline().split())
attaching = subprocess.Popen([karst, "attach", str(target)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
while attaching.poll() is None and not select.select([hostile.stdout], [], [], 0.01)[0]:
    pass
while os.path.exists(f"/proc/{target}/task/{last}"):
    if attaching.poll() is not None:
        break
victim = 0
until = time.monotonic() + 5
while victim != last and time.monotonic() < until:  # the kernel gives the next free number
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(last - 1))
    victim = os.fork()
    if victim == 0:
        while True:
            time.sleep(0.01)
    if victim != last:
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
if victim != last:
    print("the number did not become free")
harm = ""
while attaching.poll() is None:
    words = words_of(victim)
    if words.get("TracerPid", "0").strip() == str(attaching.pid):
        harm = "karst traces it"
    time.sleep(0.001)
said = attaching.communicate()[0]
time.sleep(0.1)
ended, status = os.waitpid(victim, os.WNOHANG) if victim == last else (0, 0)
if ended:
    harm = f"it has ended, {status}"
print(said, "harmed: " + harm if harm else "unharmed")
for number in (target, hostile.pid, victim):
    try:
        os.kill(number, signal.SIGKILL)
    except ProcessLookupError:
        pass
