// SPDX-License-Identifier: MIT
// What a trace's facts do not have, and the page asks for when all of the trace is read: the lists that some kinds of
// tracks are made of. Each is asked for once; the store has it from then on.
import type { LateList } from "../backend/types/late";
import { attempt } from "./attempt";
import { store, type LoadedTrace, type State } from "./store";

/** Undefined: it is not there yet, or the trace has none. */
export const lateOf = <Of>({ path }: LateList<Of>, trace: number, { late }: State = store.state): Of | undefined =>
  late[trace]?.[path] as Of | undefined;

const asking = new Set<string>();
let all: readonly LateList<unknown>[] = [];

/** What the store has of `before`, asked for again of other backends. */
export async function knownLists(traces: readonly LoadedTrace[], before: State["late"]): Promise<State["late"]> {
  return await Promise.all(
    traces.map(async ({ backend, info }, t) => {
      const lists = all.filter((list) => before[t]?.[list.path] !== undefined && list.has(info));
      const found = await Promise.all(lists.map(async (list) => [list.path, await backend.list(list)] as const));
      return Object.fromEntries(found);
    }),
  );
}

/** Asks for those lists that traces may have and nobody asked for. */
export function wantLate(lists: readonly LateList<unknown>[]): void {
  all = lists;
  store.state.traces.forEach(({ backend, info }, t) => {
    if (info.reading || info.aggregated) return;
    for (const list of lists) {
      const key = `${t}.${list.path}`;
      if (!list.has(info) || lateOf(list, t) !== undefined || asking.has(key)) continue;
      asking.add(key);
      void attempt(async () => {
        const found = await backend.list(list);
        // What came of an earlier reading is asked for again.
        if (store.state.traces[t]?.backend !== backend) return;
        const late = [...store.state.late];
        late[t] = { ...late[t], [list.path]: found };
        store.set({ late });
      }).finally(() => {
        asking.delete(key);
        if (store.state.traces[t] && store.state.traces[t].backend !== backend) wantLate(lists);
      });
    }
  });
}
