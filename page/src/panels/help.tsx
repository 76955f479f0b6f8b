// SPDX-License-Identifier: MIT
// All keys and signs, over the page.
import { useEffect, useRef } from "preact/hooks";
import { store } from "../model/store";
import { TABS } from "../model/tabs";
import { Icon } from "./icon";

const KEYS: readonly { title: string; keys: readonly (readonly [string, string])[] }[] = [
  {
    title: "Move",
    keys: [
      ["W S", "zoom in, out"],
      ["A D  ← →", "move left, right"],
      ["↑ ↓", "scroll the tracks"],
      ["f", "fit the selected call or the range"],
      ["0", "see everything"],
      ["wheel", "zoom at the pointer; over the names: scroll"],
      ["drag", "move; on the ruler or with Shift: measure"],
      ["Shift wheel", "scroll the tracks"],
      ["double click", "fit a call"],
    ],
  },
  {
    title: "Calls",
    keys: [
      ["Enter", "select the longest call in sight; the selected call: a third of the width"],
      ["Shift ↑ ↓", "caller; longest callee"],
      ["Shift ← →", "neighbours on the same level"],
      ["PgUp PgDn", "the track above, below"],
      ["n p", "next, previous call of the function"],
      ["N P", "next shorter, next longer call"],
      ["h", "highlight the function’s calls"],
      ["e", "explain why the selected call took so long"],
      ["c", "keep a call; compare the next with it"],
      ["right click  Menu", "what one can do with a call"],
      ["Ctrl C", "copy the selected call as a line of text"],
    ],
  },
  {
    title: "More",
    keys: [
      ["/", "search functions and notes"],
      ["m", "measure by dragging anywhere"],
      ["r", "measure the selected call, else what is in view"],
      [`1 – ${TABS.length}`, TABS.map(({ label }) => label.toLowerCase()).join(", ")],
      ["b", "show or hide the lower half"],
      ["k K", "fold or unfold the selected track; all threads"],
      ["Back", "the browser’s: the selection or panel before"],
      ["i", "pin the selected track"],
      ["l", "follow a recording that goes on; stop that"],
      ["t", "light, dark, as the system"],
      ["Esc", "close, clear, step back"],
      ["?", "this help"],
    ],
  },
];

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement as HTMLElement | null;
    if (element && !element.open) element.showModal();
    return () => before?.focus?.();
  }, []);
  const close = () => store.set({ help: false });
  return (
    <dialog
      class="help"
      ref={dialog}
      aria-label="Help"
      onClose={close}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <header>
        <h2>Keys and signs</h2>
        <button class="icon" aria-label="Close" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <div class="help-columns">
        {KEYS.map(({ title, keys }) => (
          <section>
            <h3>{title}</h3>
            <dl>
              {keys.map(([key, what]) => (
                <div>
                  <dt>
                    {key.split("  ").map((k) => (
                      <kbd>{k}</kbd>
                    ))}
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <section class="signs">
          <h3>Signs</h3>
          <dl>
            <div>
              <dt>
                <span class="sign torn" />
              </dt>
              <dd>a torn end: not known; the length is what is known</dd>
            </div>
            <div>
              <dt>
                <svg viewBox="0 0 20 14">
                  <path d="M6 11l4-8 4 8z" />
                </svg>
              </dt>
              <dd>left by an exception</dd>
            </div>
            <div>
              <dt>
                <svg viewBox="0 0 20 14">
                  <path d="M4 3l5 4-5 4zM10 3l5 4-5 4z" />
                </svg>
              </dt>
              <dd>left by longjmp</dd>
            </div>
            <div>
              <dt>
                <svg viewBox="0 0 20 14">
                  <path d="M7 3l6 4-6 4z" />
                </svg>
              </dt>
              <dd>ended with a tail call, or left by one</dd>
            </div>
            <div>
              <dt>
                <span class="sign overwritten" />
              </dt>
              <dd>overwritten: older than memory held</dd>
            </div>
            <div>
              <dt>
                <span class="sign off" />
              </dt>
              <dd>all tracing was switched off</dd>
            </div>
            <div>
              <dt>
                <span class="sign lost" />
              </dt>
              <dd>lost: records are missing</dd>
            </div>
            <div>
              <dt>
                <span class="sign left-out" />
              </dt>
              <dd>above the calls: some functions were not traced, by the budget or switched off</dd>
            </div>
            <div>
              <dt>
                <span class="sign kept" />
              </dt>
              <dd>kept: a slow call, a trigger, a snapshot</dd>
            </div>
            <div>
              <dt>
                <span class="sign states">
                  <i class="state running" />
                  <i class="state runnable" />
                  <i class="state blocked" />
                </span>
              </dt>
              <dd>above a thread: on a CPU, runnable without one, blocked</dd>
            </div>
            <div>
              <dt>
                <span class="sign faint" />
              </dt>
              <dd>
                calls shorter than a pixel: the longest names the colour, the strength is how much of the pixel they
                fill
              </dd>
            </div>
          </dl>
        </section>
      </div>
    </dialog>
  );
}
