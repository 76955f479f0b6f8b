// SPDX-License-Identifier: MIT
// What a trace's facts do not have, and the page asks for when all of the trace is read: the lists that some kinds of
// tracks are made of. Each is asked for once; the store has it from then on.
import type { LateList } from "../backend/types/late";
import { attempt } from "./attempt";
import { store, type State } from "./store";

/** Undefined: it is not there yet, or the trace has none. */
export const lateOf = <Of>({ path }: LateList<Of>, trace: number, { late }: State = store.state): Of | undefined =>
  late[trace]?.[path] as Of | undefined;

const asking = new Set<string>();

/** Asks for those lists that traces may have and nobody asked for. */
export function wantLate(lists: readonly LateList<unknown>[]): void {
  store.state.traces.forEach(({ backend, info }, t) => {
    if (info.reading || info.aggregated) return;
    for (const list of lists) {
      const key = `${t}.${list.path}`;
      if (!list.has(info) || lateOf(list, t) !== undefined || asking.has(key)) continue;
      asking.add(key);
      void attempt(async () => {
        const found = await backend.list(list);
        const late = [...store.state.late];
        late[t] = { ...late[t], [list.path]: found };
        store.set({ late });
      }).finally(() => asking.delete(key));
    }
  });
}
