// SPDX-License-Identifier: MIT
// Source lines as HTML, coloured by highlight.js; tokens that span lines are closed and opened again at
// each, so that every line stands for itself.
import hljs from "highlight.js/lib/core";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";

hljs.registerLanguage("c", c);
hljs.registerLanguage("cpp", cpp);

/** HTML of each line. highlight.js escapes what it does not mark up, so the text cannot bring markup of its own. */
export function highlightLines(text: string, path: string): string[] {
  const language = /\.(c|h)$/.test(path) && !/\b(class|namespace|template|nullptr)\b/.test(text) ? "c" : "cpp";
  return splitLines(hljs.highlight(text, { language, ignoreIllegals: true }).value);
}

export function splitLines(html: string): string[] {
  const open: string[] = [];
  return html.split("\n").map((line) => {
    const start = open.join("");
    for (const tag of line.match(/<span[^>]*>|<\/span>/g) ?? []) {
      if (tag === "</span>") open.pop();
      else open.push(tag);
    }
    return start + line + "</span>".repeat(open.length);
  });
}
