// SPDX-License-Identifier: MIT
// The page that karst flame writes: the picture of flame_svg.h with a script that zooms and searches in it.
#include <fmt/format.h>

#include <string_view>

#include "cli/commands/flame_svg.h"
#include "cli/text/html.h"

namespace karst::cli {
namespace {

constexpr std::string_view kStyle = R"(
p { margin: 0 0 .6rem; }
input, button { font: inherit; }
svg { width: 100%; height: auto; }
g { cursor: pointer; }
g:hover rect { stroke: #000; }
g.hit rect { fill: #c77dff; }
text { pointer-events: none; }
)";

// Its hash is that of the text between the delimiters; test/e2e/cli_sums.py compares them.
constexpr PageScript kScript{R"js(
'use strict';
const kLeft = 10, kWidth = 1200, kCharacter = 6.7;
const svg = document.querySelector('svg'), find = document.querySelector('input');
const found = document.querySelector('output'), whole = document.querySelector('button');
const frames = [...svg.querySelectorAll('g')].map((group) => {
  const rect = group.querySelector('rect');
  const title = group.querySelector('title').textContent;
  const x = Number(rect.getAttribute('x')), width = Number(rect.getAttribute('width'));
  return { group, rect, title, name: title.slice(0, title.lastIndexOf(': ')), x, width,
           y: Number(rect.getAttribute('y')), text: group.querySelector('text') };
});

function label(frame, x, width) {
  const room = Math.floor((width - 6) / kCharacter);
  if (room < 3 && !frame.text) return;
  if (!frame.text) {
    frame.text = document.createElementNS(svg.namespaceURI, 'text');
    frame.text.setAttribute('y', String(frame.y + 12));
    frame.group.append(frame.text);
  }
  frame.text.setAttribute('x', x + 3);
  const cut = frame.name.length <= room ? frame.name : frame.name.slice(0, room - 2) + '..';
  frame.text.textContent = room < 3 ? '' : cut;
}

function zoom(to) {
  const scale = kWidth / to.width;
  for (const frame of frames) {
    const left = Math.max((frame.x - to.x) * scale, 0);
    const right = Math.min((frame.x + frame.width - to.x) * scale, kWidth);
    const shown = right - left > 0.4;
    frame.group.style.display = shown ? '' : 'none';
    if (!shown) continue;
    frame.rect.setAttribute('x', left + kLeft);
    frame.rect.setAttribute('width', Math.max(right - left - 0.5, 0.2));
    label(frame, left + kLeft, right - left);
  }
  whole.disabled = to === frames[0];
}

function search(text) {
  let pattern = null;
  try {
    pattern = new RegExp(text, 'i');
  } catch {}  // a text alone
  const hits = frames.filter((frame) => {
    const hit = text !== '' && (pattern?.test(frame.name) || frame.name.includes(text));
    frame.group.classList.toggle('hit', hit);
    return hit;
  });
  // A frame within another one that was found adds nothing.
  let sum = 0, end = 0;
  for (const hit of hits.sort((a, b) => a.x - b.x || b.width - a.width)) {
    sum += Math.max(0, hit.x + hit.width - Math.max(end, hit.x));
    end = Math.max(end, hit.x + hit.width);
  }
  const share = ((100 * sum) / frames[0].width).toFixed(1);
  found.textContent = text === '' ? '' : `${hits.length} found, ${share}% of all`;
}

svg.addEventListener('click', (event) => {
  const frame = frames.find((one) => one.group === event.target.closest('g'));
  if (frame) zoom(frame);
});
whole.addEventListener('click', () => zoom(frames[0]));
find.addEventListener('input', () => search(find.value));
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') zoom(frames[0]);
  if (event.key === '/' && event.target !== find) {
    event.preventDefault();
    find.focus();
  }
});
// page.html#name opens with a search.
function from_address() {
  try {
    find.value = decodeURIComponent(location.hash.slice(1));
  } catch {
    find.value = '';
  }
  search(find.value);
}
addEventListener('hashchange', from_address);
zoom(frames[0]);
from_address();
)js",
                             "sE9pTfA6NrUCzZ6/fdbSP24zjFuyObEEroA+nLiTB1U="};

}  // namespace

void print_flame_page(const Paths& paths, Output& output) {
  begin_page(fmt::format("Flame graph of {}", paths.input.trace.name()), kStyle, &kScript, output);
  output.append(
      "<p><label>Search <input type=\"search\" placeholder=\"regular expression\"></label>\n"
      "<button type=\"button\" disabled>Whole</button> <output></output></p>\n"
      "<p>A click on a frame makes it as wide as the page; Escape goes back; / searches.</p>\n");
  print_flame_svg(paths, output, true);
  end_page(&kScript, output);
}

}  // namespace karst::cli
