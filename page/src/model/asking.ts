// SPDX-License-Identifier: MIT
// What was asked in SQL, and of the detectors: it stays when another panel is shown, and its answer comes meanwhile.
import { useEffect, useState } from "preact/hooks";
import type { CheckAnswer, SqlAnswer } from "../backend/types/sql";
import { store } from "./store";

/** Of one trace. */
export interface Asked<Answer> {
  readonly answer?: Answer;
  readonly error?: string;
  /** How long it took, ms. */
  readonly took?: number;
  /** While it is under way. */
  readonly running?: AbortController;
  /** What was asked. */
  readonly text?: string;
}

const MOST_REMEMBERED = 100;

/** The latest question, whoever looks on. */
export class Asking<Answer> {
  private readonly byTrace = new Map<number, Asked<Answer>>();
  private readonly listeners = new Set<() => void>();
  /** Texts that were asked, the latest last; each once. */
  history: readonly string[] = [];

  of(trace: number): Asked<Answer> {
    return this.byTrace.get(trace) ?? {};
  }

  private set(trace: number, asked: Asked<Answer>): void {
    this.byTrace.set(trace, asked);
    for (const listener of this.listeners) listener();
  }

  /** Ends what is under way. */
  stop(trace: number): void {
    this.of(trace).running?.abort();
  }

  async ask(trace: number, text: string, ask: (signal: AbortSignal) => Promise<Answer>): Promise<void> {
    this.stop(trace);
    const running = new AbortController();
    const begin = performance.now();
    if (text !== "") this.history = [...this.history.filter((one) => one !== text), text].slice(-MOST_REMEMBERED);
    const { answer, text: before } = this.of(trace);
    this.set(trace, { ...(answer === undefined ? {} : { answer, text: before ?? "" }), running });
    const end = (asked: Asked<Answer>) => {
      // Another question may have taken its place.
      if (this.of(trace).running === running) this.set(trace, { ...asked, text, took: performance.now() - begin });
    };
    try {
      end({ answer: await ask(running.signal) });
    } catch (error) {
      end({ error: running.signal.aborted ? "Stopped." : (error as Error).message });
    }
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export const queries = new Asking<SqlAnswer>();
export const checks = new Asking<CheckAnswer>();

/** A component renders again when there is something new to `asking`. */
export function useAsked<Answer>(asking: Asking<Answer>, trace: number): Asked<Answer> {
  const [, render] = useState(0);
  useEffect(() => asking.subscribe(() => render((n) => n + 1)), [asking]);
  return asking.of(trace);
}

/** Why a trace of this page cannot be asked in SQL; undefined: it can. */
export function whyNoSql(trace: number, command: string): string | undefined {
  const { info } = store.state.traces[trace]!;
  return info.answersSql || info.reading
    ? undefined
    : `A page without a server answers no SQL. In a terminal: ${command}`;
}
