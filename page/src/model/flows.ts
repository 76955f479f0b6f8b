// SPDX-License-Identifier: MIT
// Flows of the selected call: what the panel tells and the timeline draws.
import type { FlowAnswer } from "../backend/answers";
import { store, type Selected } from "./store";

/** Of a call that was just selected, if its trace has flows. */
export async function completeFlows(at: Selected): Promise<void> {
  const { backend, info } = store.state.traces[at.trace]!;
  if (!info.hasFlows || info.aggregated) return;
  const flows = await backend.flows({ thread: at.thread, index: at.index });
  const { selected } = store.state;
  if (selected?.trace !== at.trace || selected.thread !== at.thread || selected.index !== at.index) return;
  store.set({ flows: flows.count > 0 ? { at, flows } : null });
}

export interface FlowEnd {
  readonly thread: number;
  readonly depth: number;
  readonly time: number;
}

const DRAWN = 8; // arrows of one call; more of them are told by the panel alone

/** Arrows from step to step, of the selected call's `depth`. */
export function flowArrows(
  { flows }: FlowAnswer,
  thread: number,
  depth: number,
): { from: FlowEnd; to: FlowEnd; coroutine: boolean }[] {
  const arrows = flows.flatMap(({ before: [before], after: [after], begin, end, coroutine }) => {
    const ends = [];
    if (before && before.thread >= 0)
      ends.push({
        from: { thread: before.thread, depth: before.depth ?? 0, time: before.end },
        to: { thread, depth, time: begin },
        coroutine,
      });
    if (after && after.thread >= 0)
      ends.push({
        from: { thread, depth, time: end },
        to: { thread: after.thread, depth: after.depth ?? 0, time: after.begin },
        coroutine,
      });
    return ends;
  });
  return arrows.slice(0, DRAWN);
}
