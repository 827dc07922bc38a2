// Where survivors were allocated, as an icicle; of one reading, or the difference of two snapshots.

import { accountLink, address, amount, classLink, el, exactBytes, changeNode, note, refill, section } from "./dom.js";
import { countText, dateText, nameText, percentText } from "./format.js";
import { loaded } from "./history.js";
import { Icicle, SAMPLE_TYPES, sitesOf, stackTree } from "./icicle.js";
import { DataTable } from "./table.js";

function siteName(one) {
  return one.site.frames[0] ?? one.site.through[0] ?? "unknown";
}

const SITE_COLUMNS = [
  { title: "Place", help: "The first frame of the application", width: "26em", text: siteName, cell: (row) => el("bdi", { class: "name" }, nameText(siteName(row))) },
  { title: "Account", help: "Whose bytes", width: "10em", text: (row) => row.account, cell: (row) => accountLink(row.account) },
  { title: "Class", help: "What was allocated", width: "14em", text: (row) => row.class, cell: (row) => classLink(row.account, row.class) },
  { title: "Live", help: "Since stacks are taken; the error is by the stacks it rests on", width: "12em",
    number: (row) => row.site.live_bytes, cell: (row) => amount(row.site.live_bytes, siteError(row.site)) },
  { title: "Stacks", help: "How many samples this rests on", width: "6em", number: (row) => row.site.stacks, cell: (row) => countText(row.site.stacks) },
  { title: "Share", help: "Of the survivors of its class that have a stack", width: "10em",
    number: (row) => row.site.share, cell: (row) => `${percentText(row.site.share)} ± ${percentText(row.site.share_standard_error ?? 0)}` },
];

const CHANGE_COLUMNS = [
  ...SITE_COLUMNS.slice(0, 3),
  { title: "Change", help: "The error is that of two independent estimates", width: "13em",
    number: (row) => row.change, cell: (row) => changeNode(row.change, row.error) },
  { title: "Older", help: "Live bytes in the older snapshot", width: "8em", number: (row) => row.older, cell: (row) => exactBytes(row.older) },
  { title: "Newer", help: "Live bytes in the newer snapshot", width: "8em", number: (row) => row.newer, cell: (row) => exactBytes(row.newer) },
];

function siteError(site) {
  return Math.ceil(site.live_bytes / Math.sqrt(Math.max(1, site.stacks)));
}

function siteKey(one) {
  return [one.account, one.class, ...one.site.frames, "", ...one.site.through].join("\n");
}

/** The places of both, with what changed. */
function siteChanges(older, newer) {
  const rows = new Map();
  for (const [side, sites] of [["older", older], ["newer", newer]]) {
    for (const one of sites) {
      const row = rows.get(siteKey(one)) ?? { ...one, older: 0, newer: 0, variance: 0 };
      row[side] += one.site.live_bytes;
      row.variance += one.site.live_bytes ** 2 / Math.max(1, one.site.stacks);
      rows.set(siteKey(one), row);
    }
  }
  return [...rows.values()].map((row) => ({ ...row, change: row.newer - row.older, error: Math.ceil(Math.sqrt(row.variance)) }))
    .filter((row) => row.change !== 0);
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
  const icicle = new Icicle("Where survivors were allocated");
  const columns = isDifference ? CHANGE_COLUMNS : SITE_COLUMNS;
  const table = new DataTable({ label: "Places", columns, key: siteKey, search: (row) => `${siteKey(row)}`, sorted: 3 });
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
    const types = SAMPLE_TYPES.filter((type) => all.length === 0 || type.key in all[0].site);
    const type = types.find((one) => one.key === query.get("type")) ?? types[0];
    refill(fields,
      choice("Account", "of-account", [["", "all"], ...accounts.map((name) => [name, nameText(name)])], chosen, (account) => go({ account, class: "" })),
      choice("Class", "of-class", [["", "all"], ...classes.map((name) => [name, nameText(name)])], query.get("class") ?? "", (name) => go({ class: name })),
      choice("Figure", "of-type", types.map((one) => [one.key, one.title]), type.key, (key) => go({ type: key })));
    return type;
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
    const type = fill([...to, ...from]);
    refill(about, el("p", {}, `From ${dateText(older.at)} to ${dateText(newer.at)}.`), from.length + to.length === 0 ? nothing() : null);
    icicle.show(stackTree(wanted(to), wanted(from), type.key), type, true);
    table.show(siteChanges(wanted(from), wanted(to)));
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
      const type = fill(all);
      refill(about, all.length === 0 ? nothing()
        : note(`By ${countText(sites.stacks)} stacks since the agent was loaded. The width of a frame is its share of what survived.`));
      icicle.show(stackTree(wanted(all), [], type.key), type, false);
      table.show(wanted(all));
    },
  };
}
