// Small pieces that panels share.
import { forms, visible } from "../model/names";
import { store } from "../model/store";
import { currentScene } from "../timeline/steps";

/** A function's colour as in the timeline. */
export function Swatch({ trace, func }: { trace: number; func: number }) {
  return <span class="swatch" style={{ background: currentScene()?.looks(trace)?.css[func] ?? "transparent" }} />;
}

export function functionName(trace: number, func: number): string {
  return visible(store.state.traces[trace]?.info.functions[func]?.name ?? "?");
}

/** The longest form of a name that `letters` letters have room for; else its shortest. */
export function formFor(trace: number, func: number, letters: number): string {
  const all = forms(store.state.traces[trace]?.info.functions[func]?.name ?? "?");
  return visible(all.find((form) => form.length <= letters) ?? all[all.length - 1]!);
}

/** A name that keeps its end in sight when it is cut: the last part tells most. */
export function Name({ text }: { text: string }) {
  return (
    <span class="name" title={text}>
      <bdi>{text}</bdi>
    </span>
  );
}

/** A share as a bar behind a number. */
export function Bar({ share }: { share: number }) {
  return <span class="bar" style={{ width: `${Math.max(0, Math.min(1, share)) * 100}%` }} />;
}

export function Empty({ children }: { children: preact.ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

export function Failed({ message }: { message: string }) {
  return (
    <div class="empty failed" role="alert">
      {message}
    </div>
  );
}
