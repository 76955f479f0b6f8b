// SPDX-License-Identifier: MIT
// Arguments and returned values of calls: as words, and remembered for what the picture shows of them.
import type { Backend } from "../backend/types/backend";
import { MOST_VALUES, type CallRef, type CallValues, type NamedValue } from "../backend/types/calls";
import { visible } from "./names";

const MOST_KNOWN = 50_000;
const GATHER = 40; // ms, for what one picture asks about

const list = (values: readonly NamedValue[]): string =>
  values.map(({ name, text }) => (name ? `${visible(name)}=${visible(text)}` : visible(text))).join(", ");

/** `(path="/etc/passwd", flags=0) = 3`: to be put behind a name without its parameters. */
export function valueWords({ arguments: given, returned }: CallValues): string {
  const isStructure = returned[0] !== undefined && returned[0].name !== "";
  return (
    (given.length > 0 ? `(${list(given)})` : "") +
    (returned.length > 0 ? (isStructure ? ` = {${list(returned)}}` : ` = ${list(returned)}`) : "")
  );
}

export const callKey = ({ thread, index }: CallRef): string => `${thread}.${index}`;

/** Values of calls of any threads, by callKey(). */
export async function askValues(
  backend: Backend,
  calls: readonly CallRef[],
  signal?: AbortSignal,
): Promise<Map<string, CallValues>> {
  const byThread = new Map<number, number[]>();
  for (const { thread, index } of calls) {
    const indices = byThread.get(thread);
    if (indices) indices.push(index);
    else byThread.set(thread, [index]);
  }
  const found = new Map<string, CallValues>();
  for (const [thread, indices] of byThread)
    for (let from = 0; from < indices.length; from += MOST_VALUES) {
      const answer = await backend.values(thread, indices.slice(from, from + MOST_VALUES), signal);
      for (const [index, values] of answer) found.set(callKey({ thread, index }), values);
    }
  return found;
}

/** Knows values of one trace's calls, and asks for those that it does not know. */
export class ValueStore {
  private readonly known = new Map<string, CallValues | null>(); // null: there are none
  private wanted = new Map<string, CallRef>();
  private running = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private backend: Backend,
    private readonly onChange: () => void,
  ) {}

  /** A later reading of the trace answers from now on. Calls have their numbers; one that ended meanwhile has returned. */
  renew(backend: Backend): void {
    this.backend = backend;
    for (const [key, values] of this.known) if (values === null || values.returned.length === 0) this.known.delete(key);
  }

  /** Undefined: the call has none, or they come later. */
  of(call: CallRef): CallValues | undefined {
    const key = callKey(call);
    const values = this.known.get(key);
    if (values === undefined) this.want(key, call);
    return values ?? undefined;
  }

  /** Whether all that was asked for is there. */
  get complete(): boolean {
    return this.wanted.size === 0 && !this.running;
  }

  private want(key: string, call: CallRef): void {
    if (this.wanted.size < MOST_KNOWN) this.wanted.set(key, call);
    if (!this.running) this.timer ??= setTimeout(() => void this.ask(), GATHER);
  }

  private async ask(): Promise<void> {
    this.timer = undefined;
    this.running = true;
    const asked = this.wanted;
    this.wanted = new Map();
    const found = await askValues(this.backend, [...asked.values()]).catch(() => new Map<string, CallValues>());
    if (this.known.size + asked.size > MOST_KNOWN) this.known.clear();
    for (const key of asked.keys()) {
      this.known.set(key, found.get(key) ?? null);
      this.wanted.delete(key);
    }
    this.running = false;
    if (this.wanted.size > 0) this.timer = setTimeout(() => void this.ask(), GATHER);
    this.onChange();
  }
}
