// Search by name: functions with their counts. Enter highlights one and goes to its longest call.
import { useEffect, useRef, useState } from "preact/hooks";
import { highlight, stepCall } from "../model/actions";
import { forms, visible } from "../model/names";
import { store, useStore } from "../model/store";
import { count } from "../model/time";
import { Icon } from "./icon";
import { Swatch } from "./parts";

const MOST = 200;

interface Found {
  trace: number;
  func: number;
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

/** The list under the box. `at`: which of them a key would take. */
function FoundList(props: {
  text: string;
  found: Answer;
  at: number;
  onAt: (at: number) => void;
  onChoose: (item: Found) => void;
}) {
  const { text, found, at, onAt, onChoose } = props;
  const traces = useStore((s) => s.traces);
  useEffect(() => document.getElementById(`found-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);
  const { list } = found;
  return (
    <div class="found">
      <div class={`found-sum${found.error ? " warn" : ""}`} role="status" data-testid="found-sum">
        {found.error ||
          (list.length === 0 && found.text !== text ? "…" : undefined) ||
          (list.length === 0
            ? "No function’s name matches."
            : `${count(list.length)} ${list.length === 1 ? "function" : "functions"}, ${count(found.calls)} calls`)}
      </div>
      <div id="found" role="listbox" aria-label="Functions found">
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

  const choose = (item: Found | undefined) => {
    hurried.current = undefined;
    if (!item) return;
    setOpen(false);
    input.current?.blur();
    highlight(item.trace, item.func);
    store.set({ selected: null, selectedSpan: null });
    void stepCall("next", "duration").then(() => document.querySelector<HTMLElement>(".canvas-area")?.focus());
  };
  const keys = (event: KeyboardEvent) => {
    const last = Math.min(found.list.length, MOST) - 1;
    if (event.key === "ArrowDown") setAt(Math.min(last, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter") {
      // What is shown may still be what fewer letters found.
      const wanted = input.current?.value ?? text;
      if (found.text === wanted) choose(found.list[at]);
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
        aria-activedescendant={shown && found.list.length > 0 ? `found-${at}` : undefined}
        aria-label="Search functions by name or regular expression"
        placeholder="Search functions"
        value={text}
        onInput={(event) => {
          hurried.current = undefined;
          setText(event.currentTarget.value);
          setOpen(true);
        }}
        onFocus={() => setOpen(true)}
        onBlur={() => setTimeout(() => setOpen(false), 120)}
        onKeyDown={keys}
      />
      <kbd aria-hidden="true">/</kbd>
      {shown && <FoundList text={text} found={found} at={at} onAt={setAt} onChoose={choose} />}
    </div>
  );
}
