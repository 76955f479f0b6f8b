// SPDX-License-Identifier: MIT
// An answer from a backend, for a component: waiting, there, or failed. The last answer stays in sight
// while the next one is on its way, and answers that are no longer asked for are dropped. When the trace was read again
// it is asked for once more, in silence.
import { useEffect, useRef, useState } from "preact/hooks";
import { onJobs, shareOf } from "../backend/jobs";
import { firstPicture } from "../model/first_picture";
import { markStale } from "../model/stale";
import { store, useStore } from "../model/store";

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

type Known<T> = Omit<Answer<T>, "stop" | "again"> & {
  stopped?: boolean;
  /** Those of the state when it was asked for. */
  numbers?: number;
  callNumbers?: number;
};

/** While a trace grows: so many times as long as an answer takes passes before it is asked for again. */
const REST = 2;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** One question, asked again when renew() was called. Ends with `signal`. */
class Asking<T> {
  private wanted = false;
  private busy = false;

  constructor(
    private readonly ask: () => Promise<T>,
    private readonly signal: AbortSignal,
    private readonly take: (known: Known<T>) => void,
  ) {}

  renew(): void {
    this.wanted = true;
    if (!this.busy) void this.run();
  }

  private async run(): Promise<void> {
    const { signal } = this;
    this.busy = true;
    await firstPicture();
    while (this.wanted && !signal.aborted) {
      this.wanted = false;
      const { numbers, callNumbers } = store.state;
      const begin = performance.now();
      try {
        const value = await this.ask();
        if (!signal.aborted) this.take({ value, waiting: false, numbers, callNumbers });
      } catch (error) {
        // Let go by the server: the page takes in what is there now, and asks again.
        if (!signal.aborted && (error as Error).name !== "AbortError")
          this.take({ error: (error as Error).message, waiting: false });
      }
      if (this.wanted) await pause(REST * (performance.now() - begin));
    }
    this.busy = false;
  }
}

/** Asks again when `key` changes; not at all when it is null. */
export function useAnswer<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>, delay = 0): Answer<T> {
  const [answer, setAnswer] = useState<Known<T>>({ waiting: true });
  const [turn, setTurn] = useState(0);
  const generation = useStore((s) => s.generation);
  const numbers = useStore((s) => s.numbers);
  const callNumbers = useStore((s) => s.callNumbers);
  const running = useRef<AbortController>();
  const asking = useRef<Asking<T>>();
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (key === null) {
      setAnswer({ waiting: false });
      return;
    }
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    setAnswer(({ value, numbers, callNumbers }) => ({ value, numbers, callNumbers, waiting: true }) as Known<T>);
    const question = new Asking(() => latest.current(signal), signal, setAnswer);
    const timer = setTimeout(() => {
      asking.current = question;
      question.renew();
    }, delay);
    const forget = onJobs(() => {
      const share = shareOf(signal);
      if (share !== undefined) setAnswer((last) => (last.waiting && last.share !== share ? { ...last, share } : last));
    });
    return () => {
      forget();
      clearTimeout(timer);
      asking.current = undefined;
      controller.abort();
    };
  }, [key, turn, numbers]);
  useEffect(() => asking.current?.renew(), [generation]);
  const stale = answer.value !== undefined && answer.callNumbers !== undefined && answer.callNumbers !== callNumbers;
  useEffect(() => {
    markStale(running, stale);
    return () => markStale(running, false);
  }, [stale]);
  const { value, error, waiting, share, stopped } = answer;
  // Names of functions and threads would be others'.
  const isOld = answer.numbers !== undefined && answer.numbers !== numbers;
  return {
    ...(isOld ? { waiting: true } : { ...(value !== undefined ? { value } : {}), waiting }),
    ...(error !== undefined ? { error } : {}),
    ...(share !== undefined ? { share } : {}),
    stop: () => {
      running.current?.abort();
      setAnswer({ error: "Stopped.", waiting: false, stopped: true });
    },
    ...(stopped ? { again: () => setTurn((n) => n + 1) } : {}),
  };
}
