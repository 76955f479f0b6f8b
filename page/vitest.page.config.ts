// SPDX-License-Identifier: MIT
import { defineConfig } from "vitest/config";

// In Chromium, against a karst binary: KARST names it, KARST_TRACE a trace of test/e2e/viewer_workload.cc.
export default defineConfig({
  test: {
    include: ["test/page/**/*.test.ts"],
    environment: "node",
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
