// SPDX-License-Identifier: MIT
// The panels of the lower half, in the order of their keys. panels/dock.tsx has them, but for those that a kind of track
// brings (`ofTrack`, timeline/kinds.ts).
export const TABS = [
  { id: "call", label: "Call" },
  { id: "functions", label: "Functions" },
  { id: "flame", label: "Flame graph" },
  { id: "range", label: "Range" },
  { id: "compare", label: "Compare" },
  { id: "outliers", label: "Outliers" },
  { id: "requests", label: "Requests", ofTrack: true },
  { id: "notes", label: "Notes" },
  { id: "frames", label: "Frames", ofTrack: true },
  { id: "check", label: "Findings" },
  { id: "query", label: "Query" },
] as const;

export type Tab = (typeof TABS)[number]["id"];
export type OwnTab = Exclude<(typeof TABS)[number], { readonly ofTrack: true }>["id"];
