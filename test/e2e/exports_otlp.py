"""karst export --to otlp: lines of ExportTraceServiceRequest, by the names and types of OpenTelemetry's published
trace.proto (v1), common.proto and resource.proto, in the JSON form that OTLP defines: ids in hex, enums as numbers."""
import json
import re
import subprocess
import time

import support
from support import KARST, ROOT, TracedTest, build, main

INCLUDE = ("-I", str(ROOT / "include"))


def whole(bits, signed=False):
    """64 bits are text in JSON."""
    def check(value):
        assert isinstance(value, str) and re.fullmatch(r"-?\d+", value), value
        low, high = (-2 ** (bits - 1), 2 ** (bits - 1)) if signed else (0, 2 ** bits)
        assert low <= int(value) < high, value
    return check


def hexed(size):
    def check(value):
        assert re.fullmatch(f"[0-9a-f]{{{2 * size}}}", value) and int(value, 16) != 0, value
    return check


def text(value):
    assert isinstance(value, str), value


def kind(value):
    assert isinstance(value, int) and 0 <= value <= 5, value


def message(required=(), **fields):
    def check(value):
        assert isinstance(value, dict) and set(value) <= set(fields) and set(required) <= set(value), value
        for name, inner in value.items():
            fields[name](inner)
    return check


def repeated(inner):
    def check(value):
        assert isinstance(value, list), value
        for one in value:
            inner(one)
    return check


ANY_VALUE = message(stringValue=text, intValue=whole(64, signed=True))
ATTRIBUTES = repeated(message(("key", "value"), key=text, value=ANY_VALUE))
SPAN = message(("traceId", "spanId", "name", "startTimeUnixNano", "endTimeUnixNano"), traceId=hexed(16),
               spanId=hexed(8), parentSpanId=hexed(8), name=text, kind=kind, startTimeUnixNano=whole(64),
               endTimeUnixNano=whole(64), attributes=ATTRIBUTES)
SCOPE_SPANS = message(("scope", "spans"), scope=message(name=text, version=text), spans=repeated(SPAN))
RESOURCE_SPANS = message(("resource", "scopeSpans"), resource=message(attributes=ATTRIBUTES),
                         scopeSpans=repeated(SCOPE_SPANS))
REQUEST = message(("resourceSpans",), resourceSpans=repeated(RESOURCE_SPANS))


def attributes(of):
    found = {}
    for one in of["attributes"]:
        assert one["key"] not in found, one
        value = one["value"]
        found[one["key"]] = int(value["intValue"]) if "intValue" in value else value["stringValue"]
    return found


class Otlp(TracedTest):
    def export(self, path, *options):
        out = self.directory / "spans.jsonl"
        subprocess.run([KARST, "export", str(path), "--to", "otlp", "-o", str(out), *options], check=True,
                       capture_output=True, timeout=support.TIMEOUT)
        data = out.read_bytes().decode("utf-8")
        spans = []
        self.resources = []
        for line in data.splitlines():
            made = json.loads(line)
            REQUEST(made)
            for resource in made["resourceSpans"]:
                self.resources.append(attributes(resource["resource"]))
                for scope in resource["scopeSpans"]:
                    self.assertLessEqual(len(scope["spans"]), 512)
                    spans += scope["spans"]
        for span in spans:
            span["attributes"] = attributes(span)
            span["begin"], span["end"] = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
            self.assertLessEqual(span["begin"], span["end"])
        self.assertEqual(len({span["spanId"] for span in spans}), len(spans))
        return spans

    def traced(self):
        before = time.time_ns()
        run = self.run_traced(build("otlp_contexts", "otlp/contexts.cc", "-O1", "-pthread", *INCLUDE),
                              options=("--slowest", "serve"))
        self.wall = (before, time.time_ns())
        return run.trace.path

    def test_requests_are_spans_below_those_that_the_program_names(self):
        path = self.traced()
        spans = self.export(path)
        requests = {span["attributes"]["karst.request"]: span for span in spans if "karst.request" in span["attributes"]}
        self.assertEqual(sorted(requests), [1, 2, 3])
        self.assertEqual(requests[1]["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736")
        self.assertEqual(requests[1]["parentSpanId"], "00f067aa0ba902b7")
        self.assertEqual(requests[1]["kind"], 2)  # of a server
        for number in (2, 3):  # what is no context is none
            self.assertNotIn("parentSpanId", requests[number])
            self.assertEqual(requests[number]["kind"], 1)
        self.assertEqual(len({span["traceId"] for span in requests.values()}), 3)
        self.assertNotIn("karst.open", requests[2]["attributes"])
        self.assertEqual(requests[3]["attributes"]["karst.open"], "begin and end")
        self.assertGreaterEqual(requests[2]["end"] - requests[2]["begin"], 60e6)
        slack = 50e6  # the wall clock is read at the start; it may be slewed
        for span in spans:
            self.assertGreater(span["begin"], self.wall[0] - slack)
            self.assertLess(span["end"], self.wall[1] + slack)
        # Two threads worked on the first one, each in a span below it and within it.
        work = [span for span in spans if span.get("parentSpanId") == requests[1]["spanId"]]
        self.assertEqual([span["name"] for span in work], ["work", "work"])
        self.assertEqual(len({span["attributes"]["thread.id"] for span in work}), 2)
        for span in work:
            self.assertEqual(span["traceId"], requests[1]["traceId"])
            self.assertTrue(requests[1]["begin"] <= span["begin"] <= span["end"] <= requests[1]["end"])
        self.assertEqual({of["service.name"] for of in self.resources}, {"otlp_contexts"})

    def test_a_kept_moment_is_a_span_below_the_work_that_it_was_in(self):
        spans = self.export(self.traced())
        kept = [span for span in spans if "karst.kept" in span["attributes"]]
        self.assertTrue(kept)
        slowest = max(kept, key=lambda span: span["end"] - span["begin"])
        self.assertTrue(slowest["name"].startswith("kept: slowest serve("), slowest["name"])
        self.assertGreaterEqual(slowest["end"] - slowest["begin"], 60e6)
        parents = {span["spanId"]: span for span in spans}
        work = parents[slowest["parentSpanId"]]
        self.assertEqual(work["name"], "work")
        self.assertEqual(parents[work["parentSpanId"]]["attributes"]["karst.request"], 2)
        self.assertTrue(slowest["attributes"]["code.file.path"].endswith("contexts.cc"))

    def test_ids_are_the_same_in_each_export_and_of_a_part(self):
        path = self.traced()
        first = self.export(path)
        self.assertEqual(first, self.export(path))
        part = self.directory / "part.karst"
        subprocess.run([KARST, "cut", path, "--request", "2", "-o", part], check=True, capture_output=True)
        number = lambda spans: next(s for s in spans if s["attributes"].get("karst.request") == 2)
        self.assertEqual(number(self.export(part))["traceId"], number(first)["traceId"])

    def test_without_requests_there_are_no_spans(self):
        run = self.run_traced(build("query_shop", "query/shop.cc", "-O1", "-pthread", *INCLUDE),
                              self.directory / "journal")
        self.assertEqual(self.export(run.trace.path, "--range", "0ns..1ns"), [])
        # Sixty, and many lines of them are whole.
        self.assertEqual(len([s for s in self.export(run.trace.path) if "karst.request" in s["attributes"]]), 60)


if __name__ == "__main__":
    main()
