// SPDX-License-Identifier: MIT
// Keeps the tiles that were fetched, asks for those that are needed, and finds something to show for
// those that are not there yet.
//
// A tile is 1024 pixels of a power of two nanoseconds each, at a multiple of its own length, of up to
// 64 lanes of one track. So a pan meets the same tiles again, and a zoom needs new ones only when it
// crosses a power of two; until they are there, coarser or finer ones stand in.
import type { Backend } from "../backend/types/backend";
import type { Levels, Row } from "../backend/types/tiles";

export const TILE_PIXELS = 1024;
export const BAND_LEVELS = 64;
const MOST_BYTES = 48 << 20;
const MOST_RUNNING = 4;
const TRACKS_AT_ONCE = 8;
const COARSER = 12; // levels to look up for a stand-in
const FINER = 3;

/** Rows of a tile, and the length of the pixels they were made for. */
export interface Tile {
  readonly rows: readonly Row[];
  readonly begin: number;
  readonly end: number;
  /** Where the pixels that were summed for begin. */
  readonly origin: number;
  readonly pixelNs: number;
  /** Calls have other numbers by now: it can be looked at, and no more. */
  readonly renumbered?: true;
}

interface Kept {
  tile: Tile;
  bytes: number;
  used: number;
  /** More is known by now: it is shown until the next one is there. */
  stale?: true;
}

export interface Need {
  readonly track: number; // its id
  readonly band: number; // levels 64 * band and up
}

export function levelOf(nsPerPixel: number): number {
  return Math.max(0, Math.floor(Math.log2(Math.max(nsPerPixel, 1e-9))));
}

export function tileLength(level: number): number {
  return 2 ** level * TILE_PIXELS;
}

function bytesOf(rows: readonly Row[]): number {
  let slices = 0;
  for (const row of rows) slices += row.begin.length;
  return slices * 30 + rows.length * 400 + 200;
}

export class TileStore {
  private readonly kept = new Map<string, Kept>();
  private readonly running = new Map<string, AbortController>();
  private bytes = 0;
  private clock = 0;
  private wanted: { level: number; number: number; needs: Need[] }[] = [];
  private lastError = "";
  /** Duration of the longest slice that was ever fetched. */
  longest = 0;

  constructor(
    private backend: Backend,
    private readonly onChange: () => void,
    private readonly onError: (message: string) => void,
    readonly only?: number,
  ) {}

  /** Of these tracks more is known by now: what was fetched of them goes. */
  forget(tracks: ReadonlySet<number>): void {
    const of = (key: string) => tracks.has(parseInt(key, 10));
    for (const [key, kept] of this.kept)
      if (of(key)) {
        this.bytes -= kept.bytes;
        this.kept.delete(key);
      }
    for (const [key, controller] of this.running)
      if (of(key)) {
        controller.abort();
        this.running.delete(key);
      }
  }

  /** From now on `backend` answers, which knows more. `ids`: tracks by the ids that they had. */
  renew(backend: Backend, ids: ReadonlyMap<number, number>, sameCalls: boolean): void {
    this.backend = backend;
    for (const controller of this.running.values()) controller.abort();
    this.running.clear();
    this.wanted = [];
    const before = [...this.kept];
    this.kept.clear();
    this.bytes = 0;
    for (const [key, { tile, bytes, used }] of before) {
      const track = parseInt(key, 10);
      const id = ids.get(track);
      if (id === undefined) continue;
      this.bytes += bytes;
      const shown = sameCalls ? tile : { ...tile, renumbered: true as const };
      this.kept.set(`${id}${key.slice(String(track).length)}`, { tile: shown, bytes, used, stale: true });
    }
  }

  private static key(track: number, band: number, level: number, number: number): string {
    return `${track}.${band}/${level}/${number}`;
  }

  /** Whether all that was last asked for is there. */
  get complete(): boolean {
    return this.running.size === 0 && this.wanted.length === 0;
  }

  /** Says what the next picture needs: parts of tracks, a range, and the length of a pixel. Call once a frame. */
  want(needs: readonly Need[], begin: number, end: number, nsPerPixel: number): void {
    ++this.clock;
    const level = levelOf(nsPerPixel);
    const length = tileLength(level);
    const first = Math.max(0, Math.floor(begin / length));
    const last = Math.floor(end / length);
    this.wanted = [];
    const stillWanted = new Set<string>();
    for (let number = first; number <= last && number < first + 64; ++number) {
      const missing = needs.filter(({ track, band }) => {
        const key = TileStore.key(track, band, level, number);
        stillWanted.add(key);
        const kept = this.kept.get(key);
        if (kept) kept.used = this.clock;
        return (!kept || kept.stale) && !this.running.has(key);
      });
      if (missing.length > 0) this.wanted.push({ level, number, needs: missing });
    }
    // What is no longer on screen need not be fetched.
    const controllers = new Map<AbortController, boolean>();
    for (const [key, controller] of this.running)
      controllers.set(controller, (controllers.get(controller) ?? false) || stillWanted.has(key));
    for (const [controller, wanted] of controllers) if (!wanted) controller.abort();
    this.pump();
  }

