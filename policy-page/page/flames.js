// Where survivors were allocated, or where anything was, as an icicle: by the four sample types; of one reading, or the difference of two snapshots.

import { accountLink, address, amount, classLink, count, el, exactBytes, changeNode, note, refill, section } from "./dom.js";
import { countText, dateText, nameText, percentText } from "./format.js";
import { loaded } from "./history.js";
import { Icicle, placeKey, SAMPLE_TYPES, siteChangeVariance, siteError, sitesOf, stackTree } from "./icicle.js";
import { DataTable } from "./table.js";

function siteName(one) {
  return one.site.frames[0] ?? one.site.through[0] ?? "unknown";
}

const PLACE_COLUMNS = [
  { title: "Place", help: "The first frame of the application", width: "26em", text: siteName, cell: (row) => el("bdi", { class: "name" }, nameText(siteName(row))) },
  { title: "Account", help: "Whose bytes", width: "10em", text: (row) => row.account, cell: (row) => accountLink(row.account) },
  { title: "Class", help: "What was allocated", width: "14em", text: (row) => row.class, cell: (row) => classLink(row.account, row.class) },
];

function figureNode(figure, error, type) {
  return type.error === null ? count(figure) : amount(figure, error);
}

/** The columns of the places, by what is shown. */
function siteColumns(type) {
  const isLive = type.stacks === "stacks";
  return [
    ...PLACE_COLUMNS,
    { title: type.title, help: "Since stacks are taken, and one standard error", width: "12em",
      number: (row) => row.site[type.key] ?? 0, cell: (row) => figureNode(row.site[type.key] ?? 0, siteError(row.site, type), type) },
    { title: "Stacks", help: "How many samples this rests on", width: "6em",
      number: (row) => row.site[type.stacks] ?? 0, cell: (row) => countText(row.site[type.stacks] ?? 0) },
    { title: "Share", help: isLive ? "Of the bytes of the survivors of its class that have a stack" : "Of the bytes that were allocated of its class", width: "10em",
      number: (row) => row.site[type.share] ?? 0,
      cell: (row) => `${percentText(row.site[type.share] ?? 0)} ± ${percentText(row.site[`${type.share}_standard_error`] ?? 0)}` },
  ];
}

/** The columns of a difference. */
function changeColumns(type) {
  const cell = (value) => (type.error === null ? count(value) : exactBytes(value));
  return [
    ...PLACE_COLUMNS,
    { title: "Change", help: "With one standard error, if it is in bytes", width: "13em", number: (row) => row.change,
      cell: (row) => (type.error === null ? count(row.change) : changeNode(row.change, row.error)) },
    { title: "Older", help: `${type.title} in the older snapshot`, width: "8em", number: (row) => row.older, cell: (row) => cell(row.older) },
    { title: "Newer", help: `${type.title} in the newer snapshot`, width: "8em", number: (row) => row.newer, cell: (row) => cell(row.newer) },
  ];
}

/** The places of both, with what changed. */
function siteChanges(older, newer, type, isSameRun) {
  const rows = new Map();
  for (const [side, sites] of [["newer", newer], ["older", older]]) {
    for (const one of sites) {
      const row = rows.get(placeKey(one)) ?? { ...one, older: 0, newer: 0, olderVariance: 0, newerVariance: 0 };
      row[side] += one.site[type.key] ?? 0;
      row[`${side}Variance`] += (siteError(one.site, type) ?? 0) ** 2;
      rows.set(placeKey(one), row);
    }
  }
  return [...rows.values()].map((row) => {
    const variance = siteChangeVariance(row.olderVariance, row.newerVariance, type, isSameRun);
    return { ...row, change: row.newer - row.older, error: Math.ceil(Math.sqrt(variance)) };
  }).filter((row) => row.change !== 0);
}

