// SPDX-License-Identifier: MIT
// What the timeline knows between frames: tracks, tiles, looks; and what lies under a point.
import type { CallValues } from "../backend/types/calls";
import { kSummed, type Row } from "../backend/types/tiles";
import type { TraceInfo, TrackInfo } from "../backend/types/trace";
import type { Theme } from "../model/colour";
import type { LoadedTrace, State, Store } from "../model/store";
import { ValueStore } from "../model/values";
import { isUnread, isUntouched, moreRead } from "../model/reading";
import { layoutTracks, threadKey, visibleTracks, type Layout, type Track } from "../model/tracks";
import { CallColours } from "./call_colours";
import { kindOf, KINDS, withLate } from "./kinds";
import { NoteMarks } from "./note_marks";
import { isPlot, PlotStore } from "./plots";
import { DARK, LIGHT, Looks, type Inks } from "./theme";
import { BAND_LEVELS, TileStore, type Need } from "./tile_store";
import type { SliceHit } from "./track_renderer";

export const RULER = 28;
const LEVELS_REST = 90; // ms
const BELOW = 48; // room under the last track

/** A slice of calls. */
export interface Hit extends SliceHit {
  readonly depth: number;
  readonly thread: number;
  readonly index: number;
  readonly func: number;
  readonly duration: number;
  readonly flags: number;
}

/** A track where it is on screen. */
export interface Placed {
  readonly track: Track;
  readonly top: number;
  readonly pinned: boolean;
}

interface TraceScene {
  readonly loaded: LoadedTrace;
  readonly tiles: TileStore;
  readonly values: ValueStore;
  readonly notes: NoteMarks;
  readonly colours: CallColours;
  readonly plots: PlotStore;
  readonly looks: Record<Theme, Looks>;
  /** Of tasks, for CPU lanes. */
  readonly taskLooks: Record<Theme, Looks>;
  /** Of sampled functions. */
  readonly sampleLooks: Record<Theme, Looks>;
  /** Of threads, for locks. */
  readonly threadLooks: Record<Theme, Looks>;
  highlight?: { func: number; tiles: TileStore };
  /** Its lists, as far as they are there. */
  late: State["late"][number];
}

type AllLooks = Pick<TraceScene, "looks" | "taskLooks" | "sampleLooks" | "threadLooks">;

/** Made when a theme is first used. */
function inThemes(make: (inks: Inks) => Looks): Record<Theme, Looks> {
  let light: Looks | undefined;
  let dark: Looks | undefined;
  return {
    get light() {
      return (light ??= make(LIGHT));
    },
    get dark() {
      return (dark ??= make(DARK));
    },
  };
}

function looksFor({ functions, tasks, threads, sampled }: TraceInfo): AllLooks {
  const names = functions.map((f) => f.name);
  const ownColours = functions.map((f) => f.colour);
  // The last one stands for stretches of which nobody knows who ran.
  const taskNames = [...tasks.map((task) => `${task.name || "thread"} ${task.tid}`), "not known"];
  const threadNames = [...threads.map(({ name, tid }) => `${name || "thread"} ${tid}`), "not known"];
  const strange = threadNames.map((_, i) => i === threadNames.length - 1);
  const foreign = [...tasks.map((task) => !task.ofRun), true];
  const sampledNames = (sampled?.functions ?? []).map(({ name }) => name);
  return {
    looks: inThemes((inks) => new Looks(names, inks, undefined, ownColours)),
    taskLooks: inThemes((inks) => new Looks(taskNames, inks, foreign)),
    sampleLooks: inThemes((inks) => new Looks(sampledNames, inks)),
    threadLooks: inThemes((inks) => new Looks(threadNames, inks, strange)),
  };
}

const looksOf = ({ looks, taskLooks, sampleLooks, threadLooks }: TraceScene): AllLooks => ({
  ...{ looks, taskLooks, sampleLooks, threadLooks },
});

/** Whether two readings have the same functions, tasks and threads, so that these look the same. */
function sameNames({ info: a }: LoadedTrace, { info: b }: LoadedTrace): boolean {
  const same = <T>(some: readonly T[], others: readonly T[], of: (one: T) => unknown) =>
    some.length === others.length && others.every((one, i) => of(one) === of(some[i]!));
  return (
    same(a.functions, b.functions, (f) => f?.name) &&
    same(a.tasks, b.tasks, (t) => t.name) &&
    same(a.threads, b.threads, (t) => t.name) &&
    same(a.sampled?.functions ?? [], b.sampled?.functions ?? [], (f) => f.name)
  );
}

