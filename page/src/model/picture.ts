// SPDX-License-Identifier: MIT
// Pictures of frames: BC1 (DXT1 of Direct3D), of which each block of two words is 4 times 4 pixels. The lower half of the
// first word is one colour, the upper half another; the second word has 2 bits for each pixel.
import type { FramePicture } from "../backend/types/frames";

/** 5, 6 and 5 bits: red, green, blue. */
function colourOf(packed: number): [number, number, number] {
  const [r, g, b] = [packed >>> 11, (packed >>> 5) & 63, packed & 31];
  return [(r << 3) | (r >>> 2), (g << 2) | (g >>> 4), (b << 3) | (b >>> 2)];
}

/** Four bytes a pixel: red, green, blue, and 255. */
export function pixelsOf({ width, height, words }: FramePicture): Uint8ClampedArray<ArrayBuffer> {
  const pixels = new Uint8ClampedArray(width * height * 4).fill(255);
  const inLine = width / 4;
  for (let block = 0; block * 2 < words.length; ++block) {
    const [ends, indices] = [words[block * 2]!, words[block * 2 + 1]!];
    const [first, second] = [ends & 0xffff, ends >>> 16];
    const [a, b] = [colourOf(first), colourOf(second)];
    const mixed = (ofA: number, ofB: number) => a.map((v, c) => Math.floor((v * ofA + b[c]! * ofB) / (ofA + ofB)));
    // The other order of the two says: one colour between, and black.
    const colours = first > second ? [a, b, mixed(2, 1), mixed(1, 2)] : [a, b, mixed(1, 1), [0, 0, 0]];
    for (let i = 0; i < 16; ++i) {
      const x = (block % inLine) * 4 + (i % 4);
      const y = Math.floor(block / inLine) * 4 + (i >> 2);
      pixels.set(colours[(indices >>> (2 * i)) & 3]!, (y * width + x) * 4);
    }
  }
  return pixels;
}
