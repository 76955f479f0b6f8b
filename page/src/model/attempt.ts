// SPDX-License-Identifier: MIT
// What may fail, as a question to the server: the page tells of it and goes on.
import { store } from "./store";

export async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if ((error as Error).name !== "AbortError") store.set({ notice: (error as Error).message });
  }
}
