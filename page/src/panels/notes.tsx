// SPDX-License-Identifier: MIT
// Notes: what the program said of itself, in order of time, as far as it was said in view. A click selects the call it
// was said in. (What is missing in a trace is in missing.tsx.)
import { useEffect, useRef } from "preact/hooks";
import { NOTE_GROUPS } from "../backend/protocol";
import type { NoteGroup, NoteLine } from "../backend/types/notes";
import type { TraceInfo } from "../backend/types/trace";
import { selectNote } from "../model/actions";
import { visible } from "../model/names";
import { store, useStore } from "../model/store";
import { count, exact, moment, step } from "../model/time";
import { useAnswer } from "./answers";
import { Icon } from "./icon";
import { Empty, Failed, formFor, functionName, Swatch, Waiting } from "./parts";
import { ScopeChoice, TraceChoice, useScope } from "./scope";

const LISTED = 500;
const REST_MS = 250; // of the view, before it is asked about
const TYPING_MS = 150;

const LABELS: Readonly<Record<NoteGroup, string>> = {
  message: "Messages, logs",
  value: "Values",
  frame: "Frames",
  request: "Requests",
  text: "Texts",
  record: "Memory, locks",
  picture: "Pictures",
  other: "Others",
  call: "Arguments, results",
  color: "Colours",
};

/** How many notes a trace has of each group. */
export function notesIn(info: Pick<TraceInfo, "threads">): ReadonlyMap<NoteGroup, number> {
  const counts = new Map<NoteGroup, number>();
  for (const group of NOTE_GROUPS) {
    const sum = info.threads.reduce((n, thread) => n + (thread.notes?.[group] ?? 0), 0);
    if (sum > 0) counts.set(group, sum);
  }
  return counts;
}

/** Enough digits to tell the notes of a list apart. */
function fineness(notes: readonly NoteLine[]): number {
  const span = Math.abs((notes.at(-1)?.time ?? 0) - (notes[0]?.time ?? 0));
  return step(Math.max(1, span / Math.max(1, notes.length) / 500));
}

/** A message's, if the program gave it one. */
const ownColour = ({ colour }: NoteLine) =>
  colour === undefined ? {} : { background: `#${colour.toString(16).padStart(6, "0")}` };

const isSame = (a: NoteLine, b: NoteLine) => a.time === b.time && a.thread === b.thread && a.line === b.line;

function Row({ trace, note, fine, first }: { trace: number; note: NoteLine; fine: number; first: boolean }) {
  const chosen = useStore((s) => s.note);
  const on = chosen?.trace === trace && isSame(chosen, note);
  const row = useRef<HTMLTableRowElement>(null);
  useEffect(() => {
    if (on) row.current?.scrollIntoView({ block: "nearest" });
  }, [on]);
  const { info } = store.state.traces[trace]!;
  const thread = info.threads[note.thread];
  const text = visible(note.line);
  const move = (event: KeyboardEvent, next: Element | null | undefined) => {
    (next as HTMLElement | null)?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <tr
      ref={row}
      class={on ? "on" : ""}
      tabIndex={first || on ? 0 : -1}
      aria-selected={on}
      data-testid="note"
      data-time={note.time}
      data-group={note.group}
      title={`${text}\nClick or Enter: select the call that it was said in`}
      onClick={() => selectNote(trace, note)}
      onKeyDown={(event) => {
        if (event.key === "ArrowDown") return move(event, row.current?.nextElementSibling);
        if (event.key === "ArrowUp") return move(event, row.current?.previousElementSibling);
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        event.stopPropagation();
        selectNote(trace, note);
      }}
    >
      <td class="num" title={exact(note.time)}>
        {moment(note.time, fine, info.extent)}
      </td>
      <td class="thread">
        <bdi>{visible(thread?.name || `thread ${thread?.tid}`)}</bdi> <span class="quiet">{thread?.tid}</span>
      </td>
      <td class="said">
        <i class={`note-sign ${note.group}`} title={note.kind} style={ownColour(note)} />
        <bdi>{text === "" ? <span class="quiet">(empty)</span> : text}</bdi>
      </td>
      <td class="in">
        {note.function !== undefined && note.function >= 0 && (
          <span title={functionName(trace, note.function)}>
            <Swatch trace={trace} func={note.function} /> <bdi>{formFor(trace, note.function, 34)}</bdi>
          </span>
        )}
      </td>
    </tr>
  );
}

