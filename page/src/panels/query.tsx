// SPDX-License-Identifier: MIT
// A trace asked in SQL, as `karst query` does: a field for it, and below what it answers as a table, and as a plot.
import { useRef, useState } from "preact/hooks";
import type { SqlAnswer } from "../backend/types/sql";
import { queries, useAsked, whyNoSql, type Asked } from "../model/asking";
import { attempt } from "../model/attempt";
import { visible } from "../model/names";
import { csv } from "../model/sql";
import { store, useStore } from "../model/store";
import { count, duration } from "../model/time";
import { Empty, TimesChoice } from "./parts";
import { TraceChoice } from "./scope";
import { SqlPlot } from "./sql_plot";
import { SqlSchema } from "./sql_schema";
import { SqlTable } from "./sql_table";

const FIRST = `SELECT function, count(*) AS calls, sum(self_ns) AS self_ns, max(duration_ns) AS longest_ns
FROM calls GROUP BY function ORDER BY self_ns DESC LIMIT 20`;

/** What was written, whichever panel is shown. */
const kept = { text: FIRST, schema: false, plot: false };

const SQL_KEYS = "Ctrl+Enter asks; the arrow keys above the first and below the last line go through what was asked";

function ask(trace: number, text: string): void {
  const { raw, traces } = store.state;
  void queries.ask(trace, text, (signal) => traces[trace]!.backend.sql(text, raw, signal));
}

function copyCsv(answer: SqlAnswer): void {
  void attempt(async () => {
    await navigator.clipboard.writeText(csv(answer));
    store.set({ notice: `Copied as CSV: ${count(answer.rows.length)} rows` });
  });
}

/** Where arrows leave the text they go through what was asked before. */
function Editor({ trace, text, write }: { trace: number; text: string; write: (text: string) => void }) {
  const place = useRef<number>();
  const draft = useRef("");
  const remember = (event: KeyboardEvent, by: number) => {
    const { history } = queries;
    const field = event.currentTarget as HTMLTextAreaElement;
    const { selectionStart: from, selectionEnd: to, value } = field;
    const leaves = by < 0 ? !value.slice(0, from).includes("\n") : !value.slice(to).includes("\n");
    const now = place.current ?? history.length;
    const next = now + by;
    if (!leaves || from !== to || next < 0 || next > history.length) return;
    event.preventDefault();
    if (now === history.length) draft.current = value;
    place.current = next;
    write(history[next] ?? draft.current);
  };
  return (
    <textarea
      class="sql-text"
      aria-label="SQL"
      title={SQL_KEYS}
      spellcheck={false}
      autocapitalize="off"
      data-testid="sql"
      rows={3}
      value={text}
      onInput={(event) => {
        place.current = undefined;
        write(event.currentTarget.value);
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          place.current = undefined;
          ask(trace, text);
        } else if (!event.shiftKey && event.key === "ArrowUp") remember(event, -1);
        else if (!event.shiftKey && event.key === "ArrowDown") remember(event, 1);
      }}
    />
  );
}

function summary({ answer, took, running }: Asked<SqlAnswer>): string {
  if (running) return "Asking…";
  if (!answer || took === undefined) return "";
  const all = answer.rows.length + answer.more;
  if (answer.more === 0) return `${count(all)} ${all === 1 ? "row" : "rows"} in ${duration(took * 1e6)}`;
  const more = `${answer.counted ? "" : "at least "}${count(answer.more)} more`;
  return `the first ${count(answer.rows.length)} rows, ${more}, in ${duration(took * 1e6)}`;
}

/** A plan is a drawing of letters. */
const isPlan = (answer: SqlAnswer) => answer.columns[0]?.name === "explain_key";

function Answered({ asked, trace, plot }: { asked: Asked<SqlAnswer>; trace: number; plot: boolean }) {
  const { answer, error, running } = asked;
  if (error !== undefined)
    return (
      <pre class="sql-error" role="alert" data-testid="sql-error">
        {error.split("\n").map(visible).join("\n")}
      </pre>
    );
  if (!answer) return <Empty>{running ? "Asking…" : "Every list that Karst makes of a trace is a table here."}</Empty>;
  if (isPlan(answer)) return <pre class="sql-plan">{answer.rows.map((row) => row[1] ?? "").join("\n")}</pre>;
  if (answer.columns.length === 0) return <Empty>Done. This statement answers no rows.</Empty>;
  return (
    <div class={`sql-answer${running ? " old" : ""}${plot ? " plotted" : ""}`}>
      <SqlTable answer={answer} trace={trace} />
      {plot && <SqlPlot answer={answer} trace={trace} />}
    </div>
  );
}

export function QueryPanel() {
  const trace = useStore((s) => Math.max(0, Math.min(s.tableTrace, s.traces.length - 1)));
  const { info } = useStore((s) => s.traces[trace]!);
  const asked = useAsked(queries, trace);
  const [view, setView] = useState(kept);
  const change = (some: Partial<typeof kept>) => setView({ ...Object.assign(kept, some) });
  const why = whyNoSql(trace, `karst query ${visible(info.name)} 'SELECT …'`);
  if (why !== undefined) return <Empty>{why}</Empty>;
  const { answer, running } = asked;
  return (
    <div class="query-panel">
      <div class="pane-tools">
        <TraceChoice trace={trace} fixed={false} />
        {running ? (
          <button onClick={() => queries.stop(trace)}>Stop</button>
        ) : (
          <button class="primary" title="Ctrl+Enter" onClick={() => ask(trace, view.text)}>
            Ask
          </button>
        )}
        <select
          aria-label="What was asked before"
          value=""
          disabled={queries.history.length === 0}
          onChange={(event) => change({ text: queries.history[Number(event.currentTarget.value)] ?? view.text })}
        >
          <option value="">Before…</option>
          {queries.history.map((text, i) => (
            <option value={String(i)}>{visible(text.replace(/\s+/g, " ").slice(0, 80))}</option>
          ))}
        </select>
        <button aria-pressed={view.schema} onClick={() => change({ schema: !view.schema })}>
          Tables
        </button>
        <button
          aria-pressed={view.plot}
          disabled={!answer || isPlan(answer)}
          onClick={() => change({ plot: !view.plot })}
        >
          Plot
        </button>
        <button disabled={!answer} onClick={() => answer && copyCsv(answer)}>
          Copy as CSV
        </button>
        <span class="grow" />
        <TimesChoice traces={[trace]} />
        <span class="quiet" role="status" data-testid="sql-sum">
          {summary(asked)}
          {answer?.cut && !running && "; long texts are cut"}
        </span>
      </div>
      <Editor trace={trace} text={view.text} write={(text) => change({ text })} />
      <div class="sql-below">
        <Answered asked={asked} trace={trace} plot={view.plot} />
        {view.schema && <SqlSchema trace={trace} />}
      </div>
    </div>
  );
}
