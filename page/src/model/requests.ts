// SPDX-License-Identifier: MIT
// Requests on the page: the range of one that is clicked.
import { moveTo, offsetOf } from "./actions";
import { store } from "./store";
import { fit } from "./view";

/** Its time, in the trace's own, becomes the range. */
export function measureRequest(trace: number, of: { begin: number; duration: number }): void {
  const begin = of.begin + offsetOf(trace);
  const range = { begin, end: begin + of.duration };
  store.set({ range, tableTrace: trace });
  moveTo(fit(range.begin, range.end, store.total));
}
