// SPDX-License-Identifier: MIT
// Values that the program says, and what was read of the system: a plot each. Their tracks are the page's own, so they
// have no tiles.
import { PLOTS } from "../backend/late_lists";
import { visible } from "../model/names";
import { count, duration } from "../model/time";
import { drawPlot, plotNumber, withPlots, withUnit, type PlotHit } from "./plots";
import { lateTracks, type TrackRenderer } from "./track_renderer";

export function PlotTip({ plot, time, now, several }: PlotHit) {
  return (
    <>
      <div class="tip-name">{visible(plot.name)}</div>
      <div class="tip-facts">
        {now === undefined ? (
          <>not said yet at {duration(time)}</>
        ) : several ? (
          <>
            <b>
              {plotNumber(several.min)} to {withUnit(several.max, plot)}
            </b>{" "}
            at {duration(time)}: {count(several.count)} values, the last {withUnit(now, plot)}
          </>
        ) : (
          <>
            <b>{withUnit(now, plot)}</b> at {duration(time)}
          </>
        )}
      </div>
    </>
  );
}

const plotTracks = (kind: "value" | "usage", section: NonNullable<TrackRenderer["section"]>): TrackRenderer => ({
  kind,
  section,
  late: lateTracks(PLOTS, (info, plots) => withPlots(info, plots, kind)),
  tiles: false,

  draw({ r, scene, state }, place, info) {
    drawPlot(r, scene, state, place, info.owner);
  },

  lanesAt: () => [],
});

export const valueTracks = plotTracks("value", {
  title: "Values",
  key: "values",
  letter: "v",
  words: (n) => (n === 1 ? "1" : `${n}: of the program`),
});

export const usageTracks = plotTracks("usage", {
  title: "Usage",
  key: "usage",
  letter: "u",
  words: (n) => (n === 1 ? "1" : `${n}: of the machine and the program`),
});
