// SPDX-License-Identifier: MIT
// Colours of functions: a hash of the name gives hue and a small step in lightness, so a function has
// the same colour in every trace, thread and session. OKLCH keeps all hues equally bright, so the
// label's contrast is the same on each of them (over 7:1, checked by a test).

export type Theme = "light" | "dark";

/** FNV-1a over the name's UTF-16 units, then mixed: close names get far hues. */
export function hash(name: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < name.length; ++i) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193);
  h ^= h >>> 16;
  h = Math.imul(h, 0x7feb352d);
  h ^= h >>> 15;
  h = Math.imul(h, 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

export interface Rgb {
  r: number;
  g: number;
  b: number;
}

/** OKLCH to sRGB (Björn Ottosson's Oklab), clipped. l 0..1, c 0..0.4, h degrees. */
export function oklch(l: number, c: number, h: number): Rgb {
  const a = c * Math.cos((h * Math.PI) / 180);
  const b = c * Math.sin((h * Math.PI) / 180);
  const L = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const M = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const S = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const encode = (x: number) => {
    const v = x <= 0.0031308 ? 12.92 * x : 1.055 * Math.max(x, 0) ** (1 / 2.4) - 0.055;
    return Math.round(Math.min(1, Math.max(0, v)) * 255);
  };
  return {
    r: encode(4.0767416621 * L - 3.3077115913 * M + 0.2309699292 * S),
    g: encode(-1.2684380046 * L + 2.6097574011 * M - 0.3413193965 * S),
    b: encode(-0.0041960863 * L - 0.7034186147 * M + 1.707614701 * S),
  };
}

/** The fill of a function's calls. */
export function functionColour(name: string, theme: Theme): Rgb {
  const h = hash(name);
  const hue = (h & 0xffff) * (360 / 65536);
  const shade = ((h >>> 16) % 5) - 2;
  const vivid = ((h >>> 20) % 3) * 0.012;
  return theme === "light"
    ? oklch(0.83 + shade * 0.018, 0.078 + vivid, hue)
    : oklch(0.396 + shade * 0.014, 0.07 + vivid, hue);
}

/** The fill of a highlighted function's calls: the same hue, in the full light, on either ground. */
export function strongColour(name: string): Rgb {
  return oklch(0.72, 0.15, (hash(name) & 0xffff) * (360 / 65536));
}

/** sRGB to OKLCH: the inverse of oklch(). */
function lchOf(colour: Rgb): { l: number; c: number; h: number } {
  const decode = (v: number) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = [decode(colour.r), decode(colour.g), decode(colour.b)];
  const L = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const M = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const S = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  const x = 1.9779984951 * L - 2.428592205 * M + 0.4505937099 * S;
  const y = 0.0259040371 * L + 0.7827717662 * M - 0.808675766 * S;
  return {
    l: 0.2104542553 * L + 0.793617785 * M - 0.0040720468 * S,
    c: Math.hypot(x, y),
    h: (Math.atan2(y, x) * 180) / Math.PI,
  };
}

const rgbOf = (colour: number): Rgb => ({ r: (colour >> 16) & 255, g: (colour >> 8) & 255, b: colour & 255 });

/** A call in the program's colour (0xrrggbb): its hue, in the lightness in which labels can be read. */
export function tonedColour(colour: number, theme: Theme): Rgb {
  const { l, c, h } = lchOf(rgbOf(colour));
  const shade = (l - 0.5) * 0.08;
  return theme === "light" ? oklch(0.83 + shade, Math.min(c, 0.12), h) : oklch(0.396 + shade, Math.min(c, 0.11), h);
}

/** The same of a text or a line on the page's ground. */
export function inkColour(colour: number, theme: Theme): Rgb {
  const { c, h } = lchOf(rgbOf(colour));
  return theme === "light" ? oklch(0.5, Math.min(c, 0.16), h) : oklch(0.78, Math.min(c, 0.15), h);
}

/** Colour as one word in the byte order of ImageData on little-endian machines: 0xAABBGGRR. */
export function word({ r, g, b }: Rgb, alpha = 255): number {
  return ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export function css({ r, g, b }: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

/** Part `share` of `over`, the rest of `under`. */
export function mix(over: Rgb, under: Rgb, share: number): Rgb {
  const part = (a: number, b: number) => Math.round(a * share + b * (1 - share));
  return { r: part(over.r, under.r), g: part(over.g, under.g), b: part(over.b, under.b) };
}

/** WCAG contrast ratio, 1 to 21. */
export function contrast(a: Rgb, b: Rgb): number {
  const luminance = ({ r, g, b: blue }: Rgb) => {
    const linear = (v: number) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(blue);
  };
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}
