// SPDX-License-Identifier: MIT
// A function's source, at the text that was traced: its lines marked, scrolled to its first.
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { SourceText } from "../backend/types/backend";
import { visible } from "../model/names";
import { store } from "../model/store";
import { useAnswer } from "./answers";
import { Empty } from "./parts";
import { highlightLines } from "./highlighter";

/** Lines above and below the function that are shown: colouring a file of 8 MiB would hold up the page. */
const AROUND = 200;
const MOST = 3000;

function Lines({ source }: { source: SourceText }) {
  const first = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => {
    const all = source.text.split("\n");
    const from = Math.max(source.firstLine, source.line - AROUND);
    const to = Math.min(source.firstLine + all.length - 1, Math.min(source.endLine, source.line + MOST) + AROUND);
    const part = all.slice(from - source.firstLine, to - source.firstLine + 1);
    return highlightLines(part.join("\n"), source.path).map((html, i) => ({ number: from + i, html }));
  }, [source]);
  useEffect(() => {
    const line = first.current;
    const box = line?.closest(".lines");
    if (line && box) box.scrollTop = Math.max(0, line.offsetTop - 36);
  }, [source]);
  return (
    <div class="lines" tabIndex={0} role="group" aria-label={`Source of ${source.path}, from line ${source.line}`}>
      <div class="lines-inner">
        {shown.map(({ number, html }) => {
          const own = number >= source.line && number <= source.endLine;
          return (
            <div class={`line${own ? " own" : ""}`} ref={number === source.line ? first : null} data-line={number}>
              <span class="number">{number}</span>
              <code dangerouslySetInnerHTML={{ __html: html || " " }} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

export function SourceView({ trace, func }: { trace: number; func: number }) {
  const loaded = store.state.traces[trace];
  const answer = useAnswer(loaded ? `${trace}.${func}` : null, () => loaded!.backend.source(func));
  const info = loaded?.info.functions[func];
  const path = answer.value?.path ?? info?.file ?? "";
  return (
    <section class="source" aria-label="Source" data-testid="source">
      <header class="pane-head">
        <h3>Source</h3>
        {path && (
          <span class="path" title={`${path}:${info?.line}`}>
            <bdi>
              {visible(path)}:{info?.line}
            </bdi>
          </span>
        )}
      </header>
      {answer.error ? (
        <Empty>{answer.error}</Empty>
      ) : answer.value ? (
        <Lines key={`${trace}.${func}`} source={answer.value} />
      ) : (
        <Empty>…</Empty>
      )}
    </section>
  );
}
