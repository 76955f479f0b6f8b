// An answer from a backend, for a component: waiting, there, or failed. The last answer stays in sight
// while the next one is on its way, and answers that are no longer asked for are dropped.
import { useEffect, useState } from "preact/hooks";

export interface Answer<T> {
  value?: T;
  error?: string;
  waiting: boolean;
}

/** Asks again when `key` changes; not at all when it is null. */
export function useAnswer<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>, delay = 0): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({ waiting: true });
  useEffect(() => {
    if (key === null) {
      setAnswer({ waiting: false });
      return;
    }
    const controller = new AbortController();
    setAnswer((last) => (last.value === undefined ? { waiting: true } : { value: last.value, waiting: true }));
    const timer = setTimeout(() => {
      ask(controller.signal).then(
        (value) => !controller.signal.aborted && setAnswer({ value, waiting: false }),
        (error: Error) => !controller.signal.aborted && setAnswer({ error: error.message, waiting: false }),
      );
    }, delay);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [key]);
  return answer;
}
