// SPDX-License-Identifier: MIT
// The page without a trace: takes one that is dropped or chosen, or two to be compared.
import { useEffect, useRef, useState } from "preact/hooks";

/** Calls `open` with files that are dropped anywhere on the page; whether some are being held over it. */
export function useDrop(active: boolean, open: (files: File[]) => void): boolean {
  const [over, setOver] = useState(false);
  useEffect(() => {
    if (!active) return;
    const hold = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      event.preventDefault();
      setOver(false);
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length > 0) open(files);
    };
    addEventListener("dragover", hold);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", hold);
      removeEventListener("dragleave", leave);
      removeEventListener("drop", drop);
    };
  }, [active, open]);
  return over;
}

export function OpenFiles({ failure, over, open }: { failure: string; over: boolean; open: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <main class={`loading open-files${over ? " over" : ""}`}>
      <div class={`loading-box${failure ? " failed" : ""}`}>
        <h1>{failure ? "This trace cannot be shown" : "Open a trace"}</h1>
        {failure && <p role="alert">{failure}</p>}
        <p class="quiet">Drop a .karst file here, or two to compare them. What you open stays on this machine.</p>
        <button type="button" class="primary" onClick={() => input.current?.click()}>
          Choose a file…
        </button>
        <input
          ref={input}
          type="file"
          accept=".karst"
          multiple
          hidden
          aria-label="Trace files"
          onChange={(event) => {
            const files = [...(event.currentTarget.files ?? [])];
            event.currentTarget.value = "";
            if (files.length > 0) open(files);
          }}
        />
      </div>
    </main>
  );
}
