// Requests on the page: their list, and the range of one that is clicked.
import { attempt, moveTo, offsetOf } from "./actions";
import { store } from "./store";
import { fit } from "./view";

const listing = new Set<number>();

/** Asks once for the requests of traces that have some. */
export function wantRequests(): void {
  store.state.traces.forEach(({ backend, info }, t) => {
    const has = info.threads.some(({ notes }) => (notes.request ?? 0) > 0);
    if (!has || info.reading || info.aggregated || store.state.requests[t] || listing.has(t)) return;
    listing.add(t);
    void attempt(async () => {
      const found = await backend.requests();
      const requests = [...store.state.requests];
      requests[t] = found;
      store.set({ requests });
    }).finally(() => listing.delete(t));
  });
}

/** Its time, in the trace's own, becomes the range. */
export function measureRequest(trace: number, of: { begin: number; duration: number }): void {
  const begin = of.begin + offsetOf(trace);
  const range = { begin, end: begin + of.duration };
  store.set({ range, tableTrace: trace });
  moveTo(fit(range.begin, range.end, store.total));
}
