// Areas over time, stacked. The figures of a chart are also in a table near it.

import { el, svg } from "./dom.js";
import { bytesText, timeText } from "./format.js";

const HEIGHT = 220;
const LEFT = 66;
const BOTTOM = 22;
const TOP = 8;
/** How many series have a colour of their own. */
export const COLOURS = 8;

/** The class that colours the series in this place. */
export function seriesClass(at) {
  return at < COLOURS ? `series-${at}` : "series-rest";
}

/**
 * Draws `series` (`{values}`, lowest first, a value for each of `times`) with a line on top of it, if there is
 * one, over `times` in milliseconds.
 */
export function areas(label, times, series, line, width) {
  if (times.length < 2) {
    return el("p", { class: "note chart-empty" }, "A chart needs two readings of a running JVM.");
  }
  const wide = Math.max(260, width);
  const sums = times.map((_, at) => series.reduce((sum, one) => sum + one.values[at], 0));
  const top = Math.max(1, ...sums, ...(line ?? []));
  const [begin, end] = [times[0], times.at(-1)];
  const x = (time) => LEFT + ((time - begin) / Math.max(1, end - begin)) * (wide - LEFT - 8);
  const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - TOP);
  const drawn = svg("svg", {
    class: "chart", viewBox: `0 0 ${wide} ${HEIGHT}`, width: wide, height: HEIGHT, role: "img",
    "aria-label": `${label}, from ${timeText(begin)} to ${timeText(end)}, now ${bytesText(sums.at(-1))}`,
  });
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const at = y(top * part);
    drawn.append(svg("line", { class: "grid", x1: LEFT, x2: wide - 8, y1: at, y2: at }));
    drawn.append(svg("text", { class: "axis", x: LEFT - 6, y: at + 4, "text-anchor": "end" }, bytesText(Math.round(top * part))));
  }
  let below = times.map(() => 0);
  for (const [at, one] of series.entries()) {
    const above = below.map((base, index) => base + one.values[index]);
    const upper = times.map((time, index) => `${x(time).toFixed(1)},${y(above[index]).toFixed(1)}`);
    const lower = times.map((time, index) => `${x(time).toFixed(1)},${y(below[index]).toFixed(1)}`).reverse();
    drawn.append(svg("polygon", { class: `area ${seriesClass(one.colour ?? at)}`, points: [...upper, ...lower].join(" ") }));
    below = above;
  }
  if (line) {
    const points = times.map((time, index) => `${x(time).toFixed(1)},${y(line[index]).toFixed(1)}`);
    drawn.append(svg("polyline", { class: "total", points: points.join(" ") }));
  }
  drawn.append(svg("text", { class: "axis", x: LEFT, y: HEIGHT - 4 }, timeText(begin)));
  drawn.append(svg("text", { class: "axis", x: wide - 8, y: HEIGHT - 4, "text-anchor": "end" }, timeText(end)));
  return drawn;
}

/** A bar for a share of a whole, 0 to 1, beside a figure that says it. */
export function bar(share, className = "bar") {
  const made = el("span", { class: className, "aria-hidden": "true" });
  made.style.width = `${(Math.min(1, Math.max(0, share)) * 100).toFixed(2)}%`;
  return el("span", { class: "bar-room" }, made);
}
