// SPDX-License-Identifier: MIT
// Answers that name calls by numbers which these calls no longer have, as the trace was read again meanwhile. They stay
// in sight until the next ones are there; what they name cannot be chosen.
const answers = new Set<object>();

/** Whether an answer in sight is such a one, from now on. */
export function markStale(answer: object, stale: boolean): void {
  if (stale) answers.add(answer);
  else answers.delete(answer);
}

export const isAnyStale = (): boolean => answers.size > 0;
