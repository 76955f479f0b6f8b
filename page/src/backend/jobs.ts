// SPDX-License-Identifier: MIT
// Long answers under way: how far the server is with each, and stopping those that nobody wants any more. An answer is
// known by the signal that its asker can abort it with.

/** The page, by which the server knows what to end with it. */
export const PAGE = crypto.randomUUID().slice(0, 18);

let next = 0;
let progress: Record<string, readonly [number, number]> = {};
const names = new WeakMap<AbortSignal, string[]>();
const listeners = new Set<() => void>();

/** A name for the job that answers a question; once `signal` is aborted, `stop` is called with it. */
export function startJob(signal: AbortSignal, stop: (name: string) => void): string {
  const name = `${PAGE}.${next++}`;
  const known = names.get(signal);
  if (known) known.push(name);
  else names.set(signal, [name]);
  signal.addEventListener("abort", () => stop(name), { once: true });
  return name;
}

/** What the server says of all its jobs. */
export function jobsAre(now: Record<string, readonly [number, number]>): void {
  progress = now;
  for (const listener of listeners) listener();
}

export function onJobs(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** How far what was asked with this signal is, 0 to 1; undefined: not known. */
export function shareOf(signal: AbortSignal): number | undefined {
  let done = 0;
  let expected = 0;
  for (const name of names.get(signal) ?? []) {
    done += progress[name]?.[0] ?? 0;
    expected += progress[name]?.[1] ?? 0;
  }
  return expected > 0 ? Math.min(1, done / expected) : undefined;
}
