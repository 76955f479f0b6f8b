"""What processes and the machine use, beside the calls: karst run --usage, and where it is shown.

The oracle is the program: it uses known amounts, and prints what getrusage says of it.
"""
import json
import os
import subprocess
import time

from support import KARST, TIMEOUT, TracedTest, build, main

MIB = 1 << 20
BYTES = 64 * MIB


def program():
    return build("usage", "usage/program.cc", "-O2")


class Usage(TracedTest):
    @staticmethod
    def said(text):
        """What each process of the program's says of itself."""
        keys = "pid", "cpu", "resident", "faults", "read", "switches"
        return [dict(zip(keys, map(int, line.split()))) for line in text.splitlines()]

    @staticmethod
    def rows(trace, **which):
        return [row for row in trace.info["usage"] if all(row[key] == value for key, value in which.items())]

    def row(self, trace, what, of="process", **which):
        rows = self.rows(trace, what=what, of=of, **which)
        self.assertEqual(len(rows), 1, f"{what} of {of}: {rows}")
        return rows[0]

    def counters(self, trace, *options):
        """Of each counter in Chrome's format its values with their times in us, by name and process."""
        text = subprocess.run([KARST, "export", str(trace.path), "--to", "chrome", "-o", "-", *options], check=True,
                              capture_output=True, text=True, timeout=TIMEOUT).stdout
        found = {}
        for event in json.loads(text)["traceEvents"]:
            if event["ph"] == "C":
                found.setdefault((event["name"], event["pid"]), []).append((event["ts"], event["args"]["value"]))
        return found

    def check_process(self, trace, truth):
        pid = truth["pid"]
        # On a busy machine readings are rare, and what came between two of them, or behind the last one, is not known.
        memory = self.row(trace, "memory", pid=pid)
        least = 0.9 if memory["readings"] > 30 else 0
        self.assertGreaterEqual(memory["most"], BYTES * least)
        self.assertLess(self.row(trace, "memory", pid=pid)["most"], truth["resident"] + 4 * MIB)
        # What grows is a rate: over the time of its readings it adds up to what getrusage says.
        counters = self.counters(trace)

        def sum_of(name):
            values = counters[name, pid]
            return sum((after - at) * value for (at, value), (after, _) in zip(values, values[1:])) / 1e6

        def assert_about(value, wanted, delta):
            self.assertLess(value, wanted + delta)
            self.assertGreaterEqual(value, wanted * least - delta)

        assert_about(sum_of("cpu (% of a CPU)") / 100 * 1e9, truth["cpu"], delta=60e6)
        assert_about(sum_of("read (MiB/s)"), BYTES / MIB, delta=3)
        assert_about(sum_of("page faults (1/s)"), truth["faults"], delta=400)
        self.assertLess(sum_of("switches (1/s)"), truth["switches"] + 40)
        most_cpu = self.row(trace, "cpu", pid=pid)["most"]
        self.assertTrue(0 < most_cpu < 150, most_cpu)  # others may have had the CPUs

    def test_a_process_used_what_getrusage_says(self):
        run = self.run_traced(program())
        truth, = self.said(run.out)
        self.check_process(run.trace, truth)
        thread = self.row(run.trace, "cpu", of="thread", tid=truth["pid"])
        self.assertEqual((thread["pid"], thread["unit"]), (truth["pid"], "% of a CPU"))
        self.assertGreater(self.row(run.trace, "memory limit", of="machine")["most"], BYTES)
        text = subprocess.run([KARST, "info", str(run.trace.path)], check=True, capture_output=True, text=True).stdout
        self.assertIn("  used cpu ", text)
        self.assertRegex(text, r"machine +cpu ")
        self.assert_sound(run.trace)

    def test_a_child_is_read_as_well(self):
        run = self.run_traced(program(), "fork")
        truth, = self.said(run.out)
        self.assertEqual(len(run.trace.processes), 2)
        self.check_process(run.trace, truth)

    def test_off_means_off(self):
        for options, env in ((("--usage", "off"), {}), ((), {"KARST_OPTIONS": "usage=off"})):
            run = self.run_traced(program(), options=options, env=env)
            self.assertEqual(run.trace.info["usage"], [])
            self.assertEqual(self.counters(run.trace), {})
        wrong = subprocess.run([KARST, "run", "--usage", "maybe", "true"], capture_output=True, text=True)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("--usage", wrong.stderr)

    def test_filters_of_exports_take_their_counters(self):
        run = self.run_traced(program())
        pid = self.said(run.out)[0]["pid"]
        whole = self.counters(run.trace)
        self.assertIn(("memory of the machine (MiB)", 0), whole)
        part = self.counters(run.trace, "--range", "100ms..200ms")
        values = part["memory (MiB)", pid]
        self.assertLess(len(values), len(whole["memory (MiB)", pid]))
        for at, _ in values:
            self.assertTrue(100e3 - 0.01 <= at < 200e3, at)  # microseconds
        thread = self.counters(run.trace, "--thread", str(pid))
        self.assertNotIn(("memory of the machine (MiB)", 0), thread)
        self.assertIn(("memory (MiB)", pid), thread)

    def test_other_formats_have_counters_too(self):
        run = self.run_traced(program())
        for form in ("perfetto", "fxt"):
            out = subprocess.run([KARST, "export", str(run.trace.path), "--to", form, "-o", "-"], check=True,
                                 capture_output=True, timeout=TIMEOUT).stdout
            for name in (b"memory (MiB)", b"cpu of the machine (% of a CPU)", b"cpu of thread "):
                self.assertIn(name, out, form)
        tables = self.directory / "tables"
        subprocess.run([KARST, "export", str(run.trace.path), "--to", "csv", "-o", str(tables)], check=True,
                       capture_output=True, timeout=TIMEOUT)
        lines = (tables / "usage_values.csv").read_text().splitlines()
        readings = sum(row["readings"] for row in run.trace.info["usage"])
        self.assertLessEqual(len(lines) - 1, readings)
        self.assertGreater(len(lines), readings / 2)

    def test_stripped_and_resolved_traces_keep_it(self):
        run = self.run_traced(program())
        out = self.directory / "stripped.karst"
        subprocess.run([KARST, "resolve", "--strip", "all", str(run.trace.path), "-o", str(out)], check=True,
                       capture_output=True, timeout=TIMEOUT)
        info = json.loads(subprocess.run([KARST, "info", "--format", "json", str(out)], check=True,
                                         capture_output=True, text=True).stdout)
        without = [{**row, "name": None} for row in run.trace.info["usage"]]
        self.assertEqual([{**row, "name": None} for row in info["usage"]], without)

    def test_another_user_is_read_where_karst_may(self):
        if os.geteuid() != 0:
            self.skipTest("it takes root")
        self.directory.chmod(0o777)
        run = self.run_traced(program(), options=("--user", "nobody"), status=None)
        if run.status != 0:
            self.skipTest(run.err)
        self.check_process(run.trace, self.said(run.out)[0])

    def test_anybody_reads_his_own(self):
        if os.geteuid() != 0:
            self.skipTest("it takes root to be somebody else")
        self.directory.chmod(0o777)
        run = self.run_traced(program(), launcher=("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"),
                              status=None)
        if run.status != 0:
            self.skipTest(run.err)
        self.check_process(run.trace, self.said(run.out)[0])

    def test_attached_to(self):
        child = subprocess.Popen([program(), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        out = self.directory / "attached.karst"
        time.sleep(0.05)
        with subprocess.Popen([KARST, "attach", str(child.pid), "--sample", "100", "--sched", "off", "-o", str(out)],
                              stderr=subprocess.PIPE, text=True) as karst:
            said = child.stdout.readline()
            child.communicate("\n", timeout=TIMEOUT)
            _, err = karst.communicate(timeout=TIMEOUT)
        if karst.returncode != 0:
            self.skipTest(err)
        info = json.loads(subprocess.run([KARST, "info", "--format", "json", str(out)], check=True,
                                         capture_output=True, text=True).stdout)
        memory = [row for row in info["usage"] if (row["what"], row["of"]) == ("memory", "process")]
        self.assertEqual(len(memory), 1, said)
        self.assertGreater(memory[0]["most"], BYTES / 5)  # readings are rare on a busy machine


if __name__ == "__main__":
    main()
