// SPDX-License-Identifier: MIT
// An answer from a backend, for a component: waiting, there, or failed. The last answer stays in sight
// while the next one is on its way, and answers that are no longer asked for are dropped.
import { useEffect, useRef, useState } from "preact/hooks";
import { onJobs, shareOf } from "../backend/jobs";
import { firstPicture } from "../model/first_picture";

export interface Answer<T> {
  value?: T;
  error?: string;
  waiting: boolean;
  /** How far the server is, 0 to 1, when it takes long enough to say. */
  share?: number;
  /** Ends the waiting; nothing comes of it then. */
  stop: () => void;
  /** Asks again after stop(). */
  again?: () => void;
}

type Known<T> = Omit<Answer<T>, "stop" | "again"> & { stopped?: boolean };

/** Asks again when `key` changes; not at all when it is null. */
export function useAnswer<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>, delay = 0): Answer<T> {
  const [answer, setAnswer] = useState<Known<T>>({ waiting: true });
  const [turn, setTurn] = useState(0);
  const running = useRef<AbortController>();
  useEffect(() => {
    if (key === null) {
      setAnswer({ waiting: false });
      return;
    }
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    setAnswer((last) => (last.value === undefined ? { waiting: true } : { value: last.value, waiting: true }));
    const start = async () => {
      await firstPicture();
      if (signal.aborted) return;
      ask(signal).then(
        (value) => !signal.aborted && setAnswer({ value, waiting: false }),
        (error: Error) => !signal.aborted && setAnswer({ error: error.message, waiting: false }),
      );
    };
    const timer = setTimeout(() => void start(), delay);
    const forget = onJobs(() => {
      const share = shareOf(signal);
      if (share !== undefined) setAnswer((last) => (last.waiting && last.share !== share ? { ...last, share } : last));
    });
    return () => {
      forget();
      clearTimeout(timer);
      controller.abort();
    };
  }, [key, turn]);
  const { stopped, ...known } = answer;
  return {
    ...known,
    stop: () => {
      running.current?.abort();
      setAnswer({ error: "Stopped.", waiting: false, stopped: true });
    },
    ...(stopped ? { again: () => setTurn((n) => n + 1) } : {}),
  };
}
