// SPDX-License-Identifier: MIT
// Frames: how long they took against the target, which were slowest, and the chosen one.
import { useEffect, useState } from "preact/hooks";
import { FRAMES } from "../backend/late_lists";
import type { FrameFacts, FrameLine, FrameList } from "../backend/types/frames";
import { lateOf } from "../model/late";
import { classOf, FRAME_CLASSES, goToFrame, isTarget, setTarget, TARGET_MS, targetWords } from "../model/frames";
import { css } from "../model/colour";
import { visible } from "../model/names";
import { store, useStore } from "../model/store";
import { count, duration, exact, percent } from "../model/time";
import { Picture } from "../timeline/frame_picture";
import { currentScene } from "../timeline/steps";
import { useAnswer } from "./answers";
import { HistogramView } from "./histogram";
import { Icon } from "./icon";
import { Bar, Empty, Failed, Waiting } from "./parts";
import { TraceChoice } from "./scope";

/** A frame's colour as in the timeline. */
function FrameSwatch({ of, target }: { of: FrameLine; target: number }) {
  const frames = currentScene()?.inks.frames;
  const kind = FRAME_CLASSES[classOf(of.duration, of.marked, target)]!;
  return <span class="swatch" style={{ background: frames ? css(frames[kind]) : "transparent" }} />;
}

function Target() {
  const target = useStore((s) => s.frameTarget);
  const [text, setText] = useState(String(target));
  useEffect(() => setText(String(target)), [target]);
  const wrong = text.trim() === "" || !isTarget(Number(text));
  return (
    <label class="frame-target" title={`A frame that takes longer is over it. ${TARGET_MS} ms is 60 frames a second.`}>
      Target
      <input
        type="text"
        inputMode="decimal"
        size={6}
        aria-label="Target of a frame in milliseconds"
        aria-invalid={wrong}
        data-testid="frame-target"
        value={text}
        onInput={(event) => {
          const value = event.currentTarget.value;
          setText(value);
          if (value.trim() !== "" && isTarget(Number(value))) setTarget(Number(value));
        }}
      />
      ms
      <span class="quiet">
        {wrong ? "must be a time above 0" : `${Number((1000 / target).toPrecision(3))} a second`}
      </span>
    </label>
  );
}

function Sets({ trace, list, set }: { trace: number; list: FrameList; set: number }) {
  if (list.frames.length < 2) return null;
  const { processes } = store.state.traces[trace]!.info;
  return (
    <select
      aria-label="Which frames"
      value={String(set)}
      onChange={(event) => store.set({ frame: { trace, set: Number(event.currentTarget.value) }, frameSpan: null })}
    >
      {list.frames.map(({ name, process }, i) => (
        <option value={String(i)}>
          {visible(name) || "(no name)"}
          {processes.length > 1 && ` · ${processes[process]?.name ?? "?"} ${processes[process]?.pid ?? ""}`}
        </option>
      ))}
    </select>
  );
}

interface Of {
  readonly trace: number;
  readonly set: number;
  readonly name: string;
  readonly facts: FrameFacts;
  /** ns */
  readonly target: number;
}

function Steps({ trace, set, facts: { frame, previous, next } }: Of) {
  const step = (words: string, icon: "left" | "right", to: FrameLine | null) => (
    <button
      disabled={!to}
      title={to ? `${words} frame over the target: ${count(to.number)}` : `No ${words.toLowerCase()} one is over it`}
      data-testid={`frame-${words.toLowerCase()}`}
      onClick={() => to && goToFrame(trace, set, to)}
    >
      <Icon name={icon} /> {words} over target
    </button>
  );
  return (
    <div class="actions">
      {step("Previous", "left", previous)}
      {step("Next", "right", next)}
      {frame && (
        <button
          title="Measure this frame: tables and flame graphs can be about it"
          onClick={() => measure(trace, frame)}
        >
          <Icon name="measure" /> Measure
        </button>
      )}
    </div>
  );
}

function Chosen({ name, facts: { frame, picture }, target }: Of) {
  if (!frame)
    return <p class="quiet">Click a frame in the timeline, or in the list of the slowest, to have its times here.</p>;
  const by = frame.duration - target;
  return (
    <>
      <h2 class="call-name" data-testid="frame-name">
        <FrameSwatch of={frame} target={target} />
        <bdi>
          {visible(name)} {count(frame.number)}
        </bdi>
      </h2>
      <dl class="facts">
        <div title={exact(frame.duration)}>
          <dt>Duration</dt>
          <dd data-fact="frame-duration" data-ns={frame.duration}>
            {frame.marked ? "" : "at most "}
            {duration(frame.duration)}
          </dd>
        </div>
        <div>
          <dt>Target</dt>
          <dd class={frame.marked && by > 0 ? "mark" : ""}>
            {!frame.marked
              ? "nobody marked where the first frame begins"
              : by > 0
                ? `${duration(by)} over`
                : `kept, with ${duration(-by)} to spare`}
          </dd>
        </div>
        <div title={`${exact(frame.begin)} after the trace’s first event`}>
          <dt>Begin</dt>
          <dd>{duration(frame.begin)}</dd>
        </div>
      </dl>
      {picture && <Picture of={picture} testid="frame-picture" />}
    </>
  );
}