export class Scene {
  inks: Inks = LIGHT;
  width = 0;
  height = 0;
  scale = 1;
  private scenes: TraceScene[] = [];
  /** Threads in view that are being read. */
  private unread: readonly number[] = [];
  /** By trace and thread: how many levels calls have in the view that `levelsOf` names. */
  private levelsInView: (readonly number[] | undefined)[] = [];
  private levelsOf = "";
  private levelsTimer: ReturnType<typeof setTimeout> | undefined;
  private layoutFor: unknown[] = [];
  private layoutNow: Layout | undefined;

  constructor(
    private readonly store: Store,
    private readonly onChange: () => void,
  ) {}

  setTheme(theme: Theme): void {
    this.inks = theme === "dark" ? DARK : LIGHT;
  }

  private scenesOf(state: State): TraceScene[] {
    if (this.scenes.length !== state.traces.length || this.scenes.some((s, i) => s.loaded !== state.traces[i]))
      this.scenes = state.traces.map((loaded, i) => this.sceneOf(loaded, state.late[i], this.scenes[i]));
    this.scenes.forEach((scene, i) => (scene.late = state.late[i]));
    return this.scenes;
  }

  private sceneOf(loaded: LoadedTrace, late: State["late"][number], before: TraceScene | undefined): TraceScene {
    const { backend, info } = loaded;
    // A later reading of the same trace: what is drawn stays until there is more. Else more of the same reading: its
    // tiles stay.
    const renewed =
      before && before.loaded.backend !== backend && (loaded.same === "calls" || loaded.same === "threads");
    const more = before?.loaded.backend === backend;
    if (more) before.tiles.forget(moreRead(before.loaded.info, info));
    if (renewed) this.renewScene(before, loaded, late);
    const kept = renewed || more ? before : undefined;
    const { onChange } = this;
    const values = more || (renewed && loaded.same === "calls") ? before.values : new ValueStore(backend, onChange);
    return {
      ...{ loaded, late, values },
      notes: renewed ? before.notes : new NoteMarks(backend, info, onChange),
      plots: renewed ? before.plots : new PlotStore(backend, info, onChange),
      colours: renewed ? before.colours : new CallColours(backend, info, onChange),
      tiles: kept?.tiles ?? new TileStore(backend, onChange, (notice) => this.store.set({ notice })),
      ...(renewed && before.highlight ? { highlight: before.highlight } : {}),
      ...(renewed && sameNames(before.loaded, loaded) ? looksOf(before) : looksFor(info)),
    };
  }

  private renewScene(scene: TraceScene, { backend, info, same }: LoadedTrace, late: State["late"][number]): void {
    const now = new Map(withLate(info, late).tracks.map(({ id, kind, owner }) => [`${kind}.${owner}`, id]));
    const ids = new Map<number, number>();
    for (const { id, kind, owner } of withLate(scene.loaded.info, scene.late).tracks) {
      const found = now.get(`${kind}.${owner}`);
      if (found !== undefined) ids.set(id, found);
    }
    scene.tiles.renew(backend, ids, same === "calls");
    scene.highlight?.tiles.renew(backend, ids, same === "calls");
    if (same === "calls") scene.values.renew(backend);
    scene.notes.renew(backend, info);
    scene.plots.renew(backend, info);
    scene.colours.renew(backend, info);
  }

  looks(trace: number): Looks | undefined {
    return this.scenesOf(this.store.state)[trace]?.looks[this.inks.theme];
  }

  taskLooks(trace: number): Looks | undefined {
    return this.scenesOf(this.store.state)[trace]?.taskLooks[this.inks.theme];
  }

  sampleLooks(trace: number): Looks | undefined {
    return this.scenesOf(this.store.state)[trace]?.sampleLooks[this.inks.theme];
  }

  threadLooks(trace: number): Looks | undefined {
    return this.scenesOf(this.store.state)[trace]?.threadLooks[this.inks.theme];
  }

  tiles(trace: number): TileStore | undefined {
    return this.scenesOf(this.store.state)[trace]?.tiles;
  }

  noteMarks(trace: number): NoteMarks | undefined {
    return this.scenesOf(this.store.state)[trace]?.notes;
  }

