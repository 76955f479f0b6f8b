// SPDX-License-Identifier: MIT
// Search: functions by name, with their counts, and below them what the program said, and what calls were given and
// returned. Enter highlights a function and goes to its longest call, or selects a note.
import { useEffect, useRef, useState } from "preact/hooks";
import { NOTE_GROUPS } from "../backend/protocol";
import type { NoteLine } from "../backend/types/notes";
import { highlight, selectNote, stepCall } from "../model/actions";
import { forms, visible } from "../model/names";
import { store, useStore } from "../model/store";
import { count, duration } from "../model/time";
import { useAnswer } from "./answers";
import { Icon } from "./icon";
import { Swatch } from "./parts";

const MOST = 200;
const MOST_NOTES = 8; // the panel has all
const RESTS_MS = 200; // of the keys: notes have no index, each is looked at

interface Found {
  trace: number;
  func: number;
}

/** A note that was found. */
interface Said {
  trace: number;
  note: NoteLine;
}

/** What was found, and for which text. */
interface Answer {
  text: string;
  list: Found[];
  calls: number;
  error: string;
}
const NOTHING: Answer = { text: "", list: [], calls: 0, error: "" };

/** What the traces have for a text; asked for when no letter came for a moment. `then`: with each answer. */
function useFound(text: string, then: (answer: Answer) => void): Answer {
  const [found, setFound] = useState<Answer>(NOTHING);
  const traces = useStore((s) => s.traces);
  useEffect(() => {
    if (text === "") {
      setFound(NOTHING);
      return;
    }
    let dropped = false;
    const timer = setTimeout(() => {
      // Small letters match both, like in the table.
      const pattern = /[A-Z]/.test(text) || text.startsWith("(?") ? text : `(?i)${text}`;
      const local = traces[0]?.backend.kind === "embedded" ? text : pattern;
      Promise.all(traces.map((t) => t.backend.search(local))).then(
        (answers) => {
          if (dropped) return;
          const list = answers.flatMap((a, trace) => a.functions.map((func) => ({ trace, func })));
          const answer = { text, list, calls: answers.reduce((n, a) => n + a.calls, 0), error: "" };
          setFound(answer);
          then(answer);
        },
        (error: Error) => !dropped && setFound({ ...NOTHING, text, error: error.message }),
      );
    }, 80);
    return () => {
      dropped = true;
      clearTimeout(timer);
    };
  }, [text, traces]);
  return found;
}

interface Notes {
  text: string;
  list: Said[];
  count: number;
}

/** What the program said that has the text, the first of it. Functions are not kept waiting for it. */
function useSaid(text: string): { notes: Notes | undefined; waiting: boolean; error: string } {
  const traces = useStore((s) => s.traces);
  const asked = traces.flatMap(({ info, backend }, trace) =>
    !info.aggregated && (info.valued.size > 0 || info.threads.some(({ notes }) => notes !== null))
      ? [{ trace, backend }]
      : [],
  );
  const { value, waiting, error } = useAnswer(
    text === "" || asked.length === 0 ? null : `${text}|${asked.length}`,
    async (signal): Promise<Notes> => {
      const query = { text, newest: false, limit: MOST_NOTES, groups: NOTE_GROUPS };
      const answers = await Promise.all(asked.map(({ backend }) => backend.notes({}, query, signal)));
      const list = answers.flatMap(({ notes }, i) => notes.map((note) => ({ trace: asked[i]!.trace, note })));
      return { text, list, count: answers.reduce((n, a) => n + a.count, 0) };
    },
    RESTS_MS,
  );
  return { notes: value?.text === text ? value : undefined, waiting, error: error ?? "" };
}

/** All of them in the panel, which searches in the same way. */
const listAll = (text: string) =>
  store.set({ noteFilter: text, noteScope: "all", noteGroup: "all", tab: "notes", dockOpen: true });

const notesWord = (n: number) => (n === 1 ? "1 note" : `${count(n)} notes`);

/** Those below the functions; the first has the place `from` in the list. */
function SaidList(props: {
  notes: Notes;
  from: number;
  at: number;
  onAt: (at: number) => void;
  onChoose: (item: Said) => void;
}) {
  const { notes, from, at, onAt, onChoose } = props;
  const traces = useStore((s) => s.traces);
  if (notes.count === 0) return null;
  return (
    <>
      <div class="quiet more" role="presentation">
        {notesWord(notes.count)}
        {notes.count > notes.list.length && `, the first ${notes.list.length}`}
      </div>
      {notes.list.map(({ trace, note }, i) => (
        <div
          id={`found-${from + i}`}
          role="option"
          aria-selected={from + i === at}
          class={from + i === at ? "on" : ""}
          data-testid="found-note"
          title={visible(note.line)}
          onMouseDown={(event) => {
            event.preventDefault();
            onChoose({ trace, note });
          }}
          onMouseMove={() => from + i !== at && onAt(from + i)}
        >
          <i class={`note-sign ${note.group}`} />
          <span class="name">
            <bdi>{visible(note.line)}</bdi>
          </span>
          {traces.length > 1 && <span class="quiet">{trace === 0 ? "A" : "B"}</span>}
          <span class="num quiet">{duration(note.time)}</span>
        </div>
      ))}
    </>
  );
}

