// SPDX-License-Identifier: MIT
// What came since the page was opened, taken in without opening it again: facts, tracks and answers are those of the
// next reading of the file, while view, panels, focus and what was chosen stay. What has another number there is named
// by that from then on.
import { hold, Network, renew, type Renewal } from "../backend/network";
import { Questions } from "../backend/questions";
import type { FunctionInfo } from "../backend/types/trace";
import { completeSelection } from "./actions";
import { attempt } from "./attempt";
import { knownLists } from "./late";
import { store, type LoadedTrace, type Range, type Selected, type State } from "./store";
import { wholeView } from "./view";

type Change = { -readonly [K in keyof State]?: State[K] };

/** The calls that a person has chosen. */
function chosenCalls({ selected, explained, baseline }: State): (Selected | null)[] {
  return [selected, explained, baseline];
}

const nameOf = ({ trace, thread, index }: Selected) => `${trace}.${thread}.${index}`;

/** Where the chosen calls are now, in the order of chosenCalls(). */
function movedCalls(state: State, { calls }: Renewal): (Selected | null)[] {
  let next = 0;
  return chosenCalls(state).map((call) => {
    const at = call && calls[next++];
    return at ? { trace: at[0], thread: at[1], index: at[2] } : null;
  });
}

const sooner = <T extends Range>(range: T | null, shift: number): T | null =>
  range && { ...range, begin: range.begin - shift, end: range.end - shift };

/** `trace:thread` of threads; other tracks are named by what they are. */
function movedKeys(keys: ReadonlySet<string>, { threads }: Renewal): ReadonlySet<string> {
  return new Set(
    [...keys].flatMap((key) => {
      const found = /^(\d+):(\d+)$/.exec(key);
      if (!found) return [key];
      const now = threads[Number(found[1])]?.[Number(found[2])] ?? -1;
      return now < 0 ? [] : [`${found[1]}:${now}`];
    }),
  );
}

const sameFunction = (a: FunctionInfo, b: FunctionInfo | undefined) =>
  b !== undefined && a.name === b.name && a.file === b.file && a.line === b.line && a.module === b.module;

function movedHighlight({ highlight, traces }: State, loaded: readonly LoadedTrace[]): State["highlight"] {
  const before = highlight && traces[highlight.trace]?.info.functions[highlight.function];
  const now = before && loaded[highlight.trace]?.info.functions;
  if (!before || !now) return null;
  if (sameFunction(before, now[highlight.function])) return highlight;
  const found = now.findIndex((one) => one && sameFunction(before, one));
  return found < 0 ? null : { trace: highlight.trace, function: found };
}

/** What becomes of the state. */
export function renewedState(
  state: State,
  loaded: readonly LoadedTrace[],
  late: State["late"],
  renewal: Renewal,
): Partial<State> {
  const { same, shift, generation } = renewal;
  const change: Change = { traces: loaded, late, generation, grown: false };
  if (shift !== 0) {
    change.view = { ...state.view, begin: state.view.begin - shift };
    change.range = sooner(state.range, shift);
    change.selectedSpan = sooner(state.selectedSpan, shift);
    change.frameSpan = sooner(state.frameSpan, shift);
    change.pointed = sooner(state.pointed, shift);
  }
  if (same === "calls") return change;
  const [selected, explained, baseline] = movedCalls(state, renewal);
  Object.assign(change, {
    selected,
    explained,
    baseline,
    waking: null,
    lock: null,
    flows: null,
    note: null,
    menu: null,
  });
  change.callNumbers = state.callNumbers + 1;
  if (!selected) change.selectedSpan = null;
  if (state.selected && !selected) change.notice = "The selected call is not in what is shown now.";
  if (same === "threads") return change;
  change.numbers = state.numbers + 1;
  change.ranks = [];
  change.highlight = movedHighlight(state, loaded);
  const { pinned, folded } = state.choice;
  change.choice = { ...state.choice, pinned: movedKeys(pinned, renewal), folded: movedKeys(folded, renewal) };
  if (same === "file") return change;
  const total = Math.max(20, ...loaded.map(({ info }) => info.extent));
  return {
    ...change,
    ...{ view: wholeView(total), range: null, frame: null, frameSpan: null, pointed: null, scroll: 0 },
    notice: "The file is another recording by now: this is what it has.",
  };
}

/**
 * Takes in what the file has by now; `newest`: its newest part is enough. False: there was nothing. Fails as questions do;
 * then all is as it was.
 */
export async function renewTraces(newest: boolean): Promise<boolean> {
  for (;;) {
    const { generation, traces } = store.state;
    const calls = chosenCalls(store.state).flatMap((call) => (call ? [nameOf(call)] : []));
    const renewal = await renew(generation, calls, newest);
    if (renewal.generation === generation) return false;
    const loaded = await Promise.all(
      traces.map(async ({ number }): Promise<LoadedTrace> => {
        const backend = new Questions(new Network(number, renewal.generation));
        const from = renewal.from[number] ?? undefined;
        const info = await backend.trace();
        return { number, backend, info, same: renewal.same, ...(from === undefined ? {} : { from }) };
      }),
    );
    const late = renewal.same === "nothing" ? [] : await knownLists(loaded, store.state.late);
    // Somebody may have chosen another call meanwhile.
    const now = chosenCalls(store.state).flatMap((call) => (call ? [nameOf(call)] : []));
    if (renewal.same !== "calls" && now.join() !== calls.join()) continue;
    store.set(renewedState(store.state, loaded, late, renewal));
    hold(renewal.generation);
    // What was chosen may have ended meanwhile.
    const { selected } = store.state;
    if (selected) void attempt(() => completeSelection(selected));
    return true;
  }
}
