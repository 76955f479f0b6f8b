// SPDX-License-Identifier: MIT
// An answer about what is in view, that is asked for when the view rests, with half a view more on either side. While
// the view moves, what is there is drawn.
const REST_MS = 90;
const MOST_BUCKETS = 8192; // of an answer

/** Pixels of a picture: a power of two ns each, so that what is summed in one stays where it is as the view moves. */
export interface Buckets {
  readonly begin: number;
  readonly end: number;
  readonly bucketNs: number;
}

/** A power of two: `pixels` pixels at least, twice as many at most. */
export function bucketOf(pixelNs: number, pixels: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(pixelNs * pixels, 1e-9))));
}

export class ViewAnswer<T> {
  /** The last answer, and what it is about. */
  kept: (Buckets & { readonly of: ReadonlySet<number>; readonly value: T }) | undefined;
  private asked = "";
  private stale = false;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private running: AbortController | undefined;

  /** `extent`: the trace's end. `ask`: about some things by their numbers; `width` buckets. */
  constructor(
    private extent: number,
    private ask: (range: Buckets, width: number, of: readonly number[], signal: AbortSignal) => Promise<T>,
    private readonly onChange: () => void,
  ) {}

  /** From now on `ask` knows more, up to `extent`. What is there is drawn until it has answered. */
  renew(extent: number, ask: typeof this.ask): void {
    this.drop();
    this.extent = extent;
    this.ask = ask;
    this.stale = true;
  }

  /** Whether nothing is on its way. */
  get complete(): boolean {
    return this.timer === undefined && this.running === undefined;
  }

  /** What the next picture shows: a range in the trace's own time, and of what. */
  want(begin: number, end: number, bucketNs: number, of: readonly number[]): void {
    if (of.length === 0 || this.has(begin, end, bucketNs, of)) return this.drop();
    const key = `${begin}+${end}/${bucketNs}/${of.join()}`;
    if (key === this.asked) return;
    this.drop();
    this.asked = key;
    this.timer = setTimeout(() => void this.fetch(begin, end, bucketNs, of), REST_MS);
  }

  private has(begin: number, end: number, bucketNs: number, of: readonly number[]): boolean {
    const { kept } = this;
    return (
      !this.stale &&
      kept?.bucketNs === bucketNs &&
      kept.begin <= Math.max(0, begin) &&
      kept.end >= Math.min(end, this.extent) &&
      of.every((one) => kept.of.has(one))
    );
  }

  private drop(): void {
    this.asked = "";
    clearTimeout(this.timer);
    this.timer = undefined;
    this.running?.abort();
    this.running = undefined;
  }

  private async fetch(begin: number, end: number, bucketNs: number, of: readonly number[]): Promise<void> {
    this.timer = undefined;
    const { signal } = (this.running = new AbortController());
    const more = Math.max(0, Math.min((end - begin) / 2, ((MOST_BUCKETS - 2) * bucketNs - (end - begin)) / 2));
    const from = Math.max(0, Math.floor((begin - more) / bucketNs)) * bucketNs;
    const to = Math.max(from + bucketNs, Math.ceil((end + more) / bucketNs) * bucketNs);
    const range = { begin: from, end: to, bucketNs };
    const width = Math.min(MOST_BUCKETS, Math.round((to - from) / bucketNs));
    const value = await this.ask(range, width, of, signal).catch(() => undefined);
    if (signal.aborted) return;
    this.running = undefined;
    this.stale = false;
    if (value !== undefined) this.kept = { ...range, of: new Set(of), value };
    this.onChange();
  }
}