  colours(trace: number): CallColours | undefined {
    return this.scenesOf(this.store.state)[trace]?.colours;
  }

  plots(trace: number): PlotStore | undefined {
    return this.scenesOf(this.store.state)[trace]?.plots;
  }

  /** What is known by now of what a slice's call was given and returned. It is asked for, if nothing is. */
  valuesOf(trace: number, thread: number, row: Row, at: number): CallValues | undefined {
    const scene = this.scenesOf(this.store.state)[trace];
    if (!scene || row.flags[at]! & kSummed) return undefined;
    const { valued, reading, aggregated } = scene.loaded.info;
    if (!valued.has(row.func[at]!) || reading || aggregated) return undefined;
    return scene.values.of({ thread, index: row.index[at]! });
  }

  /** Tiles of the highlighted function alone, when one of this trace is highlighted. */
  highlightTiles(trace: number): TileStore | undefined {
    const { highlight, traces } = this.store.state;
    const scene = this.scenesOf(this.store.state)[trace];
    if (!scene || !highlight) return undefined;
    let func = highlight.function;
    if (highlight.trace !== trace) {
      // The same function in the other trace, by name.
      const name = traces[highlight.trace]?.info.functions[func]?.name;
      if (name === undefined) return undefined;
      func = scene.loaded.info.functions.map((f) => f.name).indexOf(name);
      if (func < 0) return undefined;
    }
    if (scene.highlight?.func !== func) {
      const tiles = new TileStore(scene.loaded.backend, this.onChange, (notice) => this.store.set({ notice }), func);
      scene.highlight = { func, tiles };
    }
    return scene.highlight.tiles;
  }

  offset(trace: number): number {
    return trace === 1 ? this.store.state.offset : 0;
  }

  /** Tracks, laid out anew only when what they depend on has changed. */
  layout(): Layout {
    const { traces, choice, view, offset, ranks, waking, late } = this.store.state;
    const idle = choice.hideIdle ? [view.begin, view.span, offset] : [];
    const waits = choice.order === "waits" ? [waking] : [];
    const key = [traces, choice, this.levelsInView, ranks, late, ...waits, ...idle];
    if (!this.layoutNow || key.length !== this.layoutFor.length || key.some((k, i) => k !== this.layoutFor[i])) {
      this.layoutFor = key;
      const infos = traces.map(({ info }, t) => withLate(info, late[t]));
      this.layoutNow = layoutTracks(infos, choice, { begin: view.begin, end: view.begin + view.span }, KINDS, {
        levels: this.levelsInView,
        ranks,
        together: waking ? { trace: waking.trace, threads: [waking.thread, waking.by.thread] } : undefined,
      });
    }
    return this.layoutNow;
  }

  get mostScroll(): number {
    const { pinnedHeight, scrolledHeight } = this.layout();
    const room = this.height - RULER - Math.min(pinnedHeight, this.pinnedRoom);
    return Math.max(0, scrolledHeight + BELOW - room);
  }

  /** Pinned tracks take at most half of the height. */
  get pinnedRoom(): number {
    return Math.max(0, (this.height - RULER) / 2);
  }

  get pinnedShown(): number {
    return Math.min(this.layout().pinnedHeight, this.pinnedRoom);
  }

  scrollNow(): number {
    return Math.min(this.store.state.scroll, this.mostScroll);
  }

  placed(): Placed[] {
    const layout = this.layout();
    const pinnedShown = this.pinnedShown;
    const scroll = this.scrollNow();
    const top = RULER + pinnedShown;
    return [
      ...visibleTracks(layout.pinned, 0, pinnedShown).map((track) => ({ track, top: RULER + track.y, pinned: true })),
      ...visibleTracks(layout.scrolled, scroll, scroll + this.height - top).map((track) => ({
        track,
        top: top + track.y - scroll,
        pinned: false,
      })),
    ];
  }

  /** The levels of a placed thread that are on screen. */
  levels({ track, top, pinned }: Placed): { from: number; to: number } {
    const low = pinned ? RULER : RULER + this.pinnedShown;
    const high = pinned ? RULER + this.pinnedShown : this.height;
    const start = top + 2 + track.lead;
    const from = Math.max(0, Math.floor((low - start) / track.rowHeight));
    const to = Math.min(track.rows, Math.ceil((high - start) / track.rowHeight));
    return { from, to };
  }

