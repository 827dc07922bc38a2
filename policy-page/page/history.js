// Snapshots: those on the agent's disk, and those that this page took. Any two are compared.

import { accountLink, address, changeNode, classLink, el, exactBytes, figures, note, plainTable, refill, section } from "./dom.js";
import { bytesText, dateText, durationText, nameText } from "./format.js";
import { changeError, changedBytes, difference, isSignificant, UNLISTED } from "./difference.js";
import { read, readFile } from "./source.js";
import { DataTable } from "./table.js";

/** Most snapshots that the page keeps. */
const MAX_KEPT = 8;

const keptSnapshots = new Map();

function keptOf(source) {
  if (!keptSnapshots.has(source.id)) {
    keptSnapshots.set(source.id, new Map());
  }
  return keptSnapshots.get(source.id);
}

/** A snapshot that the page has, by the key that addresses have. */
function held(source, key) {
  return keptOf(source).get(key) ?? null;
}

function keep(source, key, document) {
  const kept = keptOf(source);
  kept.delete(key);
  kept.set(key, document);
  while (kept.size > MAX_KEPT) {
    kept.delete(kept.keys().next().value);
  }
}

/** A snapshot by its key: one that the page has, a file of the agent's, or another source. */
export async function loaded({ source, sources: others }, key) {
  const there = held(source, key);
  if (there !== null) {
    return there;
  }
  const other = others.find((one) => `source:${one.id}` === key);
  const document = other ? await read(other, "snapshot") : await readFile(source, key);
  if (document === null) {
    throw new Error(`There is no snapshot ${nameText(key)} any more.`);
  }
  keep(source, key, document);
  return document;
}

const CHANGE_ROWS = [
  { title: "Account", help: "Whose bytes", width: "12em", text: (row) => row.account, cell: (row) => accountLink(row.account) },
  { title: "Class", help: "Of which class", width: "20em", text: (row) => row.class, cell: (row) =>
    (row.class === UNLISTED ? UNLISTED : classLink(row.account, row.class)) },
  { title: "Change", help: "* is further from zero than three of its standard errors", width: "14em",
    number: (row) => changedBytes(row.change), cell: (row) => [isSignificant(row.change) ? "* " : "", changeNode(changedBytes(row.change), Math.ceil(changeError(row.change)))] },
  { title: "Objects", help: "Came less went", width: "8em", number: (row) => row.change.cameObjects - row.change.wentObjects,
    cell: (row) => String(row.change.cameObjects - row.change.wentObjects) },
  { title: "Came", help: "Bytes of objects in the newer one alone", width: "8em", number: (row) => row.change.came, cell: (row) => exactBytes(row.change.came) },
  { title: "Went", help: "Bytes of objects in the older one alone", width: "8em", number: (row) => row.change.went, cell: (row) => exactBytes(row.change.went) },
  { title: "Older", help: "Live bytes in the older one", width: "8em", number: (row) => row.change.old, cell: (row) => exactBytes(row.change.old) },
  { title: "Newer", help: "Live bytes in the newer one", width: "8em", number: (row) => row.change.new, cell: (row) => exactBytes(row.change.new) },
];

function isBefore(a, b) {
  const end = (of) => of.cohorts?.at(-1)?.upto_epoch ?? 0;
  return end(a) < end(b) || (end(a) === end(b) && a.at < b.at);
}

function comparison(older, newer) {
  const found = difference(older, newer);
  const apart = durationText(Math.max(0, (Date.parse(newer.at) - Date.parse(older.at)) / 1000));
  const relation = !found.isSameRun ? "Two runs of a JVM: nothing cancels, and both errors add up."
    : found.isCut ? `One run of the JVM, ${apart} apart: what both hold cancels, and errors are of what came and what went.`
      : `One run of the JVM, ${apart} apart. The agent has forgotten the older one, so errors are larger than they need be.`;
  const line = (name, change) => [name, [isSignificant(change) ? "* " : "", changeNode(changedBytes(change), Math.ceil(changeError(change)))],
    exactBytes(change.came), exactBytes(change.went), exactBytes(change.old), exactBytes(change.new)];
  return {
    rows: found.accounts.flatMap((account) => account.classes.map((one) => ({ account: account.name, ...one }))),
    head: [
      el("p", {}, relation),
      figures([
        ["Older", `${older.at}, collection ${older.heap.live_gc_epoch ?? older.heap.gc_epoch}`],
        ["Newer", `${newer.at}, collection ${newer.heap.live_gc_epoch ?? newer.heap.gc_epoch}`],
        ["Change of all", changeNode(changedBytes(found.whole), Math.ceil(changeError(found.whole)))],
      ]),
      note(`* is further from zero than three of its standard errors. A change below ${bytesText(found.unseenBytes)} may have no sample.`),
      plainTable("Changes by account", ["Account", "Change", "Came", "Went", "Older", "Newer"],
        found.accounts.map((account) => line(accountLink(account.name), account.change))),
    ],
  };
}

