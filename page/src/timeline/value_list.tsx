// SPDX-License-Identifier: MIT
// What a call was given and what it returned, line by line. The texts are the traced program's: they are shown as text,
// whatever they hold.
import type { CallValues } from "../backend/types/calls";
import { visible } from "../model/names";
import { count } from "../model/time";

/** `most`: of lines; the others are counted. */
export function ValueList({ values, most = Infinity }: { values: CallValues; most?: number }) {
  const lines = [
    ...values.arguments.map(({ name, text }) => ({ name: visible(name), text, returned: false })),
    ...values.returned.map(({ name, text }) => ({ name: visible(name), text, returned: true })),
  ];
  return (
    <dl class="values" data-testid="values">
      {lines.slice(0, most).map(({ name, text, returned }) => (
        <div data-returned={returned}>
          <dt>
            {returned && <span class="returned">returned</span>}
            {returned && name !== "" && " "}
            {name}
          </dt>
          <dd>{visible(text)}</dd>
        </div>
      ))}
      {lines.length > most && <div class="quiet">and {count(lines.length - most)} more</div>}
    </dl>
  );
}
