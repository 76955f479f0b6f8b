// SPDX-License-Identifier: MIT
// Binary answers to typed arrays. Checks all counts against the bytes that are there; runs in a
// worker and, for exported pages, in the page itself.
import { MINIMAP_MAGIC, PROTOCOL_VERSION, TILES_MAGIC } from "./protocol";
import { BackendError } from "./types/backend";
import type { Levels, Row } from "./types/tiles";

const damaged = (what: string) => new BackendError(`The server's answer is damaged (${what}). Reload the page.`);

/** Hands out columns one after another, each padded to 8 bytes. */
class Cursor {
  constructor(
    readonly buffer: ArrayBuffer,
    private at: number,
  ) {}
  take<T>(make: new (buffer: ArrayBuffer, offset: number, length: number) => T, bytes: number, length: number): T {
    if (this.at + bytes * length > this.buffer.byteLength) throw damaged("too short");
    const column = new make(this.buffer, this.at, length);
    this.at += Math.ceil((bytes * length) / 8) * 8;
    return column;
  }
}

function header(buffer: ArrayBuffer, size: number, magic: number): DataView {
  if (buffer.byteLength < size) throw damaged("too short");
  const view = new DataView(buffer);
  if (view.getUint32(0, true) !== magic) throw damaged("not what was asked for");
  if (view.getUint32(4, true) !== PROTOCOL_VERSION) throw damaged("another version");
  return view;
}

export interface RawTiles {
  rows: { track: number; row: Row }[];
}

/** Rows with views into the answer's own bytes. */
export function decodeTiles(buffer: ArrayBuffer): RawTiles {
  const view = header(buffer, 32, TILES_MAGIC);
  const rows = view.getUint32(8, true);
  const slices = view.getUint32(12, true);
  if (32 + rows * 16 + slices * 30 > buffer.byteLength) throw damaged("too short");
  const cursor = new Cursor(buffer, 32 + rows * 16);
  const begin = cursor.take(Float64Array, 8, slices);
  const duration = cursor.take(Float64Array, 8, slices);
  const func = cursor.take(Uint32Array, 4, slices);
  const index = cursor.take(Uint32Array, 4, slices);
  const count = cursor.take(Uint32Array, 4, slices);
  const flags = cursor.take(Uint8Array, 1, slices);
  const density = cursor.take(Uint8Array, 1, slices);
  const result: RawTiles = { rows: [] };
  for (let i = 0; i < rows; ++i) {
    const at = 32 + i * 16;
    const first = view.getUint32(at + 8, true);
    const end = first + view.getUint32(at + 12, true);
    if (end > slices) throw damaged("a row beyond its columns");
    result.rows.push({
      track: view.getUint32(at, true),
      row: {
        depth: view.getUint32(at + 4, true),
        begin: begin.subarray(first, end),
        duration: duration.subarray(first, end),
        func: func.subarray(first, end),
        index: index.subarray(first, end),
        count: count.subarray(first, end),
        flags: flags.subarray(first, end),
        density: density.subarray(first, end),
      },
    });
  }
  return result;
}

/** By track, the levels asked for; every track has an entry. */
export function byTrack(raw: RawTiles, levels: readonly Levels[]): Map<number, Row[]> {
  const map = new Map<number, Row[]>(levels.map(({ track }) => [track, []]));
  const asked = new Map(levels.map((of) => [of.track, of]));
  for (const { track, row } of raw.rows) {
    const of = asked.get(track);
    if (of && row.depth >= of.from && row.depth <= of.to) map.get(track)!.push(row);
  }
  return map;
}

export function decodeMinimap(buffer: ArrayBuffer): Uint8Array[] {
  const view = header(buffer, 16, MINIMAP_MAGIC);
  const threads = view.getUint32(8, true);
  const width = view.getUint32(12, true);
  // A line of nothing takes no room in the answer, but some in the page.
  if (16 + threads * Math.max(width, 1) > buffer.byteLength) throw damaged("too short");
  return Array.from({ length: threads }, (_, i) => new Uint8Array(buffer, 16 + i * width, width));
}

/** Bytes of base64 text, gunzipped when asked to. */
export async function unpack(text: string, gzip: boolean): Promise<ArrayBuffer> {
  try {
    return await unpackSound(text, gzip);
  } catch {
    throw damaged("packed data");
  }
}

async function unpackSound(text: string, gzip: boolean): Promise<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  if (!gzip) return bytes.buffer;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).arrayBuffer();
}
