// SPDX-License-Identifier: MIT
// What a frame showed, as the program gave it.
import { useEffect, useRef } from "preact/hooks";
import type { FramePicture } from "../backend/types/frames";
import { pixelsOf } from "../model/picture";

export function Picture({ of, testid }: { of: FramePicture; testid: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    canvas.current?.getContext("2d")?.putImageData(new ImageData(pixelsOf(of), of.width, of.height), 0, 0);
  }, [of]);
  return (
    <canvas
      ref={canvas}
      class="frame-picture"
      width={of.width}
      height={of.height}
      role="img"
      aria-label="What the frame showed"
      data-testid={testid}
    />
  );
}
