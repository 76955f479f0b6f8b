"""karst on PID --system: a server under load is recorded from some moment on, and tells the truth of it."""
import threading
import time

from system_on_support import ALL, SystemOnTest, server, server_of
from support import KARST, TIMEOUT, main

SYSTEMS = "locks,files,memory"


class Server(SystemOnTest):
    def load(self, count, clients=4):
        """All at once. Returns when each request was answered."""
        failed = []

        def run(client, numbers):
            try:
                client.work(numbers)
            except Exception as error:  # told by the test's own thread
                failed.append(error)

        threads = [threading.Thread(target=run, args=(client, range(i, count * clients, clients)))
                   for i, client in enumerate([self.client() for _ in range(clients)])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])

    def check_what_is_recorded(self, child, client, on):
        """Exactly what was asked for while it was recorded, and none of what came before and behind."""
        pid = child.pid
        self.load(20)
        before = client.counts()
        on()
        self.load(50)
        after = client.counts()
        self.assertEqual(after[0] - before[0], 200)
        trace = self.snapshot(pid)
        self.assertEqual(self.written(trace), self.bytes_between(before, after))
        self.assertEqual(self.memory_of(trace)["take_memory"], (800, 400))
        self.assertIn("locks, files, memory not recorded any more", self.karst("off", pid, "--system", SYSTEMS))
        self.load(20)
        self.assertEqual(client.counts()[0], after[0] + 80)
        trace = self.snapshot(pid)
        self.assertEqual(self.written(trace), self.bytes_between(before, after))
        self.assertEqual(self.memory_of(trace)["take_memory"], (800, 0))

    def memory_of(self, trace):
        """By function: allocations, and those that live. Those of before something unseen are not said to."""
        rows = {row["function"].split("(")[0]: row for row in self.csv("memory", trace)}
        return {name: (int(row["allocations"]), int(row["living"])) for name, row in rows.items()}

    def check_attached(self, way):
        child = self.start(server(way))
        client = self.client()

        def on():
            said = self.karst("attach", child.pid, *ALL, "--system", SYSTEMS)
            self.assertIn("locks, files, memory recorded from now on", said)

        self.check_what_is_recorded(child, client, on)
        client.send("end")
        self.assertEqual(child.wait(TIMEOUT), 0)

    def test_attached_whose_slots_are_bound_at_once(self):
        self.check_attached("now")

    def test_attached_whose_slots_are_bound_when_used(self):
        self.check_attached("lazy")

    def test_attached_that_calls_through_no_plt(self):
        self.check_attached("no-plt")

    def test_attached_at_a_fixed_address(self):
        self.check_attached("no-pie")

    def test_started_by_karst_run(self):
        child = self.start(server(compiler="karst-g++"),
                           before=(KARST, "run", "--sched", "off", "--memory", "256M", "-o", self.directory / "whole.karst",
                                   "--"))
        client = self.client()
        pid = server_of(child)
        child.pid, karst = pid, child.pid  # karst run is the child; the server is its own

        def on():
            self.assertIn("locks, files, memory recorded from now on", self.karst("on", pid, "--system", SYSTEMS))

        before = client.counts()
        self.check_what_is_recorded(child, client, on)
        child.pid = karst
        client.send("end")
        self.assertEqual(child.wait(TIMEOUT), 0)
        self.assertEqual(before[0], 0)

    def test_who_waits_for_whom(self):
        child = self.start(server())
        holder, taker = self.client(), self.client()
        self.karst("attach", child.pid, *ALL, "--system", "locks")
        self.assertEqual(holder.ask("hold"), "held")
        taker.send("take")
        wait_until_asleep(child.pid, taker.thread)
        self.assertEqual(holder.ask("release"), "released")
        self.assertEqual(taker.lines.readline(), "taken\n")
        wait, = self.csv("locks", self.snapshot(child.pid), "--by", "wait", "-f", "^take_it")
        self.assertEqual((wait["kind"], wait["name"], wait["open"]), ("mutex", "g_held", "0"))
        self.assertEqual((int(wait["tid"]), int(wait["holder_tid"])), (taker.thread, holder.thread))
        self.assertEqual(wait["held_in"].split("(")[0], "hold_it")

    def test_a_lock_that_was_taken_before(self):
        """Who had it is what libc says. When it was taken is not known, and not said."""
        child = self.start(server())
        holder, taker = self.client(), self.client()
        self.karst("attach", child.pid, *ALL)
        self.assertEqual(holder.ask("hold"), "held")
        self.karst("on", child.pid, "--system", "locks=all")
        taker.send("take")
        wait_until_asleep(child.pid, taker.thread)
        self.assertEqual(holder.ask("release"), "released")
        self.assertEqual(taker.lines.readline(), "taken\n")
        trace = self.snapshot(child.pid)
        waits, holds = ([row for row in self.csv("locks", trace, "--by", by) if row["name"] == "g_held"]
                        for by in ("wait", "hold"))
        wait, = waits
        self.assertEqual((int(wait["tid"]), int(wait["holder_tid"])), (taker.thread, holder.thread))
        self.assertEqual([int(row["tid"]) for row in holds], [taker.thread])

    def test_fifty_times_on_and_off_lose_no_request(self):
        child = self.start(server())
        client = self.client()
        self.karst("attach", child.pid, *ALL)
        ended = threading.Event()
        done, failed = [0] * 3, []

        def run(number):
            try:
                one = self.client()
                while not ended.is_set():
                    one.work([done[number]])
                    done[number] += 1
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(len(done))]
        for thread in threads:
            thread.start()
        places = None
        for _ in range(50):
            self.assertIn("recorded from now on", self.karst("on", child.pid, "--system", SYSTEMS))
            self.assertIn("not recorded any more", self.karst("off", child.pid, "--system", SYSTEMS))
            places = places or mappings(child.pid)
        ended.set()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertEqual(client.counts()[0], sum(done))
        self.assertEqual(mappings(child.pid), places)
        client.send("end")
        self.assertEqual(child.wait(TIMEOUT), 0)

    def test_twice_is_once_and_how_may_change(self):
        child = self.start(server())
        client = self.client()
        self.karst("attach", child.pid, *ALL, "--system", "locks,memory=4K")
        self.assertIn("locks recorded as before", self.karst("on", child.pid, "--system", "locks"))
        self.assertIn("locks recorded from now on", self.karst("on", child.pid, "--system", "locks=all"))
        client.work(range(10))
        holds = self.csv("locks", self.snapshot(child.pid), "--by", "hold")
        self.assertEqual([row["ended"] for row in holds if row["name"] == "g_table"], ["released"] * 10)
        refused = self.karst("on", child.pid, "--system", "memory", status=1)
        self.assertIn("one allocation in 4096 bytes was recorded before", refused)
        self.assertIn("memory recorded as before", self.karst("on", child.pid, "--system", "memory=4096"))

    def test_detaching_ends_it(self):
        child = self.start(server())
        client = self.client()
        self.karst("attach", child.pid, *ALL, "--system", SYSTEMS)
        client.work(range(40))
        self.karst("detach", child.pid)
        client.work(range(40))
        self.assertEqual(self.written(self.snapshot(child.pid))["calls"], 40)
        self.assertIn("none of that was recorded", self.karst("off", child.pid, "--system", SYSTEMS))
        self.karst("attach", child.pid)
        client.work(range(40))
        self.assertEqual(self.written(self.snapshot(child.pid))["calls"], 40)
        self.karst("attach", child.pid, "--system", "files")
        client.work(range(40))
        self.assertEqual(self.written(self.snapshot(child.pid))["calls"], 80)


def wait_until_asleep(pid, thread):
    """In a futex."""
    while not open(f"/proc/{pid}/task/{thread}/syscall").read().startswith("202 "):
        time.sleep(0.001)


def mappings(pid):
    """Rights of what is mapped of files: pages that were writable for a moment are not any more."""
    return [line.split()[:3] for line in open(f"/proc/{pid}/maps") if ".so" in line or "/programs/" in line]


if __name__ == "__main__":
    main()
