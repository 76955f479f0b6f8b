// SPDX-License-Identifier: MIT
// Requests: what all threads did for each, as `karst requests` lists them. A click measures one: its time is the range
// that tables and flame graphs can be about.
import { useState } from "preact/hooks";
import type { Request } from "../backend/answers";
import { REQUESTS } from "../backend/late_lists";
import { offsetOf } from "../model/actions";
import { readable, visible } from "../model/names";
import { measureRequest } from "../model/requests";
import { store, useStore } from "../model/store";
import { count, duration, exact } from "../model/time";
import { useAnswer } from "./answers";
import { Icon } from "./icon";
import { Empty, Failed, FullName, Swatch, Waiting } from "./parts";
import { TraceChoice } from "./scope";

type Key = "request" | "begin" | "duration" | "idle" | "work" | "cpu" | "runnable" | "blocked" | "threads" | "calls";

const COLUMNS: readonly { key: Key; label: string; title: string; states?: true }[] = [
  { key: "request", label: "Request", title: "Its number, as the program says it" },
  { key: "begin", label: "Begin", title: "After the trace's first event" },
  { key: "duration", label: "Duration", title: "From its begin to its end; < and >: there is no note of that" },
  { key: "idle", label: "Idle", title: "Time in which no thread worked on it" },
  { key: "work", label: "Work", title: "Time of all threads together, without what tracing took" },
  { key: "cpu", label: "On CPU", title: "Part of the work", states: true },
  { key: "runnable", label: "Runnable", title: "Part of the work in which a thread had no CPU", states: true },
  { key: "blocked", label: "Blocked", title: "Part of the work in which a thread waited", states: true },
  { key: "threads", label: "Threads", title: "That worked on it" },
  { key: "calls", label: "Calls", title: "That began in that time" },
];

function Cell({ of, name }: { of: Request; name: Key }) {
  const value = of[name];
  if (value === null) return <td class="num">–</td>;
  if (typeof value === "string") return <td class="num">{value}</td>;
  if (name === "threads" || name === "calls") return <td class="num">{count(value)}</td>;
  if (name !== "duration") return <td class="num">{duration(value)}</td>;
  return (
    <td class="num" title={exact(value)}>
      {of.begun ? "" : "<"}
      {duration(value)}
      {of.ended ? "" : ">"}
    </td>
  );
}

function MostIn({ of, trace }: { of: Request; trace: number }) {
  const name = store.state.traces[trace]!.info.functions[of.mostIn]?.name ?? "";
  return (
    <span class="most-in" title={visible(name)}>
      <span class="num">{duration(of.most)}</span>
      <Swatch trace={trace} func={of.mostIn} />
      <FullName text={readable(name)} />
    </span>
  );
}

function Rows({ trace, requests }: { trace: number; requests: readonly Request[] }) {
  const [sort, setSort] = useState<{ key: Key; ascending: boolean }>({ key: "duration", ascending: false });
  const range = useStore((s) => s.range);
  const { info } = store.state.traces[trace]!;
  const columns = COLUMNS.filter(({ states }) => !states || info.states);
  const number = (of: Request) => (sort.key === "request" ? BigInt(of.request || 0) : (of[sort.key] ?? 0));
  const order = (a: Request, b: Request) => (number(a) < number(b) ? -1 : number(a) > number(b) ? 1 : 0);
  const sorted = [...requests].sort((a, b) => order(a, b) * (sort.ascending ? 1 : -1));
  const move = (event: KeyboardEvent, by: number) => {
    const row = event.currentTarget as HTMLElement;
    const next = (by < 0 ? row.previousElementSibling : row.nextElementSibling) as HTMLElement | null;
    next?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="requests">
      <table>
        <thead>
          <tr>
            {columns.map(({ key, label, title }) => (
              <th aria-sort={sort.key === key ? (sort.ascending ? "ascending" : "descending") : "none"}>
                <button
                  title={title}
                  class={sort.key === key ? "sorted" : ""}
                  onClick={() => setSort({ key, ascending: sort.key === key ? !sort.ascending : key === "begin" })}
                >
                  {label}
                  {sort.key === key && <Icon name={sort.ascending ? "up" : "down"} />}
                </button>
              </th>
            ))}
            <th class="most">
              <span title="The function with the greatest self time in it">Most in</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {sorted.map((request, i) => {
            const on = range?.begin === request.begin + offsetOf(trace) && range.end - range.begin === request.duration;
            return (
              <tr
                key={`${request.process}.${request.request}.${request.begin}`}
                tabIndex={i === 0 || on ? 0 : -1}
                class={on ? "on" : ""}
                aria-selected={on}
                data-testid="request"
                data-request={request.request}
                title="Click or Enter: measure it"
                onClick={() => measureRequest(trace, request)}
                onKeyDown={(event) => {
                  if (event.key === "ArrowDown") return move(event, 1);
                  if (event.key === "ArrowUp") return move(event, -1);
                  if (event.key !== "Enter" && event.key !== " ") return;
                  event.preventDefault();
                  event.stopPropagation();
                  measureRequest(trace, request);
                }}
              >
                {columns.map(({ key }) => (
                  <Cell of={request} name={key} />
                ))}
                <td class="most">{request.mostIn >= 0 && <MostIn of={request} trace={trace} />}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

export function RequestPanel() {
  const trace = useStore((s) => Math.max(0, Math.min(s.tableTrace, s.traces.length - 1)));
  const range = useStore((s) => s.range);
  const answer = useAnswer(`${trace}`, (signal) => store.state.traces[trace]!.backend.list(REQUESTS, signal));
  const { value, error } = answer;
  return (
    <div class="request-panel">
      <div class="pane-tools">
        <TraceChoice trace={trace} fixed={false} />
        {range && (
          <>
            <button onClick={() => store.set({ tab: "functions", scope: "range" })}>Table of the range</button>
            <button onClick={() => store.set({ tab: "flame", scope: "range" })}>Flame graph</button>
          </>
        )}
        <span class="grow" />
        <span class="quiet" role="status" data-testid="request-sum">
          {value &&
            value.count > 0 &&
            `${count(value.count)} ${value.count === 1 ? "request" : "requests"}${
              value.count > value.requests.length ? `, the longest ${count(value.requests.length)} of them` : ""
            }`}
        </span>
      </div>
      {error ? (
        <Failed message={error} again={answer.again} />
      ) : !value ? (
        <Waiting answer={answer} />
      ) : value.count === 0 ? (
        <Empty>
          This trace has no requests. A program tells of them with <code>karst_request_begin(ID)</code>,{" "}
          <code>karst_request(ID)</code> and <code>karst_request_end(ID)</code> of karst/karst.h.
        </Empty>
      ) : (
        <Rows trace={trace} requests={value.requests} />
      )}
    </div>
  );
}
