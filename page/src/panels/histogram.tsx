// SPDX-License-Identifier: MIT
// The distribution of a function's durations on a logarithmic scale, with one call marked.
import type { Histogram } from "../backend/types/calls";
import { count, duration } from "../model/time";

const WIDTH = 320;
const HEIGHT = 84;
const BASE = 66;

interface Props {
  readonly histogram: Histogram;
  /** Of the call that is marked; undefined: none is. */
  readonly marked: number | undefined;
  /** Whether that call is open. */
  readonly open: boolean;
  /** A click on a bar chooses its durations. */
  readonly choose?: (least: number, most: number) => void;
  readonly chosen?: { readonly least: number } | undefined;
  /** What took so long; left out: calls of a function. */
  readonly what?: "call" | "frame";
  /** A line at one more duration, where it is among them. */
  readonly line?: { readonly name: string; readonly ns: number };
}

export function HistogramView({ histogram, marked = -1, open, choose, chosen, what = "call", line }: Props) {
  const { edges, counts } = histogram;
  if (counts.length === 0 && what === "call")
    return <div class="quiet">No call of this function is complete: there is no distribution to show.</div>;
  if (counts.length === 0) return null;
  if (histogram.calls === 1 && !open && what === "call")
    return <div class="quiet">This is the only call of the function.</div>;
  const low = Math.max(edges[0]!, 1);
  const high = Math.max(edges[edges.length - 1]!, low * 2);
  const at = (ns: number) => (Math.log(Math.max(ns, low) / low) / Math.log(high / low)) * WIDTH;
  // Heights go with the logarithm too: one slow call among a million is what people look for.
  const most = Math.log1p(Math.max(...counts));
  const ticks: { ns: number; anchor: "start" | "middle" | "end" }[] = [
    { ns: low, anchor: "start" },
    { ns: high, anchor: "end" },
  ];
  const [p50, p99] = [at(histogram.p50 ?? low), at(histogram.p99 ?? low)];
  // Their names stand on the far sides of their lines when these are close.
  const close = p99 - p50 < 30;
  const ranks =
    close && p50 < 24
      ? [{ name: "p50 p99", x: p99, end: false }]
      : [
          { name: "p50", x: p50, end: close },
          { name: "p99", x: p99, end: p99 > WIDTH - 22 },
        ];
  const shorter = counts.reduce((sum, n, i) => (edges[i + 1]! <= marked ? sum + n : sum), 0);
  const x = at(marked);
  return (
    <figure class="histogram">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role={choose ? "group" : "img"}
        aria-label={
          `Durations of ${count(histogram.calls)} ${what}s from ${duration(histogram.min ?? 0)} ` +
          `to ${duration(histogram.max ?? 0)}, median ${duration(histogram.p50 ?? 0)}. ` +
          (marked < 0 ? "" : `This ${what}: ${duration(marked)}, longer than ${count(shorter)} of them.`)
        }
      >
        {counts.map((n, i) => {
          if (n === 0) return null;
          const left = at(edges[i]!);
          const right = at(edges[i + 1]!);
          const height = Math.max(1.5, (Math.log1p(n) / most) * (BASE - 12));
          const here = marked >= edges[i]! && (marked < edges[i + 1]! || i === counts.length - 1);
          const words = `${count(n)} ${what}${n === 1 ? "" : "s"} of ${duration(edges[i]!)} to ${duration(edges[i + 1]!)}`;
          const bar = (
            <rect
              class={`${here ? "here" : ""}${chosen?.least === edges[i] ? " chosen" : ""}`}
              x={left + 0.5}
              y={BASE - height}
              width={Math.max(1, right - left - 1)}
              height={height}
            >
              <title>{words}</title>
            </rect>
          );
          if (!choose) return bar;
          const take = () => choose(edges[i]!, edges[i + 1]!);
          // All of the column takes the click: low bars are a pixel high.
          return (
            <g
              class="choice"
              role="button"
              tabIndex={0}
              aria-label={words}
              aria-pressed={chosen?.least === edges[i]}
              onClick={take}
              onKeyDown={(event) => {
                if (event.key !== "Enter" && event.key !== " ") return;
                event.preventDefault();
                event.stopPropagation();
                take();
              }}
            >
              <rect class="room" x={left} y={0} width={Math.max(4, right - left)} height={BASE} />
              {bar}
            </g>
          );
        })}
        <line class="axis" x1="0" x2={WIDTH} y1={BASE} y2={BASE} />
        {ranks.map(({ name, x: px, end }) => (
          <g class="rank">
            <line x1={px} x2={px} y1={10} y2={BASE} />
            <text x={end ? px - 2 : px + 2} y={9} text-anchor={end ? "end" : "start"}>
              {name}
            </text>
          </g>
        ))}
        {line && line.ns >= low && line.ns <= high && (
          <g class="line" data-testid="histogram-line">
            <line x1={at(line.ns)} x2={at(line.ns)} y1={18} y2={BASE} />
            <text
              x={at(line.ns) + (at(line.ns) > WIDTH / 2 ? -3 : 3)}
              y={25}
              text-anchor={at(line.ns) > WIDTH / 2 ? "end" : "start"}
            >
              {line.name}
            </text>
          </g>
        )}
        {marked >= 0 && <path class="this" d={`M${x} ${BASE + 1}l-4 6h8z`} />}
        {ticks.map(({ ns, anchor }) => (
          <text class="tick" x={at(ns)} y={HEIGHT - 2} text-anchor={anchor}>
            {duration(ns)}
          </text>
        ))}
      </svg>
      <figcaption class="quiet">
        {count(histogram.calls)} {what === "call" ? "complete calls" : `${what}s`}
        {histogram.openCalls > 0 && ` · ${count(histogram.openCalls)} open`}
        {open && " · this one is open: its length is what is known of it"}
      </figcaption>
    </figure>
  );
}
