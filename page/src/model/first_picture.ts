// SPDX-License-Identifier: MIT
// The timeline's first picture comes before everything else that the page asks for: a table of a hundred million calls
// would keep all processors from the tiles.
let done: () => void = () => {};
let drawn = false;
const picture = new Promise<void>((resolve) => (done = resolve));

/** Called by the timeline when it has drawn all that is in view. */
export function firstPictureDrawn(): void {
  drawn = true;
  done();
}

/** Resolves when that happened; at once, without waiting, is `undefined`. */
export function firstPicture(): Promise<void> | undefined {
  return drawn ? undefined : picture;
}