function choice(label, id, options, chosen, changed) {
  const select = el("select", { id, onchange: () => changed(select.value) },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
  return el("span", { class: "field" }, el("label", { for: id }, label), " ", select);
}

/** The view. */
export function flamesView(context) {
  const { query } = context;
  const pair = [query.get("old"), query.get("new")];
  const isDifference = pair[0] !== null && pair[1] !== null;
  // The choice of a figure opens the view anew.
  const type = SAMPLE_TYPES.find((one) => one.key === query.get("type")) ?? SAMPLE_TYPES[0];
  const icicle = new Icicle(`${type.title} by stack`);
  const columns = isDifference ? changeColumns(type) : siteColumns(type);
  const table = new DataTable({ label: "Places", columns, key: placeKey,
    search: (row) => [placeKey(row), ...row.site.frames, ...row.site.through].join("\n"), sorted: 3 });
  const fields = el("div", { class: "fields" });
  const about = el("div");
  const go = (change) => context.navigate(address("flames", [], { ...Object.fromEntries(query), ...change }));
  const find = el("input", { type: "search", id: "find", value: query.get("q") ?? "", placeholder: "Part of a frame",
    oninput: () => icicle.find(find.value) });
  icicle.search = find.value.toLowerCase();

  function wanted(sites) {
    const [account, name] = [query.get("account"), query.get("class")];
    return sites.filter((one) => (account === null || one.account === account) && (name === null || one.class === name));
  }

  function fill(all) {
    const accounts = [...new Set(all.map((one) => one.account))].sort();
    const chosen = query.get("account") ?? "";
    const classes = [...new Set(all.filter((one) => chosen === "" || one.account === chosen).map((one) => one.class))].sort();
    refill(fields,
      choice("Account", "of-account", [["", "all"], ...accounts.map((name) => [name, nameText(name)])], chosen, (account) => go({ account, class: "" })),
      choice("Class", "of-class", [["", "all"], ...classes.map((name) => [name, nameText(name)])], query.get("class") ?? "", (name) => go({ class: name })),
      choice("Figure", "of-type", SAMPLE_TYPES.map((one) => [one.key, one.title]), type.key, (key) => go({ type: key })));
  }

  /** Why a document has nothing to show, if it has not. */
  function lacking(all) {
    if (all.length === 0) {
      return nothing();
    }
    return all.some((one) => type.key in one.site) ? null : note(`${type.title} by stack are not in this document: an older version wrote it.`);
  }

  function nothing() {
    return note("No stacks were taken. The agent takes them of classes that it suspects of a leak, and of the accounts that the policy names: [leaks] sites = [\"shop\"].");
  }

  async function showDifference() {
    let older, newer;
    try {
      [older, newer] = [await loaded(context, pair[0]), await loaded(context, pair[1])];
    } catch (error) {
      refill(about, el("p", { role: "alert" }, error.message), el("a", { href: address("history") }, "Choose two others"));
      return;
    }
    const [from, to] = [older, newer].map((one) => sitesOf(one.sites));
    fill([...to, ...from]);
    const isSameRun = older.run.id !== "" && older.run.id === newer.run.id;
    refill(about, el("p", {}, `From ${dateText(older.at)} to ${dateText(newer.at)}.`), lacking([...to, ...from]));
    icicle.show(stackTree(wanted(to), wanted(from), type), type, true, isSameRun);
    table.show(siteChanges(wanted(from), wanted(to), type, isSameRun));
  }

  return {
    title: isDifference ? "Flames: the difference of two snapshots" : "Flames",
    needs: isDifference ? [] : ["sites", "accounts"],
    node: el("div", {}, about, fields, el("p", { class: "field" }, el("label", { for: "find" }, "Search "), find),
      section("Icicle", icicle.told, icicle.node), section("Places", table.node)),
    update({ sites }) {
      if (isDifference) {
        showDifference();
        return;
      }
      const all = sitesOf(sites);
      fill(all);
      const of = type.stacks === "stacks" ? "of what survived" : "of what was allocated since stacks are taken of it";
      refill(about, lacking(all)
        ?? note(`By ${countText(sites.stacks)} stacks since the agent was loaded. The width of a frame is its share ${of}.`));
      icicle.show(stackTree(wanted(all), [], type), type, false);
      table.show(wanted(all).filter((one) => (one.site[type.stacks] ?? 0) > 0));
    },
  };
}
