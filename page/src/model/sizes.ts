// SPDX-License-Identifier: MIT
// Amounts of memory for people, as karst's commands write them.
const UNITS = ["KiB", "MiB", "GiB", "TiB"];

export function size(bytes: number): string {
  if (bytes < 1024) return bytes === 1 ? "1 byte" : `${Math.round(bytes)} bytes`;
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit + 1 < UNITS.length) {
    value /= 1024;
    ++unit;
  }
  return `${value.toFixed(1)} ${UNITS[unit]}`;
}
