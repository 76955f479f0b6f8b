// SPDX-License-Identifier: MIT
// Colours that the canvases share with style/base.css (which has them as custom properties).
import {
  contrast,
  css,
  functionColour,
  mix,
  strongColour,
  tonedColour,
  word,
  type Rgb,
  type Theme,
} from "../model/colour";
import type { FRAME_CLASSES } from "../model/frames";
import { forms, visible } from "../model/names";
import type { Palette } from "./paint";

export interface Inks {
  readonly theme: Theme;
  readonly background: Rgb;
  readonly ground: string;
  readonly lane: string;
  readonly heading: string;
  readonly rule: string;
  readonly grid: string;
  readonly text: string;
  readonly quiet: string;
  readonly onCall: string;
  readonly onCallQuiet: string;
  readonly onStrong: string;
  readonly accent: string;
  readonly accentSoft: string;
  /** What the program said. */
  readonly note: string;
  /** Lines of values. */
  readonly plot: string;
  readonly gapGround: string;
  /** Patterns over gaps: of what was overwritten or switched off, and of what was lost. */
  readonly gapLine: string;
  readonly lost: string;
  /** Where functions were left out. */
  readonly leftOut: string;
  readonly leftOutGround: string;
  readonly leftOutText: string;
  readonly end: string;
  /** Over calls while their thread was blocked. */
  readonly wash: string;
  readonly washLine: string;
  /** Of STRIP_DEPTHS: on a CPU, runnable, blocked, not known. Told apart by height too. */
  readonly states: readonly Rgb[];
  /** Threads of other processes. */
  readonly foreign: Rgb;
  /** Within the target, over it, over twice of it, not known. */
  readonly frames: Readonly<Record<(typeof FRAME_CLASSES)[number], Rgb>>;
}

export const LIGHT: Inks = {
  theme: "light",
  background: { r: 255, g: 255, b: 255 },
  ground: "#ffffff",
  lane: "#f6f7f9",
  heading: "#e9edf2",
  rule: "#dde2e8",
  grid: "#e6e9ee",
  text: "#1b2027",
  quiet: "#5a6472",
  onCall: "#14181d",
  onCallQuiet: "rgb(20 24 29 / 0.72)",
  onStrong: "#0b0e12",
  accent: "#0b57d0",
  accentSoft: "rgb(11 87 208 / 0.10)",
  note: "#8a2da8",
  plot: "#1c6f8c",
  gapGround: "#eef0f3",
  gapLine: "#c3cad3",
  lost: "#e2a58f",
  leftOut: "#e2b27e",
  leftOutGround: "#fff3e6",
  leftOutText: "#9a4600",
  end: "#ffffff",
  wash: "rgb(246 247 249 / 0.62)",
  washLine: "rgb(96 133 201 / 0.28)",
  states: [
    { r: 0, g: 135, b: 99 },
    { r: 224, g: 139, b: 0 },
    { r: 96, g: 133, b: 201 },
    { r: 190, g: 196, b: 204 },
  ],
  foreign: { r: 205, g: 210, b: 217 },
  frames: {
    within: { r: 157, g: 205, b: 222 },
    over: { r: 246, g: 198, b: 103 },
    far: { r: 238, g: 128, b: 118 },
    unknown: { r: 205, g: 210, b: 217 },
  },
};

export const DARK: Inks = {
  theme: "dark",
  background: { r: 20, g: 23, b: 28 },
  ground: "#14171c",
  lane: "#191d23",
  heading: "#232932",
  rule: "#2c333d",
  grid: "#252b34",
  text: "#e6eaf0",
  quiet: "#9aa5b3",
  onCall: "#f4f6f9",
  onCallQuiet: "rgb(244 246 249 / 0.76)",
  onStrong: "#0b0e12",
  accent: "#8ab4f8",
  accentSoft: "rgb(138 180 248 / 0.14)",
  note: "#e0a3f5",
  plot: "#6cc4de",
  gapGround: "#1d2229",
  gapLine: "#424b58",
  lost: "#8a4a3a",
  leftOut: "#7a5730",
  leftOutGround: "#35250f",
  leftOutText: "#ffb870",
  end: "#14171c",
  wash: "rgb(25 29 35 / 0.62)",
  washLine: "rgb(104 148 222 / 0.3)",
  states: [
    { r: 32, g: 178, b: 132 },
    { r: 240, g: 166, b: 30 },
    { r: 104, g: 148, b: 222 },
    { r: 84, g: 92, b: 104 },
  ],
  foreign: { r: 62, g: 69, b: 79 },
  frames: {
    within: { r: 34, g: 86, b: 110 },
    over: { r: 138, g: 92, b: 0 },
    far: { r: 164, g: 50, b: 50 },
    unknown: { r: 62, g: 69, b: 79 },
  },
};