  /** What a placed track needs of its own. */
  private needsOf(place: Placed): Need[] {
    const { info } = place.track;
    if (!info || kindOf(info.kind)?.tiles === false) return [];
    const { from, to } = this.levels(place);
    const needs: Need[] = [];
    for (let band = Math.floor(from / BAND_LEVELS); band * BAND_LEVELS < to; ++band)
      needs.push({ track: info.id, band });
    return needs;
  }

  /** Asks for all tiles that the picture needs. */
  want(): void {
    const { view, followed, traces } = this.store.state;
    // What is asked about views that rest goes with those that were the newest.
    const resting = followed ?? view;
    const pixel = view.span / Math.max(1, this.width * this.scale);
    const placed = this.placed();
    const unread: number[] = [];
    this.askLevels();
    traces.forEach(({ info }, trace) => {
      const said: number[] = [];
      const coloured: number[] = [];
      const plots: number[] = [];
      const calls: Need[] = [];
      const others: Need[] = [];
      for (const place of placed) {
        if (place.track.trace !== trace) continue;
        if (place.track.info && isPlot(place.track.info.kind)) plots.push(place.track.info.owner);
        if (place.track.notes > 0) said.push(place.track.thread);
        for (const strip of place.track.strips) others.push({ track: strip.info.id, band: 0 });
        const thread = info.threads[place.track.thread];
        if ((thread?.notes?.color ?? 0) > 0) coloured.push(place.track.thread);
        if (info.reading && thread) {
          if (isUnread(thread, view.begin, view.begin + view.span)) unread.push(place.track.thread);
          if (isUntouched(thread)) continue;
        }
        (thread ? calls : others).push(...this.needsOf(place));
      }
      const begin = view.begin - this.offset(trace);
      this.tiles(trace)!.want([...calls, ...others], begin, begin + view.span, pixel);
      this.highlightTiles(trace)?.want(calls, begin, begin + view.span, pixel);
      const from = resting.begin - this.offset(trace);
      const to = from + resting.span;
      if (!info.reading) {
        this.noteMarks(trace)!.want(from, to, resting.span / this.width, said);
        this.colours(trace)!.want(from, to, pixel, coloured);
      }
      this.plots(trace)!.want(from, to, resting.span / this.width, plots);
    });
    if (unread.length > 0 && unread.join() !== this.unread.join()) traces[0]?.backend.readFirst?.(unread);
    this.unread = unread;
  }

  /** When the view rests: heights follow the levels that calls have in it. What is looked at stays where it is. */
  private askLevels(): void {
    const { traces, offset, generation, followed } = this.store.state;
    const view = followed ?? this.store.state.view;
    const key = `${view.begin}+${view.span}/${offset}/${generation}/${traces.map((t) => `${t.info.name}${t.info.reading}`).join()}`;
    if (key === this.levelsOf) return;
    this.levelsOf = key;
    clearTimeout(this.levelsTimer);
    if (traces.some(({ info }) => info.reading || info.aggregated)) {
      this.levelsTimer = undefined;
      return;
    }
    const ask = async () => {
      const levels = await Promise.all(
        traces.map(async ({ backend }, trace) => {
          const begin = view.begin - this.offset(trace);
          const range = { begin: Math.max(0, begin), end: Math.max(1, begin + view.span) };
          return (await backend.threads(range).catch(() => undefined))?.depths;
        }),
      );
      if (key !== this.levelsOf) return;
      this.levelsTimer = undefined;
      if (JSON.stringify(levels) !== JSON.stringify(this.levelsInView)) this.takeLevels(levels);
      this.onChange();
    };
    this.levelsTimer = setTimeout(() => void ask(), LEVELS_REST);
  }

  private takeLevels(levels: (readonly number[] | undefined)[]): void {
    const scroll = this.scrollNow();
    const { selected } = this.store.state;
    const own = selected && this.layout().scrolled.find((t) => t.key === threadKey(selected.trace, selected.thread));
    const seen = (track: Track | undefined | null) =>
      track && track.y + track.height > scroll && track.y < scroll + this.height;
    const anchor = seen(own) ? own : this.layout().scrolled.find((track) => track.y + track.height > scroll);
    this.levelsInView = levels;
    const now = anchor && this.layout().scrolled.find((track) => track.key === anchor.key);
    if (anchor && now && now.y !== anchor.y) this.store.set({ scroll: Math.max(0, scroll + now.y - anchor.y) });
  }

