"""The maintenance thread is no hindrance to the program that it lives in."""
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from live_control import DONE, NONE, REFUSED, RUNNING, Control  # noqa: E402
from live_toggle import LiveTest  # noqa: E402
from torture_support import TIMEOUT, build, main  # noqa: E402


def alone():
    return build("alone", "live/alone.c", "-O2", "-pthread", compiler="karst-gcc")


class Thread(LiveTest):
    def same_as_plain(self, what, **more):
        plain = subprocess.run([alone(), what], capture_output=True, text=True, timeout=TIMEOUT, **more)
        child = self.start(alone(), what)
        out = self.finish(child, plain.returncode)
        return plain.stdout, out

    def test_unshare_of_users(self):
        plain, traced = self.same_as_plain("unshare")
        self.assertEqual(traced, plain)

    def test_rights_that_are_given_up_are_given_up_by_all_threads(self):
        if os.getuid() != 0:
            self.skipTest("needs root")
        plain, traced = self.same_as_plain("setuid")
        self.assertEqual(set(traced.splitlines()), set(plain.splitlines()))
        self.assertEqual(traced.count("Uid:"), 2, traced)

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
        tasks = {Path(f"/proc/{child.pid}/task/{t}/comm").read_text().strip(): t
                 for t in os.listdir(f"/proc/{child.pid}/task")}
        self.assertIn("karst", tasks)
        status = Path(f"/proc/{child.pid}/task/{tasks['karst']}/status").read_text()
        blocked = int(status.split("SigBlk:")[1].split()[0], 16)
        self.assertEqual(blocked | 1 << 8 | 1 << 18, 0xffffffffffffffff)  # but SIGKILL and SIGSTOP
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
        tracer = subprocess.Popen(["strace", "-f", "-qq", "-e", "trace=membarrier,mprotect", "-o", str(log), "-p",
                                   str(child.pid)], stderr=subprocess.PIPE)
        self.addCleanup(self.end, tracer)
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end and any(
                "TracerPid:\t0" in Path(f"/proc/{child.pid}/task/{t}/status").read_text()
                for t in os.listdir(f"/proc/{child.pid}/task")):
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
        while own.thread != RUNNING and time.monotonic() < end:  # the child goes on while its thread begins
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
