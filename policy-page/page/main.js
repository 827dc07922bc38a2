// The page: addresses, views, and reading the documents again while somebody looks.

import { accountView } from "./account.js";
import { classView } from "./class.js";
import { address, el, refill, shown } from "./dom.js";
import { flamesView } from "./flames.js";
import { elsewhereView, fleetView, isRecorded } from "./fleet.js";
import { durationText, nameText, timeText } from "./format.js";
import { historyView } from "./history.js";
import { overviewView } from "./overview.js";
import { Recording, remembered } from "./record.js";
import { isLive, MODE, pauseMs, read, sources } from "./source.js";

const VIEWS = { overview: overviewView, account: accountView, class: classView, flames: flamesView, history: historyView };
/** The parts that the address of a view has. */
const PARTS = { overview: 0, account: 1, class: 2, flames: 0, history: 0 };

/** How many times as long as a reading took the page rests. */
const REST = 10;

const rooms = Object.fromEntries(["view", "nav", "controls", "footer", "jvm"].map((id) => [id, document.getElementById(id)]));
const told = el("p", { id: "told", role: "status" });
const trouble = el("p", { id: "trouble", role: "alert" });
const recordings = new Map();

let all = [];
let view = null;
let isPaused = false;
let isReading = false;
let timer = 0;

function parsed() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...parts] = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const known = Object.hasOwn(VIEWS, name) && parts.length === PARTS[name];
  return known ? { name, parts, query: new URLSearchParams(search ?? "") } : { name: "overview", parts: [], query: new URLSearchParams(search ?? "") };
}

function recordingOf(source) {
  if (!recordings.has(source.id)) {
    recordings.set(source.id, new Recording());
    if (source.kind === "agent" || source.kind === "report") {
      read(source, "history").then((history) => {
        recordings.get(source.id).past = remembered(history);
      }, () => {});
    }
  }
  return recordings.get(source.id);
}

function viewOf(name, context) {
  if (!isRecorded(context.source)) {
    return VIEWS[name](context);
  }
  return name === "overview" ? fleetView(context) : elsewhereView(name);
}

function open() {
  const { name, parts, query } = parsed();
  shown(query);
  const source = all.find((one) => one.id === (query.get("source") ?? "")) ?? all[0];
  if (source === undefined) {
    refill(rooms.view, el("h1", { tabindex: "-1" }, "Nothing to show"), el("p", {}, "No JVM of this machine runs the agent, and neither a file nor a Prometheus was given."));
    return;
  }
  const context = {
    source, sources: all, parts, query, recording: recordingOf(source),
    navigate: (to) => {
      if (to === location.hash) {
        open();
      } else {
        location.hash = to;
      }
    },
  };
  const made = viewOf(name, context);
  view = { ...made, context, name };
  const heading = el("h1", { tabindex: "-1" }, made.title);
  refill(rooms.view, heading, told, trouble, made.node);
  document.title = `${heading.textContent} – Heapwarden`;
  drawNavigation(name, source);
  trouble.textContent = "";
  told.textContent = "Reading.";
  rooms.view.setAttribute("aria-busy", "true");
  heading.focus({ preventScroll: true });
  scrollTo(0, 0);
  look();
}

function drawNavigation(name, source) {
  const links = [["overview", "Overview"], ["flames", "Flames"], ["history", "History"]];
  refill(rooms.nav, el("ul", {}, links.map(([to, title]) =>
    el("li", {}, el("a", { href: address(to), "aria-current": to === name ? "page" : null }, title)))));
  const choose = all.length < 2 ? null : el("span", { class: "field" }, el("label", { for: "source" }, "JVM or file"), " ",
    el("select", { id: "source", onchange: (event) => {
      location.hash = `#/overview?source=${encodeURIComponent(event.target.value)}`;
    } }, all.map((one) => el("option", { value: one.id, selected: one === source }, nameText(one.name)))));
  const pause = !isLive(source) ? null : el("button", { type: "button", id: "pause", "aria-pressed": String(isPaused), onclick: () => {
    isPaused = !isPaused;
    drawNavigation(name, source);
    rooms.controls.querySelector("#pause").focus();
    look();
  } }, "Pause");
  refill(rooms.controls, choose, pause);
  const raw = MODE !== "agent" ? [] : ["metrics", "api/v1/accounts", "api/v1/accounts?classes=all", "api/v1/leaks", "api/v1/sites", "api/v1/paths", "api/v1/instances", "api/v1/snapshot", "api/v1/profile", "api/v1/snapshots", "api/v1/history", "-/ready"];
  refill(rooms.footer, raw.length === 0 ? null : el("p", {}, "For programs: ", raw.map((path, at) => [at > 0 ? ", " : "", el("a", { href: path }, `/${path}`)])),
    el("p", {}, MODE === "report" ? "A report: it shows one moment, and needs no network." : "Read-only. Nothing is read while this page is hidden or paused."));
}

async function look() {
  clearTimeout(timer);
  const mine = view;
  if (mine === null || isReading || document.hidden || (isPaused && mine.seen)) {
    return;
  }
  isReading = true;
  const begun = performance.now();
  try {
    const found = await Promise.all(mine.needs.map(async (what) => [what, await read(mine.context.source, what)]));
    const documents = Object.fromEntries(found);
    if (mine === view) {
      adopt(mine, documents);
    }
    trouble.textContent = "";
  } catch (error) {
    if (mine === view) {
      trouble.textContent = mine.seen ? `${error.message} What is shown is of ${timeText(mine.seen)}.` : error.message;
      rooms.view.setAttribute("aria-busy", "false");
    }
  }
  isReading = false;
  if (mine !== view) {
    look();
  } else if (isLive(mine.context.source) && mine.needs.length > 0) {
    timer = setTimeout(look, Math.max(pauseMs(mine.context.source), REST * (performance.now() - begun)));
  }
}

function adopt(mine, documents) {
  const at = Date.now();
  const accounts = documents.accounts ?? documents.classes;
  if (accounts) {
    mine.context.recording.add(accounts, accounts.at ? Date.parse(accounts.at) : at);
    tellOf(accounts, at);
  } else {
    told.textContent = "";
  }
  mine.update(documents, at);
  mine.seen = at;
  rooms.view.setAttribute("aria-busy", "false");
}

function tellOf(accounts, at) {
  const { heap, jvm } = accounts;
  const age = heap.live_age_seconds === null || heap.live_age_seconds === undefined ? "" : `, ${durationText(heap.live_age_seconds)} old`;
  const of = heap.live_gc_epoch ? `Live bytes are of collection ${heap.live_gc_epoch}${age}; ± is one standard error.` : "There was no collection yet.";
  told.textContent = `${of} Read at ${timeText(accounts.at ? Date.parse(accounts.at) : at)}.`;
  rooms.jvm.textContent = `${nameText(jvm.name)} (${jvm.pid}), JDK ${nameText(jvm.version)}`;
}

addEventListener("hashchange", open);
addEventListener("resize", () => {
  if (view?.seen) {
    view.resized?.();
  }
});
document.addEventListener("visibilitychange", look);
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches?.("input, select, textarea");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const filter = rooms.view.querySelector("input[type=search]");
    if (filter !== null) {
      event.preventDefault();
      filter.focus();
    }
  }
});

try {
  all = await sources();
  open();
} catch (error) {
  refill(rooms.view, el("h1", { tabindex: "-1" }, "No answer"), el("p", { role: "alert" }, error.message));
}