  private pump(): void {
    while (this.wanted.length > 0 && new Set(this.running.values()).size < MOST_RUNNING) {
      // The middle of the screen first would be better still; left to right is close.
      const next = this.wanted[0]!;
      // One request takes each track once: bands of the same track go one after another.
      const now: Need[] = [];
      for (const need of next.needs)
        if (now.length < TRACKS_AT_ONCE && !now.some((n) => n.track === need.track)) now.push(need);
      next.needs = next.needs.filter((need) => !now.includes(need));
      if (next.needs.length === 0) this.wanted.shift();
      void this.fetch(next.level, next.number, now);
    }
  }

  private async fetch(level: number, number: number, needs: Need[]): Promise<void> {
    const controller = new AbortController();
    const keys = needs.map(({ track, band }) => TileStore.key(track, band, level, number));
    for (const key of keys) this.running.set(key, controller);
    const length = tileLength(level);
    const begin = number * length;
    const end = begin + length;
    const levels: Levels[] = needs.map(({ track, band }) => ({
      track,
      from: band * BAND_LEVELS,
      to: (band + 1) * BAND_LEVELS - 1,
    }));
    try {
      const request = { begin, end, width: TILE_PIXELS, levels };
      const answer = await this.backend.tiles(
        this.only === undefined ? request : { ...request, function: this.only },
        controller.signal,
      );
      // One that came too late to be stopped is of use to nobody.
      if (!controller.signal.aborted) this.keep(keys, needs, answer, begin, end, level);
      this.evict();
      this.lastError = "";
    } catch (error) {
      const { name, message } = error as Error;
      if (name !== "AbortError" && message !== this.lastError) this.onError((this.lastError = message));
    } finally {
      for (const key of keys) if (this.running.get(key) === controller) this.running.delete(key);
    }
    this.pump();
    this.onChange();
  }

  private keep(
    keys: readonly string[],
    needs: readonly Need[],
    answer: Map<number, Row[]>,
    begin: number,
    end: number,
    level: number,
  ): void {
    needs.forEach(({ track }, i) => {
      const rows = answer.get(track) ?? [];
      if (this.only !== undefined)
        for (const row of rows) for (const ns of row.duration) this.longest = Math.max(this.longest, ns);
      const bytes = bytesOf(rows);
      this.bytes += bytes - (this.kept.get(keys[i]!)?.bytes ?? 0);
      const { begin: origin, pixelNs } = this.backend.picture ?? { begin, pixelNs: 2 ** level };
      this.kept.set(keys[i]!, { tile: { rows, begin, end, origin, pixelNs }, bytes, used: this.clock });
    });
  }

  private evict(): void {
    if (this.bytes <= MOST_BYTES) return;
    const byAge = [...this.kept].sort((a, b) => a[1].used - b[1].used);
    for (const [key, kept] of byAge) {
      if (this.bytes <= MOST_BYTES * 0.7 || kept.used >= this.clock) break;
      this.bytes -= kept.bytes;
      this.kept.delete(key);
    }
  }

  /** Tiles that cover [begin, end) as well as what is there allows, each with the part it is to be drawn in. */
  cover(need: Need, begin: number, end: number, nsPerPixel: number): { tile: Tile; from: number; to: number }[] {
    const level = levelOf(nsPerPixel);
    const length = tileLength(level);
    const result: { tile: Tile; from: number; to: number }[] = [];
    const last = Math.floor(end / length);
    for (let number = Math.max(0, Math.floor(begin / length)); number <= last && result.length < 256; ++number)
      this.coverOne(need, level, number, result);
    return result;
  }

  private coverOne(
    need: Need,
    level: number,
    number: number,
    result: { tile: Tile; from: number; to: number }[],
  ): void {
    const { track, band } = need;
    const exact = this.kept.get(TileStore.key(track, band, level, number));
    const from = number * tileLength(level);
    const to = from + tileLength(level);
    if (exact) {
      result.push({ tile: exact.tile, from, to });
      return;
    }
    for (let up = 1; up <= COARSER; ++up) {
      const coarse = this.kept.get(TileStore.key(track, band, level + up, Math.floor(number / 2 ** up)));
      if (!coarse) continue;
      coarse.used = this.clock;
      result.push({ tile: coarse.tile, from, to });
      return;
    }
    for (let down = 1; down <= FINER && level - down >= 0; ++down) {
      const parts: { tile: Tile; from: number; to: number }[] = [];
      for (let n = 0; n < 2 ** down; ++n) {
        const fine = this.kept.get(TileStore.key(track, band, level - down, number * 2 ** down + n));
        if (fine) parts.push({ tile: fine.tile, from: fine.tile.begin, to: fine.tile.end });
      }
      if (parts.length > 0) {
        result.push(...parts);
        return;
      }
    }
  }
}
