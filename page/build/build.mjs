// Builds the page: DIR/index.html with DIR/assets for the server, and DIR/export.html, the same page in one
// file for `karst export --to html`, with the engine (engine/ compiled to WebAssembly) inside.
// Usage: node build/build.mjs [--engine FILE.wasm] [--outDir DIR]   (default: dist)
// Without --engine there is the server's page alone. CMake makes the engine (ninja -C build karst_page_engine).
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";

const top = dirname(dirname(fileURLToPath(import.meta.url)));
const option = (name, otherwise) => {
  const at = process.argv.indexOf(name);
  return at > 0 ? process.argv[at + 1] : otherwise;
};
const out = resolve(option("--outDir", join(top, "dist")));
const engineFile = option("--engine");
const configFile = join(top, "vite.config.ts");

await build({ root: top, configFile, logLevel: "warn", build: { outDir: out } });

// The exported page has no server, so it needs no worker: one script in one chunk.
async function buildExportedPage() {
  const engine = gzipSync(readFileSync(engineFile), { level: 9 }).toString("base64");
  const single = mkdtempSync(join(tmpdir(), "karst-page-"));
  try {
    await build({
      root: top,
      configFile,
      logLevel: "warn",
      build: { outDir: single, assetsDir: ".", rollupOptions: { output: { inlineDynamicImports: true } } },
    });
    const files = readdirSync(single);
    const text = (ending, but = "worker") =>
      readFileSync(
        join(
          single,
          files.find((f) => f.endsWith(ending) && !f.includes(but)),
        ),
        "utf8",
      );
    // "</script" inside of a script would end it.
    const script = text(".js")
      .replace(/<\/script/g, "<\\/script")
      .replace(/<!--/g, "<\\!--");
    const style = text(".css");
    // What a browser may run is this very text. It takes "\r\n" for "\n" before it looks.
    if (/\r/.test(script)) throw new Error("export.html: the script has a carriage return, so its hash would not fit");
    const hash = createHash("sha256").update(script).digest("base64");
    const policy = `default-src 'none'; script-src 'sha256-${hash}' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'`;
    const page = readFileSync(join(single, "index.html"), "utf8")
      .replace(/\s*<script[^>]*src=[^>]*><\/script>/g, "")
      .replace(/\s*<link[^>]*rel="(stylesheet|modulepreload)"[^>]*>/g, "")
      .replace(
        "<meta charset",
        () => `<meta http-equiv="Content-Security-Policy" content="${policy}" />\n    <meta charset`,
      )
      .replace("</head>", () => `  <style>${style}</style>\n  </head>`)
      .replace(
        "</body>",
        () =>
          `  <!--karst-embedded-->\n    <script type="text/plain" id="karst-engine">${engine}</script>\n    <script type="module">${script}</script>\n  </body>`,
      );
    if (page.split("<!--karst-embedded-->").length !== 2)
      throw new Error("export.html: the place for the data must be there once");
    writeFileSync(join(out, "export.html"), page);
  } finally {
    rmSync(single, { recursive: true });
  }
}

if (engineFile) await buildExportedPage();