  /** Whether heights are those of the view, calls are named with their values, and messages are marked. */
  get settled(): boolean {
    const all = this.scenes.every(
      ({ values, notes, colours, plots }) => values.complete && notes.complete && colours.complete && plots.complete,
    );
    return this.levelsTimer === undefined && all;
  }

  /** Whether all that is in view is there. */
  get complete(): boolean {
    return this.unread.length === 0 && this.scenes.every((scene) => scene.tiles.complete);
  }

  /** The slice of a lane at a moment (of the trace), as drawn. */
  sliceAt(
    trace: number,
    track: number,
    depth: number,
    ns: number,
  ): { row: Row; at: number; pixelNs: number } | undefined {
    const { view } = this.store.state;
    const pixel = view.span / Math.max(1, this.width * this.scale);
    const need = { track, band: Math.floor(depth / BAND_LEVELS) };
    let best: { row: Row; at: number; pixelNs: number } | undefined;
    let nearest = pixel * 2;
    for (const { tile, from, to } of this.tiles(trace)?.cover(need, ns - nearest, ns + nearest, pixel) ?? []) {
      if (to <= ns - nearest || from > ns + nearest || tile.renumbered) continue;
      const row = tile.rows.find((r) => r.depth === depth);
      if (!row) continue;
      let low = 0;
      let high = row.begin.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (row.begin[middle]! <= ns) low = middle + 1;
        else high = middle;
      }
      for (let at = Math.max(0, low - 2); at < row.begin.length && at <= low + 1; ++at) {
        const begin = row.begin[at]!;
        const end = begin + Math.max(row.duration[at]!, row.flags[at]! & kSummed ? tile.pixelNs : 0);
        const away = ns < begin ? begin - ns : ns > end ? ns - end : 0;
        if (away < nearest || (away === 0 && nearest === 0)) {
          nearest = away;
          best = { row, at, pixelNs: tile.pixelNs };
        }
      }
    }
    return best;
  }

  trackAt(y: number): Placed | undefined {
    if (y < RULER) return undefined;
    return this.placed().find(
      (p) => y >= p.top && y < p.top + p.track.height && (p.pinned || y >= RULER + this.pinnedShown),
    );
  }

  /** The call under a point. */
  hit(x: number, y: number): Hit | undefined {
    const place = this.trackAt(y);
    if (!place?.track.info || place.track.kind !== "thread") return undefined;
    const found = this.sliceIn(place, place.track.info, x, y);
    return found && this.hitOf(place.track, found.row.depth, found.row, found.at, found.pixelNs);
  }

  /** The slice under a point, whatever it is of. */
  sliceHit(x: number, y: number): SliceHit | undefined {
    const place = this.trackAt(y);
    if (!place) return undefined;
    const { info, strips } = place.track;
    for (const one of [...(info ? [info] : []), ...strips.map((strip) => strip.info)]) {
      const found = this.sliceIn(place, one, x, y);
      if (found) return found;
    }
    return undefined;
  }

  /** A slice of one track: of its lanes there, the first that has one at the very moment, else one beside it. */
  private sliceIn(place: Placed, info: TrackInfo, x: number, y: number): SliceHit | undefined {
    const { track } = place;
    const { view } = this.store.state;
    const offset = this.offset(track.trace);
    const ns = view.begin + (x / this.width) * view.span - offset;
    let best: SliceHit | undefined;
    for (const lane of kindOf(info.kind)?.lanesAt(place, y) ?? []) {
      const found = this.sliceAt(track.trace, info.id, lane, ns);
      if (!found) continue;
      const { row, at, pixelNs } = found;
      const begin = row.begin[at]!;
      const within = begin <= ns && ns < begin + row.duration[at]!;
      if (!best || within) best = { track, info, trace: track.trace, row, at, begin: begin + offset, pixelNs };
      if (within) break;
    }
    return best;
  }

  hitOf(track: Track, depth: number, row: Row, at: number, pixelNs: number): Hit {
    return {
      ...{ track, info: track.info!, trace: track.trace, row, at, depth, pixelNs },
      thread: track.thread,
      index: row.index[at]!,
      func: row.func[at]!,
      begin: row.begin[at]! + this.offset(track.trace),
      duration: row.duration[at]!,
      flags: row.flags[at]!,
    };
  }
}
