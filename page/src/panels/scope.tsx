// SPDX-License-Identifier: MIT
// Which part of the trace tables and flame graph are about; of two traces, which.
import { visible } from "../model/names";
import { store, useStore, type ScopeKind } from "../model/store";
import { scopeOf } from "../model/actions";
import { useAnswer, type Answer } from "./answers";
import { TRACES } from "./parts";
import type { Scope } from "../backend/types/backend";

const KINDS: readonly { id: ScopeKind; label: string; title: string }[] = [
  { id: "all", label: "All", title: "The whole trace" },
  { id: "view", label: "In view", title: "What the timeline shows now, on all threads" },
  { id: "range", label: "Range", title: "The measured range: drag on the ruler" },
  { id: "thread", label: "Thread", title: "The thread of the selected call" },
  { id: "call", label: "Call", title: "The selected call and all that it called" },
];

/** Where the state has it: lists of notes have a part of their own. */
export type ScopeOf = "scope" | "noteScope";

export function ScopeChoice({ of = "scope" }: { of?: ScopeOf }) {
  const scope = useStore((s) => s[of]);
  const range = useStore((s) => s.range);
  const selected = useStore((s) => s.selected);
  return (
    <div class="segments" role="radiogroup" aria-label="Part of the trace">
      {KINDS.map(({ id, label, title }) => {
        const off = (id === "range" && !range) || ((id === "thread" || id === "call") && !selected);
        return (
          <button
            role="radio"
            aria-checked={scope === id}
            disabled={off}
            title={off ? `${title} (there is none yet)` : title}
            onClick={() => store.set({ [of]: id })}
          >
            {label}
          </button>
        );
      })}
    </div>
  );
}

/** Whether what can show both traces does. A thread or a call is of one. */
export function useBoth(): boolean {
  return useStore((s) => s.bothTraces && s.traces.length > 1 && s.scope !== "thread" && s.scope !== "call");
}

/** Two traces are open: whose calls a panel is about. `both`: whether it is about both; undefined: it cannot be. */
export function TraceChoice({ trace, both, fixed }: { trace: number; both?: boolean; fixed?: boolean }) {
  const traces = useStore((s) => s.traces);
  const scope = useStore((s) => s.scope);
  if (traces.length < 2) return null;
  const bound = fixed ?? (scope === "thread" || scope === "call");
  return (
    <div class="segments" role="radiogroup" aria-label="Which trace">
      {traces.map(({ info }, t) => (
        <button
          role="radio"
          aria-checked={!both && trace === t}
          disabled={bound && trace !== t}
          title={visible(info.name)}
          onClick={() => store.set({ bothTraces: false, tableTrace: t })}
        >
          {TRACES[t]}
        </button>
      ))}
      {both !== undefined && (
        <button
          role="radio"
          aria-checked={both}
          disabled={bound}
          title="Both traces in one list"
          onClick={() => store.set({ bothTraces: true })}
        >
          Both
        </button>
      )}
    </div>
  );
}

/** The same part of another trace. A range is one of the timeline: trace B's own time is moved against it. */
export function scopeIn(scope: Scope, of: number, trace: number): Scope {
  const { offset } = store.state;
  if (of === trace || offset === 0 || scope.begin === undefined || scope.end === undefined) return scope;
  const moved = trace === 1 ? -offset : offset;
  return { ...scope, begin: Math.max(0, scope.begin + moved), end: Math.max(0, scope.end + moved) };
}

/** The chosen scope as one text, which changes when the scope does. */
export function useScope(of: ScopeOf = "scope"): { trace: number; scope: Scope; label: string; key: string } {
  const kind = useStore((s) => s[of]);
  useStore((s) => (kind === "range" ? s.range : null));
  useStore((s) => s.selected);
  useStore((s) => s.tableTrace);
  useStore((s) => s.raw);
  useStore((s) => (kind === "view" ? (s.followed ?? s.view) : null));
  const now = scopeOf(store.state, kind);
  return { ...now, key: `${now.trace}:${JSON.stringify(now.scope)}` };
}

/** Asks for something about the scope; with the view as scope, only once it rests. */
export function useScoped<T>(
  extra: string,
  ask: (trace: number, scope: Scope, signal: AbortSignal) => Promise<T>,
): Answer<T> & { trace: number; label: string } {
  const { trace, scope, label, key } = useScope();
  const answer = useAnswer(
    `${key}|${extra}`,
    (signal) => ask(trace, scope, signal),
    store.state.scope === "view" ? 250 : 0,
  );
  return { ...answer, trace, label };
}
