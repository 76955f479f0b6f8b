import { describe, expect, test } from "vitest";
import { traceFacts } from "../../src/backend/facts";
import { checkAnswer, sqlAnswer, sqlSchema } from "../../src/backend/sql_facts";
import type { SqlColumn } from "../../src/backend/types/sql";
import { Asking } from "../../src/model/asking";
import { axis, firstPlot, pointsOf } from "../../src/model/plot";
import { csv, leadsOf, parseCallName, shown, threadAt, whole } from "../../src/model/sql";
import { sampleFacts } from "../sample";

const column = (name: string, unit: SqlColumn["unit"] = "", kind: SqlColumn["kind"] = "number"): SqlColumn => ({
  name,
  kind,
  unit,
});
const text = (name: string) => column(name, "", "text");
const info = traceFacts(sampleFacts(6, 5));
const { tid } = info.threads[2]!;

describe("values of rows", () => {
  test("have the unit of their column", () => {
    expect(shown("1234567", column("duration_ns", "ns"))).toBe("1.235\u202fms");
    expect(shown("0.25", column("self_share", "share"))).toBe("25.0%");
    expect(shown("1048576", column("bytes", "bytes"))).toContain("MiB");
    expect(shown("9007199254740993", column("id"))).toBe("9007199254740993");
    expect(shown("nan", column("x_ns", "ns"))).toBe("nan");
    expect(shown(null, column("x_ns", "ns"))).toBe("–");
    expect(whole("1234567", column("duration_ns", "ns"))).toContain("1,234,567");
  });

  test("show what is not to be obeyed", () => {
    expect(shown("a\u001b[2J\u202eb", text("name"))).toBe("a\\x1b[2J\\u{202e}b");
  });

  test("are CSV as the command writes it", () => {
    const columns = [text("a,b"), column("n")];
    const rows = [
      ['say "hi"\nto', "1"],
      [null, "2"],
    ];
    expect(csv({ columns, rows })).toBe('"a,b",n\n"say ""hi""\nto",1\n,2\n');
  });
});

describe("a row leads", () => {
  test("to the call that it names", () => {
    const lead = leadsOf([text("call"), column("duration_ns", "ns")], info)!;
    const begin = Math.round(info.threads[2]!.begin) + 1;
    expect(lead([`${tid}@${begin}ns`, "7"])).toEqual({ begin, duration: 7, thread: 2, isCall: true });
  });

  test("to a moment in a thread", () => {
    const lead = leadsOf([column("begin_ns", "moment"), column("tid"), column("end_ns", "moment")], info)!;
    expect(lead(["5", String(tid), "9"])).toEqual({ begin: 5, duration: 4, thread: 2, isCall: false });
    expect(lead(["5", null, null])).toEqual({ begin: 5, duration: 0, isCall: false });
    expect(lead([null, String(tid), "9"])).toBeUndefined();
    expect(lead(["-3", String(tid), "9"])).toBeUndefined();
  });

  test("nowhere without a time", () => {
    expect(leadsOf([text("function"), column("calls")], info)).toBeUndefined();
    expect(leadsOf([text("call")], info)!(["serve(int)"])).toBeUndefined();
  });

  test("to the thread that lived then, of several with its number", () => {
    const twice = {
      ...info,
      threads: [
        { ...info.threads[0]!, tid: 9, begin: 0, end: 10 },
        { ...info.threads[1]!, tid: 9, begin: 20, end: 30 },
      ],
    };
    expect(threadAt(twice, 9, 25)).toBe(1);
    expect(threadAt(twice, 9, 15)).toBe(0);
    expect(threadAt(twice, 8, 25)).toBeUndefined();
    expect(threadAt(twice, 9, 25, 1)).toBeUndefined();
  });

  test("by a name of a call alone", () => {
    expect(parseCallName("12@34ns")).toEqual({ tid: 12, begin: 34 });
    expect(parseCallName("12@34ns; DROP")).toBeUndefined();
    expect(parseCallName("-1@3ns")).toBeUndefined();
  });
});

describe("a plot", () => {
  const columns = [text("function"), column("calls"), column("begin_ns", "moment"), column("self_ns", "ns")];

  test("is of a time over when it was, unless one chooses", () => {
    expect(firstPlot(columns)).toEqual({ x: 2, y: 3 });
    expect(firstPlot([column("a"), column("b")])).toEqual({ x: 0, y: 1 });
    expect(firstPlot([column("a"), text("b")])).toBeUndefined();
  });

  test("has a dot for each row with both numbers", () => {
    const rows = [
      ["f", "1", "10", "100"],
      ["g", "1", null, "100"],
      ["h", "1", "30", "inf"],
      ["i", "1", "40", "300"],
    ];
    const { points, x, y } = pointsOf({ columns, rows, more: 0, counted: true, cut: false }, 2, 3, { x: 5, y: 5 });
    expect(points.map(({ row }) => row)).toEqual([0, 3]);
    expect([x.from, x.to, y.from, y.to]).toEqual([10, 40, 0, 300]);
  });

  test.each([
    [[5], 5],
    [[0, 0], 4],
    [[-10, 1e18], 6],
    [[1e-9, 3e-9], 5],
    [[], 5],
  ] as [number[], number][])("has few steps, and all values lie on its axis: %j", (values, most) => {
    const { from, to, ticks } = axis(values, "", most);
    expect(to).toBeGreaterThan(from);
    expect(ticks.length).toBeLessThanOrEqual(most + 2);
    for (const value of [...values, ...ticks]) {
      expect(value).toBeGreaterThanOrEqual(from);
      expect(value).toBeLessThanOrEqual(to * (1 + 1e-9));
    }
  });
});

describe("answers", () => {
  test("of another shape are no failure", () => {
    const odd = { columns: [{ name: 3, kind: "x", unit: "y" }, null], rows: [[1, "b", "c"], "no", null], more: "1" };
    expect(sqlAnswer(odd)).toEqual({
      columns: [
        { name: "", kind: "text", unit: "" },
        { name: "", kind: "text", unit: "" },
      ],
      rows: [
        [null, "b"],
        [null, null],
        [null, null],
      ],
      more: 0,
      counted: true,
      cut: false,
    });
    const made = checkAnswer({ findings: [null, { begin_ns: 5, tid: "x", total_ns: 7 }], outcomes: [{}], notices: 3 });
    expect(made.findings).toMatchObject([
      { begin: 0, tid: null, call: null, title: "" },
      { begin: 5, tid: 0, total: 7 },
    ]);
    expect(made).toMatchObject({ outcomes: [{ outcome: "", why: "" }], failures: [], notices: [] });
    expect(sqlSchema({})).toEqual({ missing: "", tables: [], macros: [] });
  });

  test("of the latest question alone are kept; each is remembered once", async () => {
    const asking = new Asking<string>();
    let first: (answer: string) => void = () => {};
    const slow = asking.ask(0, "a", (signal) => {
      expect(signal.aborted).toBe(false);
      return new Promise((resolve) => (first = resolve));
    });
    await asking.ask(0, "b", async () => "answer of b");
    first("late");
    await slow;
    expect(asking.of(0).answer).toBe("answer of b");
    expect(asking.of(1).answer).toBeUndefined();
    await asking.ask(0, "a", async () => Promise.reject(new Error("no")));
    expect(asking.of(0)).toMatchObject({ error: "no", text: "a" });
    expect(asking.history).toEqual(["b", "a"]);
  });
});
