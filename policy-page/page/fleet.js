// A fleet, or one JVM of it, as Prometheus has recorded it.

import { areas, bar, COLOURS, seriesClass } from "./chart.js";
import { amount, count, el, exactBytes, figures, nameNode, note, refill, section } from "./dom.js";
import { bytesText, countText, dateText, durationText, percentText } from "./format.js";
import { DataTable } from "./table.js";

/** Whether a source is a fleet in Prometheus, or a JVM of it. */
export function isRecorded(source) {
  return source.kind === "fleet" || source.kind === "recorded";
}

const ACCOUNT_COLUMNS = [
  { title: "Account", help: "Whose bytes", width: "16em", text: (row) => row.name, cell: (row) => nameNode(row.name) },
  { title: "Live", help: "The highest of the latest step, over all JVMs, with the scopes inside it; and one standard error", width: "12em",
    number: (row) => row.live_bytes, cell: (row) => amount(row.live_bytes, Math.ceil(row.standard_error_bytes)) },
  { title: "Of limit", help: "Live bytes of the limits of all JVMs together", width: "9em",
    number: (row) => (row.limit_bytes ? row.live_bytes / row.limit_bytes : -1),
    cell: (row) => (row.limit_bytes ? [percentText(row.live_bytes / row.limit_bytes), bar(row.live_bytes / row.limit_bytes)] : "–") },
  { title: "JVMs", help: "In how many JVMs it is", width: "6em", number: (row) => row.jvms, cell: (row) => count(row.jvms) },
  { title: "Over", help: "In how many of them it holds more than its limit", width: "6em", number: (row) => row.over, cell: (row) => count(row.over) },
  { title: "Refused", help: "Errors thrown in the period, and those that would have been", width: "8em",
    number: (row) => row.refusals + row.would_refuse, cell: (row) => count(Math.round(row.refusals + row.would_refuse)) },
  { title: "Kind", help: "What it stands for", width: "7em", text: (row) => row.kind, cell: (row) => row.kind },
];

function jvmAddress(id) {
  return `#/overview?source=${encodeURIComponent(id)}`;
}

const JVM_COLUMNS = [
  { title: "JVM", help: "By the labels that tell JVMs apart", width: "20em", text: (row) => row.name,
    cell: (row) => el("a", { href: jvmAddress(row.id) }, nameNode(row.name)) },
  { title: "Heap", help: "In use after a collection, of the maximum", width: "10em",
    number: (row) => share(row) ?? -1, cell: (row) => (share(row) === null ? "–" : [percentText(share(row)), bar(share(row))]) },
  { title: "In use", help: "After a collection, the highest of the latest step", width: "9em",
    number: (row) => row.heap_used_after_gc_bytes ?? -1, cell: (row) => bytesOrNone(row.heap_used_after_gc_bytes) },
  { title: "Maximum", help: "The largest heap it may have", width: "9em", number: (row) => row.heap_max_bytes ?? -1, cell: (row) => bytesOrNone(row.heap_max_bytes) },
  { title: "Accounts", help: "How many were read", width: "7em", number: (row) => row.accounts, cell: (row) => count(row.accounts) },
  { title: "Over", help: "Accounts that hold more than their limit", width: "6em", number: (row) => row.over, cell: (row) => count(row.over) },
];

function share(jvm) {
  return jvm.heap_max_bytes > 0 && jvm.heap_used_after_gc_bytes !== null ? jvm.heap_used_after_gc_bytes / jvm.heap_max_bytes : null;
}

function bytesOrNone(bytes) {
  return bytes === null ? "–" : exactBytes(bytes);
}

function charted(fleet, width) {
  const times = fleet.times.map((seconds) => seconds * 1000);
  const filled = (values) => values.map((value) => value ?? 0);
  const series = fleet.accounts.filter((one) => one.history.length > 0).slice(0, COLOURS)
    .map((one, at) => ({ name: one.name, colour: at, values: filled(one.history) }));
  return [areas("Live bytes of the largest accounts", times, series, filled(fleet.heap_history), width),
    el("ul", { class: "legend" },
      series.map((one) => el("li", {}, el("span", { class: `swatch ${seriesClass(one.colour)}`, "aria-hidden": "true" }), nameNode(one.name))),
      el("li", {}, el("span", { class: "swatch line", "aria-hidden": "true" }), "heaps in use after collections"))];
}

function omissions(fleet) {
  const left = [...fleet.notes];
  if (fleet.jvms_omitted > 0) {
    left.push(`${countText(fleet.jvms_omitted)} JVMs, the least full, are not listed.`);
  }
  if (fleet.accounts_omitted > 0) {
    left.push(`${countText(fleet.accounts_omitted)} accounts, the smallest, are not listed.`);
  }
  return left.map((text) => note(text));
}

/** The overview of a fleet, or of one JVM of it. */
export function fleetView(context) {
  const accounts = new DataTable({ label: "Accounts", columns: ACCOUNT_COLUMNS, key: (row) => row.name,
    search: (row) => `${row.name} ${row.kind}`, sorted: 1 });
  const jvms = new DataTable({ label: "JVMs", columns: JVM_COLUMNS, key: (row) => row.id, search: (row) => row.name, sorted: 1, height: "40vh" });
  const isWhole = context.source.kind === "fleet";
  const heap = el("div");
  const chart = el("div", { class: "chart-room" });
  let latest = null;
  const draw = () => refill(chart, charted(latest, chart.clientWidth));
  return {
    title: isWhole ? "Overview of the fleet" : "Overview of a JVM, as recorded",
    needs: ["fleet"],
    node: el("div", {}, heap, section("Over time", chart), isWhole ? section("JVMs", jvms.node) : null, section("Accounts", accounts.node)),
    update({ fleet }) {
      if (fleet === null) {
        refill(heap, note("Prometheus does not have this JVM any more."));
        return;
      }
      latest = fleet;
      refill(heap,
        note(`By Prometheus at ${fleet.source}, from ${dateText(fleet.from)} to ${dateText(fleet.to)} in steps of ${durationText(fleet.step_seconds)}. A step has its highest reading.`),
        omissions(fleet),
        figures([
          fleet.jvm === null ? ["JVMs", count(fleet.jvms.length + fleet.jvms_omitted)] : ["JVM", nameNode(fleet.jvm.name)],
          ["Heap in use after collections", bytesOrNone(fleet.heap_used_after_gc_bytes)],
          ["Maximum heap", bytesOrNone(fleet.heap_max_bytes)],
          ["Accounts", count(fleet.accounts.length + fleet.accounts_omitted)],
        ]));
      draw();
      jvms.show(fleet.jvms);
      const sum = fleet.accounts.reduce((all, one) => all + one.live_bytes, 0);
      accounts.show(fleet.accounts, ["All that are listed", el("data", { value: sum }, bytesText(sum)), "", "", "", "", ""]);
    },
    resized: () => latest !== null && draw(),
  };
}

/** A view that needs what Prometheus does not have. */
export function elsewhereView(name) {
  return {
    title: "Not in Prometheus",
    needs: [],
    node: el("div", {},
      el("p", {}, `Prometheus records accounts and heaps, and none of what the view “${name}” shows: classes, stacks and snapshots.`),
      el("p", {}, "Ask the JVM itself: ", el("code", {}, "heapwarden ui ADDRESS"), " with the address at which its agent listens.")),
    update() {},
  };
}
