// SPDX-License-Identifier: MIT
import { defineConfig } from "vite";

// Addresses are relative: the server has the page under a token, and an exported page has none.
export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  worker: { format: "es" },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    emptyOutDir: true,
    reportCompressedSize: false,
  },
});
