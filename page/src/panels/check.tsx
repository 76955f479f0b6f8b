// SPDX-License-Identifier: MIT
// Known kinds of trouble, as `karst check` finds them. A finding leads to the call to look at first, or to its moment.
import type { CheckFinding } from "../backend/answers";
import type { CheckAnswer } from "../backend/types/sql";
import { checks, useAsked, whyNoSql } from "../model/asking";
import { goToLead } from "../model/leads";
import { visible } from "../model/names";
import { size } from "../model/sizes";
import { parseCallName, threadAt } from "../model/sql";
import { store, useStore } from "../model/store";
import { count, duration, percent } from "../model/time";
import { Empty, Failed, TimesChoice } from "./parts";
import { TraceChoice } from "./scope";

function amount({ amount: of, unit }: CheckFinding): string {
  if (unit === "ns") return duration(of);
  if (unit === "bytes") return size(of);
  return `${count(of)} ${visible(unit)}`.trim();
}

function go(trace: number, of: CheckFinding): void {
  const { info } = store.state.traces[trace]!;
  const named = parseCallName(of.call ?? "");
  const tid = named?.tid ?? of.tid;
  const begin = named?.begin ?? of.begin;
  const thread = tid === null ? undefined : threadAt(info, tid, begin);
  const isCall = named !== undefined && thread !== undefined;
  void goToLead(trace, { begin, duration: of.duration, isCall, ...(thread === undefined ? {} : { thread }) }, "check");
}

function Finding({ of, trace }: { of: CheckFinding; trace: number }) {
  return (
    <li>
      <button data-testid="check-finding" data-detector={of.detector} title="Go there" onClick={() => go(trace, of)}>
        <b>{visible(of.title)}</b>
        <span class="quiet">
          at {duration(of.begin)}
          {of.tid !== null && ` in thread ${of.tid} ${visible(of.thread ?? "")}`}; {duration(of.total)} in all;{" "}
          {amount(of)}; {percent(of.sure)} sure
        </span>
        <span>{visible(of.sentence)}</span>
        <span class="quiet">{of.detector}</span>
      </button>
    </li>
  );
}

/** What was not found, and why not. */
function Others({ answer }: { answer: CheckAnswer }) {
  const names = (outcome: string) => answer.outcomes.filter((of) => of.outcome === outcome);
  const nothing = names("nothing");
  const reasons = new Map<string, string[]>();
  for (const of of names("not looked for")) reasons.set(of.why, [...(reasons.get(of.why) ?? []), of.detector]);
  return (
    <div class="check-others">
      {names("failed").map((of) => (
        <p class="warn" role="alert">
          Failed: {of.detector}: {visible(of.why)}
        </p>
      ))}
      {[...answer.failures, ...answer.notices].map((line) => (
        <p class="warn">{visible(line)}</p>
      ))}
      {nothing.length > 0 && <p>Looked for, and not found: {nothing.map((of) => of.detector).join(", ")}</p>}
      {[...reasons].map(([why, of]) => (
        <p class="quiet">
          Not looked for: {of.join(", ")}: {visible(why)}
        </p>
      ))}
    </div>
  );
}

export function CheckPanel() {
  const trace = useStore((s) => Math.max(0, Math.min(s.tableTrace, s.traces.length - 1)));
  const { info, backend } = useStore((s) => s.traces[trace]!);
  const { answer, error, running } = useAsked(checks, trace);
  const why = whyNoSql(trace, `karst check ${visible(info.name)}`);
  if (why !== undefined) return <Empty>{why}</Empty>;
  const look = () => void checks.ask(trace, "", (signal) => backend.check(store.state.raw, signal));
  return (
    <div class="check-panel">
      <div class="pane-tools">
        <TraceChoice trace={trace} fixed={false} />
        {running ? (
          <button onClick={() => checks.stop(trace)}>Stop</button>
        ) : (
          <button class="primary" onClick={look}>
            {answer ? "Look again" : "Look for known trouble"}
          </button>
        )}
        <span class="grow" />
        <TimesChoice traces={[trace]} />
        <span class="quiet" role="status" data-testid="check-sum">
          {running
            ? "Looking…"
            : answer && `${count(answer.findings.length)} found by ${count(answer.outcomes.length)} detectors`}
        </span>
      </div>
      {error !== undefined ? (
        <Failed message={error} />
      ) : !answer ? (
        <Empty>
          {running
            ? "Each detector goes through the calls once."
            : "N+1 calls, lock convoys, busy waits and more, and detectors of your own."}
        </Empty>
      ) : (
        <div class="check-list" tabIndex={0} aria-label="Findings">
          {answer.findings.length === 0 && <p>Nothing was found.</p>}
          <ol>
            {answer.findings.map((of) => (
              <Finding of={of} trace={trace} />
            ))}
          </ol>
          <Others answer={answer} />
        </div>
      )}
    </div>
  );
}