/** The list under the box. `at`: which of them a key would take. */
function FoundList(props: {
  text: string;
  found: Answer;
  said: ReturnType<typeof useSaid>;
  at: number;
  onAt: (at: number) => void;
  onChoose: (item: Found | Said) => void;
}) {
  const { text, found, said, at, onAt, onChoose } = props;
  const traces = useStore((s) => s.traces);
  useEffect(() => document.getElementById(`found-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);
  const { list } = found;
  const { notes } = said;
  return (
    <div class="found">
      <div class={`found-sum${found.error ? " warn" : ""}`} role="status" data-testid="found-sum">
        {found.error ||
          (list.length === 0 && found.text !== text ? "…" : undefined) ||
          (list.length === 0
            ? "No function’s name matches."
            : `${count(list.length)} ${list.length === 1 ? "function" : "functions"}, ${count(found.calls)} calls`)}
        {notes && notes.count > 0 && (
          <>
            <span data-testid="found-notes"> · {notesWord(notes.count)}</span>
            <button
              class="link"
              tabIndex={-1}
              data-testid="found-all-notes"
              onMouseDown={(event) => {
                event.preventDefault();
                listAll(notes.text);
              }}
            >
              list all
            </button>
          </>
        )}
        {said.error !== "" && <span class="warn"> {said.error}</span>}
      </div>
      <div id="found" role="listbox" aria-label="Functions and notes found">
        {list.slice(0, MOST).map((item, i) => {
          const f = traces[item.trace]?.info.functions[item.func];
          return (
            <div
              id={`found-${i}`}
              role="option"
              aria-selected={i === at}
              class={i === at ? "on" : ""}
              title={visible(f?.name ?? "?")}
              onMouseDown={(event) => {
                event.preventDefault();
                onChoose(item);
              }}
              onMouseMove={() => i !== at && onAt(i)}
            >
              <Swatch trace={item.trace} func={item.func} />
              <span class="name">
                <bdi>{visible(forms(f?.name ?? "?")[0]!)}</bdi>
              </span>
              {traces.length > 1 && <span class="quiet">{item.trace === 0 ? "A" : "B"}</span>}
              <span class="num quiet">{count(f?.calls ?? 0)}</span>
            </div>
          );
        })}
        {list.length > MOST && <div class="quiet more">and {count(list.length - MOST)} more: type on to narrow</div>}
        {notes && <SaidList notes={notes} from={Math.min(list.length, MOST)} at={at} onAt={onAt} onChoose={onChoose} />}
      </div>
    </div>
  );
}

export function SearchBox() {
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  /** The text for which Enter was pressed before it was answered. */
  const hurried = useRef<string | undefined>();
  const found = useFound(text, (answer) => {
    setAt(0);
    if (hurried.current === answer.text) choose(answer.list[0]);
  });

  const said = useSaid(open ? text : "");
  const items: (Found | Said)[] = [...found.list.slice(0, MOST), ...(said.notes?.list ?? [])];

  const choose = (item: Found | Said | undefined) => {
    if (!item) return;
    hurried.current = undefined;
    setOpen(false);
    input.current?.blur();
    if ("note" in item) {
      selectNote(item.trace, item.note);
      document.querySelector<HTMLElement>(".canvas-area")?.focus();
      return;
    }
    highlight(item.trace, item.func);
    store.set({ selected: null, selectedSpan: null });
    void stepCall("next", "duration").then(() => document.querySelector<HTMLElement>(".canvas-area")?.focus());
  };
  // No function has such a name: Enter meant the first note.
  useEffect(() => {
    if (said.notes && hurried.current === said.notes.text && found.text === said.notes.text && found.list.length === 0)
      choose(said.notes.list[0]);
  }, [said.notes]);
  const keys = (event: KeyboardEvent) => {
    const last = items.length - 1;
    if (event.key === "ArrowDown") setAt(Math.min(last, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter") {
      // What is shown may still be what fewer letters found.
      const wanted = input.current?.value ?? text;
      if (found.text === wanted && items.length > 0) choose(items[at]);
      else hurried.current = wanted;
    } else if (event.key === "Escape") {
      setOpen(false);
      input.current?.blur();
      document.querySelector<HTMLElement>(".canvas-area")?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = open && text !== "";
  return (
    <div class="search">
      <Icon name="search" />
      <input
        ref={input}
        id="search"
        type="search"
        role="combobox"
        aria-expanded={shown}
        aria-controls="found"
        aria-activedescendant={shown && items.length > 0 ? `found-${at}` : undefined}
        aria-label="Search functions by name or regular expression, and notes by what they say"
        placeholder="Search functions and notes"
        value={text}
        onInput={(event) => {
          hurried.current = undefined;
          setText(event.currentTarget.value);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setTimeout(() => document.activeElement !== input.current && setOpen(false), 120)}
        onKeyDown={keys}
      />
      <kbd aria-hidden="true">/</kbd>
      {shown && <FoundList text={text} found={found} said={said} at={at} onAt={setAt} onChoose={choose} />}
    </div>
  );
}
