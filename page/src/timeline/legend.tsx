// SPDX-License-Identifier: MIT
// What the colours of a thread's strip mean, in a corner of the timeline as long as there are any.
import { useStore } from "../model/store";

export function Legend() {
  const shown = useStore((s) => s.traces.some(({ info }) => info.states));
  if (!shown) return null;
  return (
    <div class="state-legend" data-testid="legend">
      <span>
        <i class="state running" /> on CPU
      </span>
      <span>
        <i class="state runnable" /> runnable
      </span>
      <span>
        <i class="state blocked" /> blocked, its calls paled
      </span>
      <span>
        <i class="state unknown" /> not known
      </span>
    </div>
  );
}
