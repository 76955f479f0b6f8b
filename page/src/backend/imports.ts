// SPDX-License-Identifier: MIT
// What the engine asks of the page: to decompress, to match names by regular expressions, and to end.
import { Decompress } from "fzstd";
import { RE2JS } from "re2js";

interface Memory {
  readonly buffer: ArrayBuffer;
}

const FAILED = 0xffffffff; // no size of anything

/** WebAssembly's numbers come with a sign: an address in the upper half of 4 GiB is negative. */
export const address = (pointer: number): number => pointer >>> 0;

/** `memory` is the module's, there once it was made. */
export function engineImports(memory: () => Memory): WebAssembly.Imports {
  const bytes = (at: number, size: number) => new Uint8Array(memory().buffer, address(at), address(size));
  const text = (at: number, size: number) => new TextDecoder().decode(bytes(at, size));
  const patterns = new Map<number, RE2JS>();
  let next = 1;
  let complaint = "";
  return {
    karst: {
      decompress(to: number, room: number, from: number, size: number): number {
        let done = 0;
        try {
          const stream = new Decompress((part) => {
            // More than was promised is not kept.
            if (done + part.length > room) throw new RangeError("too long");
            bytes(to + done, part.length).set(part);
            done += part.length;
          });
          stream.push(bytes(from, size).slice(), true);
        } catch {
          return FAILED;
        }
        return done;
      },
      compile(at: number, size: number): number {
        try {
          patterns.set(next, RE2JS.compile(text(at, size)));
          return next++;
        } catch (error) {
          complaint = (error as Error).message;
          return 0;
        }
      },
      complaint(to: number, room: number): number {
        return new TextEncoder().encodeInto(complaint, bytes(to, room)).written;
      },
      matches: (pattern: number, at: number, size: number): number =>
        patterns.get(pattern)?.matcher(text(at, size)).find() ? 1 : 0,
      forget: (pattern: number): void => void patterns.delete(pattern),
    },
    // There is no system: no variables, and nothing to write to.
    wasi_snapshot_preview1: {
      environ_sizes_get(count: number, size: number): number {
        const view = new DataView(memory().buffer);
        view.setUint32(count, 0, true);
        view.setUint32(size, 0, true);
        return 0;
      },
      environ_get: () => 0,
      fd_close: () => EBADF,
      fd_seek: () => EBADF,
      fd_write: () => EBADF,
      proc_exit(): never {
        throw new WebAssembly.RuntimeError("the engine ended");
      },
    },
  };
}

const EBADF = 8;
