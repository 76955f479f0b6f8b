// SPDX-License-Identifier: MIT
// Lengths of time for people, and the ruler's steps. All times in the page are nanoseconds since the
// trace's first event, as numbers: exact for 104 days.

const UNITS: readonly [number, string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

/** Thin space between number and unit, so that they never part. */
const GAP = "\u202f";

/** A length with four significant digits: `1.234 ms`, `17 ns`, `12.35 s`, `2 min 03.5 s`. */
export function duration(ns: number): string {
  if (!Number.isFinite(ns)) return "–";
  if (ns < 0) return `−${duration(-ns)}`;
  if (ns >= 60e9) {
    const minutes = Math.floor(ns / 60e9);
    const rest = (ns - minutes * 60e9) / 1e9;
    return `${minutes}${GAP}min ${rest.toFixed(1).padStart(4, "0")}${GAP}s`;
  }
  for (const [size, name] of UNITS) {
    if (ns >= size) {
      const value = ns / size;
      if (size === 1) return `${Number.isInteger(ns) ? ns : value.toFixed(1)}${GAP}${name}`;
      // 999.96 would print as 1000.0: let the next unit have it.
      const digits = value >= 100 ? 1 : value >= 10 ? 2 : 3;
      if (value >= 999.95) return duration(Math.round(value) * size);
      return `${value.toFixed(digits)}${GAP}${name}`;
    }
  }
  return `${ns === 0 ? "0" : ns.toFixed(2)}${GAP}ns`;
}

/** All digits of a length: `1,234,567 ns`. */
export function exact(ns: number): string {
  return `${count(Math.round(ns))}${GAP}ns`;
}

/** A whole number with thousands separated. */
export function count(n: number): string {
  return Math.round(n)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A share as percentage: `12.3%`, `<0.1%`. */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return "–";
  if (share > 0 && share < 0.0005) return "<0.1%";
  return `${(share * 100).toFixed(share >= 0.9995 ? 0 : 1)}%`;
}

/** The ruler's step: 1, 2 or 5 times a power of ten nanoseconds (never under 1 ns), at least `atLeast` ns. */
export function step(atLeast: number): number {
  if (!(atLeast > 1)) return 1;
  const power = 10 ** Math.floor(Math.log10(atLeast) + 1e-9);
  for (const factor of [1, 2, 5]) if (factor * power >= atLeast * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

/**
 * A moment on a ruler of the given step: just enough digits to tell neighbours apart. The unit is the largest that `upTo`,
 * the ruler's end, has at least one of, so that all its moments have the same.
 */
export function moment(ns: number, stepNs: number, upTo = ns): string {
  if (ns === 0) return "0";
  if (ns < 0) return `−${moment(-ns, stepNs, upTo)}`;
  const [size, name] = UNITS.find(([unit]) => Math.max(ns, upTo) >= unit) ?? UNITS[3]!;
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(size / stepNs) - 1e-9)));
  const [whole, fraction] = (ns / size).toFixed(digits).split(".") as [string, string?];
  return `${count(Number(whole))}${fraction ? `.${fraction}` : ""}${GAP}${name}`;
}

/** Reads `1.5ms`, `200us`, `17 ns`, `2s`, `1234` (ns). Undefined when it is none of these. */
export function parseTime(text: string): number | undefined {
  const match = /^\s*([\d,]*\.?\d+)\s*(ns|us|µs|ms|s)?\s*$/.exec(text);
  if (!match) return undefined;
  const value = Number(match[1]!.replace(/,/g, ""));
  const unit = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 }[match[2] ?? "ns"] ?? 1;
  return Number.isFinite(value) ? value * unit : undefined;
}
