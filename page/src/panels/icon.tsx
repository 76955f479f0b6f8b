// SPDX-License-Identifier: MIT
// The page's icons: strokes in a 16-pixel box, in the colour of the text around them.
const PATHS = {
  right: "M6 4l4 4-4 4",
  down: "M4 6l4 4 4-4",
  up: "M4 10l4-4 4 4",
  left: "M10 4L6 8l4 4",
  pin: "M6 2.5h4M6.5 2.5v4L4.5 9h7l-2-2.5v-4M8 9v4.5",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 10a2 2 0 100-4 2 2 0 000 4z",
  "eye-off": "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM3 13L13 3",
  search: "M7 11.5a4.5 4.5 0 100-9 4.5 4.5 0 000 9zM10.3 10.3l3.2 3.2",
  fit: "M2.5 5.5v-3h3M10.5 2.5h3v3M13.5 10.5v3h-3M5.5 13.5h-3v-3",
  all: "M2 3v10M14 3v10M4.5 8h7M6.5 6l-2 2 2 2M9.5 6l2 2-2 2",
  measure: "M2 5.5h12v5H2zM4.5 5.5v2.5M7 5.5v1.8M9.5 5.5v2.5M12 5.5v1.8",
  save: "M8 2.5v7M5 7l3 3 3-3M3 13h10",
  image: "M2.5 3.5h11v9h-11zM2.5 10.5l3-3 2.5 2.5 2-2 3.5 3.5M10.5 6.2h.01",
  theme: "M8 2.5a5.5 5.5 0 100 11zM8 2.5a5.5 5.5 0 010 11",
  help: "M6 6.2a2 2 0 114 0c0 1.3-2 1.6-2 3M8 11.8h.01M8 14.5a6.5 6.5 0 100-13 6.5 6.5 0 000 13z",
  close: "M4 4l8 8M12 4l-8 8",
  warning: "M8 2.5l6 11H2zM8 6.5v3.5M8 12h.01",
  flip: "M5 3v10M2.5 5.5L5 3l2.5 2.5M11 13V3M8.5 10.5L11 13l2.5-2.5",
  kept: "M4 2.5h8v11l-4-3.2-4 3.2z",
  gap: "M2.5 3.5h11v9h-11zM2.5 9L8 3.5M4.5 12.5l9-9M10 12.5l3.5-3.5",
  compare: "M2.5 3.5h4.5v9H2.5zM9 3.5h4.5v9H9z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="ico" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