/** Its time becomes the range. */
function measure(trace: number, { begin, duration: length }: FrameLine): void {
  const from = begin + (trace === 1 ? store.state.offset : 0);
  store.set({ range: { begin: from, end: from + length }, tableTrace: trace, tab: "range", dockOpen: true });
}

function Slowest({ trace, set, facts: { slowest, frame }, target }: Of) {
  return (
    <section class="by-duration" aria-label="Slowest frames">
      <header class="pane-head">
        <h3>The slowest</h3>
      </header>
      {slowest.map((of) => (
        <button
          class={`call-line${of.number === frame?.number ? " on" : ""}`}
          data-testid="slow-frame"
          data-number={of.number}
          title={`Go to frame ${count(of.number)}, ${exact(of.duration)}`}
          onClick={() => goToFrame(trace, set, of)}
        >
          <Bar share={slowest[0]!.duration > 0 ? of.duration / slowest[0]!.duration : 0} />
          <FrameSwatch of={of} target={target} />
          <span class="name">frame {count(of.number)}</span>
          <span class="num">at {duration(of.begin)}</span>
          <span class="num">{duration(of.duration)}</span>
        </button>
      ))}
      {slowest.length === 0 && <div class="quiet">One mark ends a frame, and nobody marked where it begins.</div>}
    </section>
  );
}

function Sum({ facts: { over, durations }, target }: Of) {
  const { calls: n, mean } = durations;
  if (n === 0) return null;
  return (
    <>
      {count(n)} {n === 1 ? "frame" : "frames"}, mean {duration(mean ?? 0)}, {count(over)} ({percent(over / n)}) over{" "}
      {targetWords(target)}
    </>
  );
}

export function FramePanel() {
  const chosen = useStore((s) => s.frame);
  const tableTrace = useStore((s) => s.tableTrace);
  const traces = useStore((s) => s.traces);
  const target = useStore((s) => s.frameTarget) * 1e6;
  const trace = chosen?.trace ?? Math.min(tableTrace, traces.length - 1);
  const loaded = traces[trace];
  const list = useStore((s) => lateOf(FRAMES, trace, s));
  const set = Math.min(chosen?.set ?? 0, Math.max(0, (list?.frames.length ?? 0) - 1));
  const number = chosen?.set === set ? chosen.number : undefined;
  const asks = loaded !== undefined && list !== undefined && list.frames.length > 0;
  const answer = useAnswer(
    asks ? `${trace}|${set}|${number}|${target}` : null,
    async (signal) => ({ trace, set, target, facts: await loaded!.backend.frame(set, target, number, signal) }),
    80,
  );
  const { value, error } = answer;
  const frame = value && value.trace === trace && value.set === set ? value.facts.frame : null;
  useEffect(() => {
    if (frame && frame.number === number)
      store.set({ frameSpan: { begin: frame.begin, end: frame.begin + frame.duration } });
  }, [frame]);
  if (!loaded) return null;
  const any = loaded.info.threads.some(({ notes }) => (notes?.frame ?? 0) > 0);
  const of = value && list?.frames[value.set] && { ...value, name: list.frames[value.set]!.name };
  return (
    <div class="outlier-panel">
      <div class="pane-tools">
        <TraceChoice trace={trace} fixed={false} />
        {list && <Sets trace={trace} list={list} set={set} />}
        {any && <Target />}
        <span class="grow" />
        <span class="quiet" role="status" data-testid="frame-sum">
          {of && <Sum {...of} />}
        </span>
      </div>
      {loaded.info.aggregated ? (
        <Empty>This file holds one picture and the sums, and no frames. karst view shows them.</Empty>
      ) : !any ? (
        <Empty>
          This trace has no frames: a program marks where one ends with <code>KARST_FRAME("main")</code> of
          karst/karst.h, or Tracy’s <code>FrameMark</code>.
        </Empty>
      ) : error ? (
        <Failed message={error} again={answer.again} />
      ) : !of ? (
        <Waiting answer={answer} />
      ) : (
        <div class="outlier-columns">
          <section class="slow frame-facts" aria-label="Frame">
            <div class="frame-chosen">
              <Chosen {...of} />
              <Steps {...of} />
            </div>
            <HistogramView
              histogram={of.facts.durations}
              marked={of.facts.frame?.marked ? of.facts.frame.duration : undefined}
              open={false}
              what="frame"
              line={{ name: "target", ns: of.target }}
            />
          </section>
          <Slowest {...of} />
        </div>
      )}
    </div>
  );
}