function Rows({ trace, notes }: { trace: number; notes: readonly NoteLine[] }) {
  const chosen = useStore((s) => s.note);
  // One that was chosen in the timeline may lie behind the end of the list.
  const missing = chosen?.trace === trace && !notes.some((note) => isSame(note, chosen)) ? [chosen] : [];
  const all = [...missing, ...notes];
  const fine = fineness(notes);
  return (
    <div class="note-list">
      <table>
        <thead>
          <tr>
            <th class="num" title="After the trace's first event">
              Time
            </th>
            <th>Thread</th>
            <th>Note</th>
            <th>In</th>
          </tr>
        </thead>
        <tbody>
          {all.map((note, i) => (
            <Row key={`${note.thread}.${note.time}.${i}`} {...{ trace, note, fine }} first={i === 0} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** `calls`: there are values of calls, which nobody counted. */
function Kinds({ counts, calls }: { counts: ReadonlyMap<NoteGroup, number>; calls: boolean }) {
  const group = useStore((s) => s.noteGroup);
  return (
    <select
      aria-label="Kind of notes"
      value={group}
      onChange={(event) => store.set({ noteGroup: event.currentTarget.value as NoteGroup | "all" })}
    >
      <option value="all">All kinds</option>
      {NOTE_GROUPS.filter((one) => counts.has(one) || one === group || (one === "call" && calls)).map((one) => (
        <option value={one}>
          {LABELS[one]}
          {one !== "call" && ` (${count(counts.get(one) ?? 0)})`}
        </option>
      ))}
    </select>
  );
}

function Search() {
  const filter = useStore((s) => s.noteFilter);
  return (
    <label class="filter">
      <Icon name="search" />
      <input
        type="search"
        aria-label="Search in notes"
        placeholder="Search in notes"
        spellcheck={false}
        value={filter}
        onInput={(event) => store.set({ noteFilter: event.currentTarget.value })}
      />
    </label>
  );
}

/** Why there is no list at all; undefined: there may be one. */
function Without({ info, all }: { info: TraceInfo; all: number }) {
  if (info.aggregated)
    return <Empty>This file holds one picture and the sums, and no notes. karst view shows them.</Empty>;
  if (all > 0) return null;
  return (
    <Empty>
      This trace has no notes: what a program says of itself with <code>KARST_MESSAGE("cache is full")</code>,{" "}
      <code>karst_log("%d left", n)</code>, <code>KARST_VALUE("queue", n)</code>, <code>KARST_FRAME("main")</code>,{" "}
      <code>karst_request(ID)</code> or <code>karst_text(url)</code> of karst/karst.h.
    </Empty>
  );
}

/** How many there are, and how many of them are listed. */
function sumWords(
  { count: n, notes, which }: { count: number; notes: readonly NoteLine[]; which: string },
  label: string,
) {
  const all = `${count(n)} ${n === 1 ? "note" : "notes"} ${label === "everything" ? "in all" : label}`;
  return n > notes.length ? `${all}, the ${which} ${count(notes.length)} of them` : all;
}

export function NotePanel() {
  const { trace, scope, label, key } = useScope("noteScope");
  const kind = useStore((s) => s.noteScope);
  const filter = useStore((s) => s.noteFilter);
  const group = useStore((s) => s.noteGroup);
  const newest = useStore((s) => s.newestNotes);
  const loaded = useStore((s) => s.traces[trace]);
  const counts = loaded ? notesIn(loaded.info) : new Map<NoteGroup, number>();
  const all = [...counts.values()].reduce((sum, n) => sum + n, 0);
  const calls = loaded !== undefined && loaded.info.valued.size > 0;
  const asks = loaded !== undefined && (all > 0 || calls) && !loaded.info.aggregated;
  const answer = useAnswer(
    asks ? `${key}|${group}|${newest}|${filter}` : null,
    async (signal) => {
      // Whoever looks for a text means what calls were given and returned, too; a list of all that would be endless.
      const groups = group !== "all" ? [group] : filter !== "" ? NOTE_GROUPS : undefined;
      const query = { text: filter, newest, limit: LISTED, ...(groups ? { groups } : {}) };
      return { ...(await loaded!.backend.notes(scope, query, signal)), which: newest ? "last" : "first" };
    },
    kind === "view" ? REST_MS : TYPING_MS,
  );
  const { value, error } = answer;
  return (
    <div class="note-panel">
      <div class="pane-tools">
        <TraceChoice trace={trace} fixed={kind === "thread" || kind === "call"} />
        <ScopeChoice of="noteScope" />
        <Search />
        <Kinds counts={counts} calls={calls} />
        <button
          title={newest ? "The last note is on top" : "The first note is on top"}
          onClick={() => store.set({ newestNotes: !newest })}
        >
          <Icon name={newest ? "down" : "up"} /> {newest ? "Newest first" : "Oldest first"}
        </button>
        <span class="grow" />
        <span class="quiet" role="status" data-testid="note-sum">
          {asks && value && sumWords(value, label)}
        </span>
      </div>
      {!asks ? (
        loaded && <Without info={loaded.info} all={all} />
      ) : error ? (
        <Failed message={error} again={answer.again} />
      ) : !value ? (
        <Waiting answer={answer} />
      ) : value.count === 0 ? (
        <Empty>
          {all === 0
            ? "What calls were given and returned is a kind of its own. Nothing"
            : `None of the trace's ${count(all)} ${all === 1 ? "note" : "notes"}`}{" "}
          {filter !== "" || group !== "all" ? "is like that" : "was said"} {label === "everything" ? "" : label}.{" "}
          {kind !== "all" && <button onClick={() => store.set({ noteScope: "all" })}>Look everywhere</button>}
          {(filter !== "" || group !== "all") && (
            <button onClick={() => store.set({ noteFilter: "", noteGroup: "all" })}>All that were said</button>
          )}
        </Empty>
      ) : (
        <Rows trace={trace} notes={value.notes} />
      )}
    </div>
  );
}
