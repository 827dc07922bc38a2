// All accounts of a JVM: who holds what, over time, and what is wrong.

import { areas, bar, COLOURS, seriesClass } from "./chart.js";
import { accountLink, amount, count, el, exactBytes, figures, note, plainTable, refill, section, stateBadge } from "./dom.js";
import { findings, findingsList } from "./findings.js";
import { bytesText, durationText, percentText, rateText, timeText } from "./format.js";
import { DataTable } from "./table.js";
import { total } from "./record.js";

const HOUR_MS = 3_600_000;

function whole(account) {
  return account.tree ?? account;
}

/** The columns of a table of accounts. */
export function accountColumns(context) {
  return [
    { title: "Account", help: "Whose bytes", width: "16em", text: (row) => row.name, cell: (row) => accountLink(row.name) },
    { title: "State", help: "Against its limit", width: "7em", text: (row) => row.state, cell: stateBadge },
    { title: "Live", help: "What survived the latest collection, without scopes inside it, and one standard error", width: "12em",
      number: (row) => row.live_bytes, cell: (row) => amount(row.live_bytes, row.live_standard_error_bytes) },
    { title: "Of limit", help: "Live bytes, with the scopes inside it, of the limit", width: "9em",
      number: (row) => (row.limit_bytes ? whole(row).live_bytes / row.limit_bytes : -1),
      cell: (row) => (row.limit_bytes
        ? [percentText(whole(row).live_bytes / row.limit_bytes), bar(whole(row).live_bytes / row.limit_bytes)] : "–") },
    { title: "Limit", help: "What it may hold", width: "8em", number: (row) => row.limit_bytes ?? -1,
      cell: (row) => (row.limit_bytes ? exactBytes(row.limit_bytes) : "none") },
    { title: "Allocates", help: "Over the last moment", width: "9em", number: (row) => context.recording.rate(row.name) ?? -1,
      cell: (row) => {
        const rate = context.recording.rate(row.name);
        return rate === null ? "–" : rateText(rate);
      } },
    { title: "Refused", help: "Errors thrown, or that would have been thrown, and work turned away at the door", width: "8em",
      number: refused, cell: (row) => count(refused(row)) },
    { title: "Kind", help: "What it stands for", width: "7em", text: (row) => row.kind, cell: (row) => row.kind },
  ];
}

function refused(account) {
  return account.refusals_total + account.would_refuse_total + account.admission_refusals_total;
}

function stacked(recording, span, width) {
  const now = recording.points.at(-1)?.at ?? 0;
  const points = span === "hour" ? recording.all().filter((one) => now - one.at <= HOUR_MS) : recording.points;
  const last = points.at(-1)?.accounts ?? new Map();
  const names = [...last.values()].sort((a, b) => b.live_bytes - a.live_bytes).map((one) => one.name);
  const own = names.slice(0, COLOURS);
  const of = (one, name) => one.accounts.get(name)?.live_bytes ?? 0;
  const series = own.map((name) => ({ name, colour: recording.colour(name, COLOURS), values: points.map((one) => of(one, name)) }));
  const rest = points.map((one) => {
    let sum = 0;
    for (const [name, account] of one.accounts) {
      sum += own.includes(name) ? 0 : account.live_bytes;
    }
    return sum;
  });
  if (rest.some((bytes) => bytes > 0)) {
    series.push({ name: null, values: rest, colour: COLOURS });
  }
  const drawn = areas("Live bytes by account", points.map((one) => one.at), series, points.map((one) => one.heapBytes), width);
  const legend = el("ul", { class: "legend" },
    series.map((one, at) => el("li", {}, el("span", { class: `swatch ${seriesClass(one.colour ?? at)}`, "aria-hidden": "true" }),
      one.name === null ? "other accounts" : accountLink(one.name))),
    el("li", {}, el("span", { class: "swatch line", "aria-hidden": "true" }), "heap in use after a collection"));
  return [drawn, legend];
}

function costs(accounts, recording) {
  const { cpu_milliseconds: cpu, memory_bytes: memory } = accounts.costs ?? {};
  const parts = [...new Set([...Object.keys(cpu ?? {}), ...Object.keys(memory ?? {})])];
  const processors = recording.processors();
  return section("What Heapwarden costs",
    figures([
      ["Memory outside the heap", memory ? exactBytes(total(memory)) : "not in this document"],
      ["Processor", processors === null ? "–" : `${percentText(processors)} of one, just now`],
      ["A sample takes", `${accounts.sampling.callback_p50_ns} ns, at most ${accounts.sampling.callback_p99_ns} ns in 99 of 100`],
      ["Samples", count(accounts.sampling.samples)],
      ["Interval", accounts.sampling.interval_bytes === 0 ? "every allocation" : exactBytes(accounts.sampling.interval_bytes)],
    ]),
    parts.length === 0 ? null : el("details", {}, el("summary", {}, "By part"),
      plainTable("Costs by part", ["Part", "Processor time", "Memory"], parts.map((part) => [
        part,
        cpu?.[part] === undefined ? "–" : durationText(cpu[part] / 1000),
        memory?.[part] === undefined ? "–" : exactBytes(memory[part]),
      ]))));
}

function refusals(recording) {
  const events = recording.events();
  if (events.length === 0) {
    return note("Nobody, in the last hour and since the page was opened. Totals are in the table of accounts.");
  }
  return plainTable("Who was refused when", ["Account", "When", "What", "How often"], events.map((one) => [
    accountLink(one.account),
    `${timeText(one.from)} – ${timeText(one.to)}`,
    one.what,
    count(one.count),
  ]));
}

/** The view. */
export function overviewView(context) {
  const table = new DataTable({
    label: "Accounts", columns: accountColumns(context), key: (row) => row.name, search: (row) => `${row.name} ${row.kind} ${row.state}`,
    sorted: 2,
  });
  const span = el("select", { id: "span", onchange: () => draw() },
    el("option", { value: "hour" }, "the last hour"), el("option", { value: "opened" }, "since the page was opened"));
  const heap = el("div");
  const chart = el("div", { class: "chart-room" });
  const wrong = el("div");
  const refusedRoom = el("div");
  const cost = el("div");
  const draw = () => refill(chart, stacked(context.recording, span.value, chart.clientWidth));
  return {
    title: "Overview",
    needs: ["accounts", "leaks"],
    node: el("div", {},
      heap,
      section("Over time", el("label", { for: "span" }, "Show "), span, chart),
      section("What is wrong", wrong),
      section("Accounts", table.node),
      section("Who was refused when", refusedRoom),
      cost),
    update({ accounts, leaks }) {
      const { heap: of, policy } = accounts;
      refill(heap, figures([
        ["Heap in use after the latest collection", exactBytes(of.used_after_gc_bytes)],
        ["Maximum heap", exactBytes(of.max_bytes)],
        ["Accounts", count(accounts.accounts.length)],
        ["Policy", `${policy.mode}, generation ${policy.generation}`],
      ]));
      draw();
      refill(wrong, findingsList(findings(accounts, leaks)));
      const sum = accounts.accounts.reduce((all, one) => all + one.live_bytes, 0);
      const foot = ["All", "", el("data", { value: sum }, bytesText(sum)), "", "", "", "", ""];
      table.show(accounts.accounts, foot);
      refill(refusedRoom, refusals(context.recording));
      refill(cost, costs(accounts, context.recording));
    },
    resized: draw,
  };
}
