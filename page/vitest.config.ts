// SPDX-License-Identifier: MIT
import { defineConfig } from "vitest/config";

// The files of a thread share its modules: to load them anew for each takes a third of the time.
export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  test: { include: ["test/unit/**/*.test.ts"], environment: "node", pool: "threads", isolate: false },
});