/** The view. */
export function historyView(context) {
  const { source, query } = context;
  const list = el("div");
  const head = el("div");
  const table = new DataTable({ label: "Changes by class", columns: CHANGE_ROWS, key: (row) => `${row.account}\n${row.class}`,
    search: (row) => `${row.account} ${row.class}`, sorted: 2 });
  const classes = section("Changes by class", table.node);
  classes.hidden = true;
  const told = el("p", { role: "status" });
  let files = null;
  let failed = null;
  const others = context.sources.filter((one) => one.kind === "snapshot");

  function choices() {
    const own = [...keptOf(source)].reverse().filter(([key]) => key.startsWith("taken ")).map(([key, document]) => [key, `${dateText(document.at)}, taken by this page`]);
    const ofDisk = (files?.files ?? []).map((one) => [one.name, `${dateText(one.at)}, ${one.is_this_run ? "this run" : "an earlier run"}, ${bytesText(one.bytes)}`]);
    return [...own, ...ofDisk, ...others.map((one) => [`source:${one.id}`, one.name])];
  }

  function select(id, label, all, chosen) {
    return el("span", { class: "field" }, el("label", { for: id }, label), " ",
      el("select", { id }, all.map(([key, text]) => el("option", { value: key, selected: key === chosen }, nameText(text)))));
  }

  function draw() {
    const all = choices();
    const take = source.kind === "agent"
      ? el("button", { type: "button", onclick: takeOne }, "Take a snapshot now") : null;
    const compare = all.length < 2 ? null : el("form", { class: "fields", onsubmit: (event) => {
      event.preventDefault();
      const [older, newer] = ["older", "newer"].map((id) => list.querySelector(`#${id}`).value);
      context.navigate(address("history", [], { old: older, new: newer }));
    } }, select("older", "Older", all, query.get("old") ?? all.at(-1)[0]), select("newer", "Newer", all, query.get("new") ?? all[0][0]),
      el("button", { type: "submit" }, "Compare"));
    refill(list,
      failed === null ? null : note(failed),
      files === null || files.directory !== null ? null
        : note("The policy has no [snapshots], so the agent writes none to disk."),
      all.length === 0 ? note("There is no snapshot yet. Take two, some time apart, and compare them.")
        : all.length === 1 ? note("There is one snapshot. Take another one later, and compare them.") : null,
      el("p", {}, take, " ", told), compare,
      files === null || files.files.length === 0 ? null : plainTable("Snapshots on disk", ["Taken", "Run", "Size", "File"],
        files.files.map((one) => [dateText(one.at), one.is_this_run ? "this one" : "earlier", exactBytes(one.bytes), el("bdi", {}, nameText(one.name))])));
  }

  async function takeOne() {
    told.textContent = "The agent is asked for a snapshot.";
    try {
      const document = await read(source, "snapshot");
      keep(source, `taken ${document.at}`, document);
      told.textContent = `Taken at ${dateText(document.at)}. The page keeps it until it is closed.`;
    } catch (error) {
      told.textContent = error.message;
    }
    draw();
  }

  async function compare() {
    const keys = [query.get("old"), query.get("new")];
    if (keys.includes(null)) {
      return;
    }
    told.textContent = "Comparing.";
    try {
      let [older, newer] = [await loaded(context, keys[0]), await loaded(context, keys[1])];
      const isReversed = older.run.id === newer.run.id && isBefore(newer, older);
      if (isReversed) {
        [older, newer] = [newer, older];
        keys.reverse();
      }
      const shown = comparison(older, newer);
      refill(head, isReversed ? note("The first is the younger one; the older one is subtracted from it.") : null, shown.head,
        el("p", {}, el("a", { href: address("flames", [], { old: keys[0], new: keys[1] }) }, "By where it was allocated, as an icicle")));
      classes.hidden = false;
      table.show(shown.rows);
      told.textContent = "";
    } catch (error) {
      told.textContent = error.message;
    }
  }

  draw();
  const ready = (async () => {
    try {
      files = source.kind === "agent" ? await read(source, "snapshots") : null;
    } catch (error) {
      failed = error.message;
    }
    draw();
    await compare();
  })();
  return { title: "History", needs: [], node: el("div", {}, list, head, classes), update() {}, ready };
}