/** The line at the end of a slice of this colour. */
export const edgeOf = (colour: Rgb, theme: Theme): Rgb =>
  theme === "dark" ? mix(colour, { r: 0, g: 0, b: 0 }, 0.5) : mix(colour, { r: 60, g: 70, b: 85 }, 0.62);

const SUSPENDED = "[suspended]";

/** What a function's calls look like, and its name in ever shorter forms. Made once for a trace and theme. */
export class Looks {
  readonly full: Palette;
  /** For all other functions while one is highlighted. */
  readonly dimmed: Palette;
  /** For the highlighted one. */
  readonly strong: Palette;
  readonly css: string[];

  constructor(
    private readonly names: readonly string[],
    readonly inks: Inks,
    /** Those that are not told apart by colour. */
    plain?: readonly boolean[],
    /** 0xrrggbb: those that have one of their own. */
    own?: readonly (number | undefined)[],
  ) {
    const n = names.length;
    // What has no name yet looks like what is not told apart.
    const [fill, edge, strongFill, dimFill, dimEdge] = Array.from({ length: 5 }, () =>
      new Uint32Array(n).fill(word(inks.foreign)),
    ) as [Uint32Array, Uint32Array, Uint32Array, Uint32Array, Uint32Array];
    this.css = new Array<string>(n);
    const dark = inks.theme === "dark";
    names.forEach((name, i) => {
      // By the plain name: overloads and instances of a template are kin.
      const given = own?.[i];
      const usual =
        given !== undefined
          ? tonedColour(given, inks.theme)
          : plain?.[i]
            ? inks.foreign
            : functionColour(forms(name)[0]!, inks.theme);
      // In a fiber's lane this is the time in which the fiber did not run.
      const colour = name === SUSPENDED ? mix(inks.foreign, inks.background, 0.3) : usual;
      const grey = (colour.r * 3 + colour.g * 6 + colour.b) / 10;
      const dim = mix(mix(colour, { r: grey, g: grey, b: grey }, 0.25), inks.background, 0.4);
      strongFill[i] = word(strongColour(forms(name)[0]!));
      fill[i] = word(colour);
      edge[i] = word(edgeOf(colour, inks.theme));
      dimFill[i] = word(dim);
      dimEdge[i] = word(mix(dim, inks.background, 0.6));
      this.css[i] = css(colour);
    });
    const background = word(inks.background);
    // On a dark ground little light is lost to the eye: single short calls start stronger there.
    const faint = dark ? 0.55 : 0.35;
    this.full = { fill, edge, background, faint };
    this.strong = { fill: strongFill, edge, background, faint };
    this.dimmed = { fill: dimFill, edge: dimEdge, background, faint };
  }

  private readonly shown: (readonly string[] | undefined)[] = [];
  /** The forms of a function's name, fit to be shown. */
  forms(func: number): readonly string[] {
    return (this.shown[func] ??= forms(this.names[func] ?? "?").map(visible));
  }
}

/** Palette of one depth of a thread's strip, whatever state a slice is of. */
export function statePalette(inks: Inks, depth: number): Palette {
  const colour = word(inks.states[depth] ?? inks.states[3]!);
  const fill = new Uint32Array(8).fill(colour);
  return { fill, edge: fill, background: word(inks.background) };
}

/** For tests: the least contrast of a label on its call. */
export function labelContrast(name: string, inks: Inks): number {
  const text = inks.theme === "light" ? { r: 20, g: 24, b: 29 } : { r: 244, g: 246, b: 249 };
  return contrast(functionColour(name, inks.theme), text);
}
