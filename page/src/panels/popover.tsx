// SPDX-License-Identifier: MIT
// A button that opens a box below it. Escape, or a click elsewhere, closes it again.
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icon";

interface Props {
  icon: IconName;
  /** What the button says; of narrow pages only its icon is left. */
  label: string;
  title: string;
  warn?: boolean;
  testid: string;
  children: (close: () => void) => preact.ComponentChildren;
}

export function Popover({ icon, label, title, warn, testid, children }: Props) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return;
    const away = (event: PointerEvent) => !box.current?.contains(event.target as Node) && setOpen(false);
    addEventListener("pointerdown", away, true);
    return () => removeEventListener("pointerdown", away, true);
  }, [open]);
  const close = () => setOpen(false);
  return (
    <div
      class="problems"
      ref={box}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !open) return;
        event.preventDefault();
        event.stopPropagation();
        close();
        button.current?.focus();
      }}
    >
      <button
        class={warn ? "warn" : ""}
        aria-expanded={open}
        aria-label={`${label}: ${title}`}
        title={title}
        ref={button}
        onClick={() => setOpen(!open)}
        data-testid={testid}
      >
        <Icon name={icon} /> <span class="word">{label}</span>
      </button>
      {open && (
        <div class="popover" role="dialog" aria-label={title}>
          {children(close)}
        </div>
      )}
    </div>
  );
}
