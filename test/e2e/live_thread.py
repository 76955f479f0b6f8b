"""The maintenance process is no hindrance to the program whose memory it shares."""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from live_control import DONE, NONE, REFUSED, RUNNING, Control  # noqa: E402
from live_toggle import LiveTest  # noqa: E402
from support import TIMEOUT, build, main  # noqa: E402


def alone():
    return build("alone", "live/alone.c", "-O2", "-pthread", compiler="karst-gcc")


def children_of(pid):
    """(number, name, state) of each child, of whichever thread."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
            stat = Path(f"/proc/{child}/stat").read_text()
            found.append((int(child), stat[stat.index("(") + 1:stat.rindex(")")], stat[stat.rindex(")") + 2]))
    return found


class Thread(LiveTest):
    def maintenance_of(self, pid):
        end = time.monotonic() + TIMEOUT
        while True:
            found = [number for number, name, _ in children_of(pid) if name == "karst-maint"]
            if len(found) == 1:
                return found[0]
            self.assertLess(time.monotonic(), end, children_of(pid))  # it begins beside the program
            time.sleep(0.001)

    def same_as_plain(self, what, **more):
        plain = subprocess.run([alone(), what], capture_output=True, text=True, timeout=TIMEOUT, **more)
        child = self.start(alone(), what)
        out = self.finish(child, plain.returncode)
        return plain.stdout, out

    def test_unshare_of_users(self):
        plain, traced = self.same_as_plain("unshare")
        self.assertEqual(traced, plain)

    def test_rights_that_are_given_up_are_given_up_by_it_too(self):
        if os.getuid() != 0:
            self.skipTest("needs root")
        plain, traced = self.same_as_plain("setuid")
        self.assertEqual(traced, plain)
        child = self.start(alone(), "setuid-wait")
        self.assertEqual(child.stdout.readline(), "ready\n")
        status = Path(f"/proc/{self.maintenance_of(child.pid)}/status").read_text()
        self.assertIn("Uid:\t65534\t65534\t65534\t65534\n", status)
        self.finish(child)

    def test_it_is_no_thread(self):
        plain, traced = self.same_as_plain("count")
        self.assertEqual(traced, plain)
        self.assertIn("entries 1 status 1 stat 1", traced)

    def test_it_is_no_child_to_wait_for(self):
        plain, traced = self.same_as_plain("any-child")
        self.assertEqual(traced, plain)

    def test_it_holds_no_descriptor_of_the_programs(self):
        child = self.start(alone(), "closes")
        self.assertEqual(child.stdout.readline(), "ready\n")
        self.assertEqual(child.stdout.read(), "")  # and not only when the program ends
        self.assertIsNone(child.poll())
        maintenance = self.maintenance_of(child.pid)
        open_files = [os.readlink(f"/proc/{maintenance}/fd/{n}") for n in os.listdir(f"/proc/{maintenance}/fd")]
        self.assertEqual([f for f in open_files if not f.startswith(("/memfd:karst", "/sys/fs/cgroup"))], [])
        child.communicate(timeout=TIMEOUT)

    def test_it_ends_with_the_program(self):
        for end in (signal.SIGKILL, signal.SIGSEGV):
            child = self.start(alone(), "wait")
            self.assertEqual(child.stdout.readline(), "ready\n")
            maintenance = self.maintenance_of(child.pid)
            child.send_signal(end)
            child.communicate(timeout=TIMEOUT)
            until = time.monotonic() + TIMEOUT
            while Path(f"/proc/{maintenance}/stat").exists():
                state = Path(f"/proc/{maintenance}/stat").read_text().rsplit(") ", 1)[1][0]
                if state in "ZX":  # where no process takes note of its end
                    break
                self.assertLess(time.monotonic(), until)
                time.sleep(0.001)

    def test_it_outlives_the_thread_that_made_it(self):
        child = self.start(alone(), "main-gone")
        self.assertEqual(child.stdout.readline(), "ready\n")
        self.assertEqual(Control(child.pid).switch(False), DONE)
        self.finish(child)

    def test_a_program_that_executes_another_leaves_none_behind(self):
        child = self.start(alone(), "exec")
        self.assertEqual(child.stdout.readline(), "ready\n")
        self.maintenance_of(child.pid)
        self.assertEqual([state for _, _, state in children_of(child.pid) if state == "Z"], [])
        self.assertEqual(Control(child.pid).switch(False), DONE)
        self.finish(child)

    def test_it_is_back_when_a_program_cannot_be_executed(self):
        child = self.start(alone(), "exec-fails")
        self.assertEqual(child.stdout.readline(), "ready\n")
        self.assertEqual(Control(child.pid).switch(False), DONE)
        self.finish(child)

    def test_it_is_not_the_first_of_a_namespace(self):
        if os.getuid() != 0:
            self.skipTest("needs root")
        plain, traced = self.same_as_plain("namespace")
        self.assertEqual(traced, plain)
        self.assertIn("unshare 0", traced)

    def test_killed_by_somebody_it_is_missed_by_nobody(self):
        child = self.start(alone(), "wait")
        self.assertEqual(child.stdout.readline(), "ready\n")
        os.kill(self.maintenance_of(child.pid), signal.SIGKILL)
        self.assertEqual(self.finish(child, text="\x01"), "2\n")

    def test_exit_by_a_bare_system_call(self):
        plain, traced = self.same_as_plain("raw-exit")
        self.assertEqual(traced, plain)

    def test_pthread_exit_of_main(self):
        plain, traced = self.same_as_plain("pthread_exit")
        self.assertEqual(traced, plain)

    def test_a_vfork_child_leaves_it_alone(self):
        child = self.start(alone(), "vfork")
        self.assertEqual(child.stdout.readline(), "vfork 0\n")
        control = Control(child.pid)
        self.assertEqual(control.thread, RUNNING)
        self.assertEqual(control.switch(False), DONE)
        self.finish(child)

    def test_no_thread_where_none_can_be_had(self):
        if os.getuid() != 0:
            self.skipTest("needs root, to be another user than others of this machine")
        # Root is not bound by the limit.
        child = self.start(alone(), "nproc", launcher=["setpriv", "--reuid=65534", "--clear-groups"])
        self.assertEqual(self.finish(child), "nothing else\n")

    def test_control_off_leaves_it_out(self):
        child = self.start(alone(), "wait", options="control=0")
        self.assertEqual(child.stdout.readline(), "ready\n")
        control = Control(child.pid)
        self.assertEqual(control.thread, NONE)
        self.assertEqual(len(os.listdir(f"/proc/{child.pid}/task")), 1)
        self.assertIsNone(control.switch(False, wait=0.2))
        self.assertEqual(self.finish(child, text="\x01"), "2\n")

    def test_it_has_a_name_and_all_signals_blocked(self):
        child = self.start(alone(), "wait")
        self.assertEqual(child.stdout.readline(), "ready\n")
        Control(child.pid).switch(False)
        status = Path(f"/proc/{self.maintenance_of(child.pid)}/status").read_text()
        blocked = int(status.split("SigBlk:")[1].split()[0], 16)
        # But SIGKILL, SIGSTOP, and the signal of the program's end.
        self.assertEqual(blocked | 1 << 8 | 1 << 18 | 1 << 63, 0xffffffffffffffff)
        self.finish(child)

    def test_code_that_may_not_be_changed_stays_as_it_is(self):
        child = self.start(alone(), "mdwe")
        if child.stdout.readline() != "prctl 0\n":
            self.skipTest("this kernel has no PR_SET_MDWE")
        control = Control(child.pid)
        sites = control.patched_sites
        self.assertEqual(control.switch(False), REFUSED)
        self.assertEqual(control.patched_sites, sites)
        self.assertEqual(control.switches, [])
        self.assertEqual(self.finish(child, text="\x01"), "2\n")

    def test_it_makes_memory_real_before_it_is_needed(self):
        """Else a hook does, and a call is long by that: 64 blocks at a time, when there is none left."""
        child = self.start(alone(), "calls")
        self.assertEqual(child.stdout.readline(), "ready\n")
        control = Control(child.pid)
        end = time.monotonic() + TIMEOUT
        while True:
            reserved, handed_out = control.blocks()
            self.assertGreater(handed_out, 16)
            if reserved >= handed_out + 64:
                break
            self.assertLess(time.monotonic(), end, (reserved, handed_out))
            time.sleep(0.01)
        self.finish(child)

    def test_few_system_calls(self):
        """A switching of everything: three barriers, one more to see that there are any, and two changes of protection."""
        child = self.start(alone(), "wait")
        self.assertEqual(child.stdout.readline(), "ready\n")
        control = Control(child.pid)
        control.switch(False)
        log = self.directory / "calls"
        maintenance = self.maintenance_of(child.pid)
        tracer = subprocess.Popen(["strace", "-qq", "-e", "trace=membarrier,mprotect", "-o", str(log), "-p",
                                   str(maintenance)], stderr=subprocess.PIPE)
        self.addCleanup(self.end, tracer)
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end and "TracerPid:\t0" in Path(f"/proc/{maintenance}/status").read_text():
            if tracer.poll() is not None:
                self.skipTest("strace cannot attach here")
            time.sleep(0.01)
        for on in (True, False):
            self.assertEqual(control.switch(on), DONE)
        self.finish(child)
        tracer.wait(TIMEOUT)
        text = log.read_text()
        self.assertEqual((text.count("membarrier("), text.count("mprotect(")), (8, 4), text)

    def test_a_forked_child_has_a_switch_of_its_own(self):
        program = build("comings-child", "live/child.c", "-O2", compiler="karst-gcc")
        child = self.start(program)
        pid = int(child.stdout.readline())
        control, own = Control(child.pid), Control(pid)
        sites = control.patched_sites
        end = time.monotonic() + TIMEOUT
        while own.thread != RUNNING and time.monotonic() < end:  # the child goes on while its own begins
            time.sleep(0.001)
        self.assertEqual(own.thread, RUNNING)
        self.assertEqual(own.switch(False), DONE)
        self.assertEqual((own.patched_sites, control.patched_sites), (0, sites))
        self.assertEqual(control.switch(False), DONE)
        self.assertEqual(own.switch(True), DONE)
        self.assertEqual((own.patched_sites, control.patched_sites), (sites, 0))
        self.finish(child)


if __name__ == "__main__":
    main()
