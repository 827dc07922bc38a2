// One account: what it holds, by class, on whose behalf, by which requests, where it is refused, and what leaks in it.

import { areas } from "./chart.js";
import { accountLink, address, amount, classLink, count, el, exactBytes, figures, nameNode, note, plainTable, refill, section, stateBadge } from "./dom.js";
import { bytesText, countText, dateText, durationText, percentText, rateText } from "./format.js";
import { instancesOf } from "./instances.js";
import { DataTable } from "./table.js";

/** The middle of a histogram: the bound of the bin in which half of the bytes are reached; null beyond all. */
function middle(bins) {
  const half = bins.reduce((sum, bin) => sum + bin.live_bytes, 0) / 2;
  let sum = 0;
  for (const bin of bins) {
    sum += bin.live_bytes;
    if (sum >= half && sum > 0) {
      return bin.upto;
    }
  }
  return null;
}

function age(row) {
  const bins = row.ages_seconds ?? [];
  if (bins.length === 0) {
    return null;
  }
  return middle(bins) ?? Infinity;
}

function ageText(row) {
  const seconds = age(row);
  if (seconds === null) {
    return "–";
  }
  const last = (row.ages_seconds ?? []).findLast((bin) => bin.upto !== null)?.upto ?? 0;
  return seconds === Infinity ? `over ${durationText(last)}` : `up to ${durationText(seconds)}`;
}

function each(row) {
  return row.live_objects > 0 ? Math.round(row.live_bytes / row.live_objects) : null;
}

function classColumns(context) {
  const share = (row) => (context.liveBytes > 0 ? row.live_bytes / context.liveBytes : 0);
  const optional = (value, node) => (value === null || value === undefined ? "–" : node(value));
  return [
    { title: "Class", help: "Java source name", width: "22em", text: (row) => row.class, cell: (row) => classLink(context.parts[0], row.class) },
    { title: "Live", help: "What survived the latest collection, and one standard error", width: "12em",
      number: (row) => row.live_bytes, cell: (row) => amount(row.live_bytes, row.live_standard_error_bytes) },
    { title: "Share", help: "Of the live bytes of the account", width: "6em", number: share, cell: (row) => percentText(share(row)) },
    { title: "Objects", help: "Estimated number of live objects", width: "7em", number: (row) => row.live_objects, cell: (row) => count(row.live_objects) },
    { title: "Bytes each", help: "Live bytes by live objects", width: "7.5em", number: (row) => each(row) ?? -1, cell: (row) => optional(each(row), exactBytes) },
    { title: "Freed", help: "Bytes of this class that a collection freed", width: "8em",
      number: (row) => row.freed_bytes_total ?? -1, cell: (row) => optional(row.freed_bytes_total, exactBytes) },
    { title: "Total", help: "All bytes ever allocated of this class", width: "8em",
      number: (row) => row.allocated_bytes_total, cell: (row) => exactBytes(row.allocated_bytes_total) },
    { title: "Age", help: "Half of the live bytes are at most so old", width: "9em", number: (row) => age(row) ?? -1, cell: ageText },
    { title: "Generations", help: "Collections of old memory apart at which living instances were born", width: "8em",
      number: (row) => row.generations ?? -1, cell: (row) => optional(row.generations, count) },
    { title: "Samples kept", help: "The policy thins the samples of a class ([[sampling.thin]])", width: "8em",
      number: (row) => row.sample_share ?? 1, cell: (row) => percentText(row.sample_share ?? 1) },
  ];
}

/** Resources beside the heap: how they are called and shown. */
const RESOURCES = {
  threads: ["Threads", count],
  direct: ["Direct memory", exactBytes],
  native: ["Other native memory", exactBytes],
};

function usageRow({ resource, used }) {
  const [name, shown] = RESOURCES[resource] ?? [resource, count];
  return [name, shown(used)];
}

function accountFigures(account, rate) {
  const whole = account.tree;
  const deferred = Object.entries(account.deferred_by_reason ?? {}).filter(([, times]) => times > 0);
  return figures([
    ["State", stateBadge(account)],
    ["Kind", account.service ? [`${account.kind} `, nameNode(account.service)] : account.kind],
    account.parent ? ["Inside", accountLink(account.parent)] : null,
    ["Live", amount(account.live_bytes, account.live_standard_error_bytes)],
    account.live_at_most_bytes ? ["Live at most (95 %)", exactBytes(account.live_at_most_bytes)] : null,
    whole ? ["Live with its scopes", amount(whole.live_bytes, whole.live_standard_error_bytes)] : null,
    ["Charged, with garbage", amount(account.charged_bytes, account.standard_error_bytes)],
    ["Objects", count(account.live_objects)],
    ["Allocates", rate === null ? "–" : rateText(rate)],
    ["Allocated in all", exactBytes(account.allocated_bytes_total)],
    ["Soft limit", account.soft_limit_bytes ? exactBytes(account.soft_limit_bytes) : "none"],
    ["Limit", account.limit_bytes ? exactBytes(account.limit_bytes) : "none"],
    account.reserve_bytes ? ["Reserve", exactBytes(account.reserve_bytes)] : null,
    account.direct_limit_bytes ? ["Limit of direct and native memory", exactBytes(account.direct_limit_bytes)] : null,
    account.direct_limit_bytes ? ["Blocks refused for it", count(account.direct_refusals_total)] : null,
    account.direct_limit_bytes ? ["Blocks that would have been", count(account.direct_would_refuse_total)] : null,
    ["Door", account.door],
    ["Errors thrown", count(account.refusals_total)],
    ["Errors that would have been thrown", count(account.would_refuse_total)],
    ["Turned away at its door", count(account.admission_refusals_total)],
    ["Threads ended by an error", count(account.threads_killed_total)],
    ["Waited", durationText((account.wait_milliseconds_total ?? 0) / 1000)],
    ["Errors not thrown, as it was not safe", count(account.deferred_total), deferred.length > 0 ? ` (${deferred.map(([why, times]) => `${why} ${times}`).join(", ")})` : null],
    account.retired_loaders > 0 ? ["Undeployed, still holding bytes", count(account.retired_loaders)] : null,
    ...(account.usage ?? []).filter((usage) => usage.resource !== "heap").map(usageRow),
    account.threads_left_behind > 0 ? ["Threads left by undeployed versions", count(account.threads_left_behind)] : null,
    account.left_behind_bytes > 0 ? ["Left behind by undeployed versions", exactBytes(account.left_behind_bytes)] : null,
    account.ineffective ? ["Refusals do not work", account.ineffective.reason, account.ineffective.frame ? [" at ", nameNode(account.ineffective.frame)] : null] : null,
  ]);
}

/** How near the limit it is. */
function limitMeter(account) {
  const whole = account.tree ?? account;
  if (!account.limit_bytes) {
    return null;
  }
  const share = percentText(whole.live_bytes / account.limit_bytes);
  return el("p", {}, el("meter", {
    min: 0, max: account.limit_bytes, value: whole.live_bytes, high: account.soft_limit_bytes ?? account.limit_bytes * 0.9,
    "aria-label": "Live bytes of the limit",
  }), ` ${share} of the limit of ${bytesText(account.limit_bytes)}`);
}

/** Sites as an ordered list: the share, its error, and the stack. */
export function sitesList(sites) {
  return el("ol", { class: "sites" }, sites.map((site) => el("li", {},
    el("span", {}, `${percentText(site.share)} ± ${percentText(site.share_standard_error ?? 0)}, `, amount(site.live_bytes), `, ${site.stacks} stacks: `),
    nameNode(site.frames[0] ?? site.through[0] ?? "unknown"),
    el("details", {}, el("summary", {}, "Stack"),
      el("ol", { class: "stack" }, [...site.through, ...site.frames].map((one) => el("li", {}, nameNode(one))))))));
}

/** When the room is used up. */
export function forecastText(exhausts) {
  if (!exhausts) {
    return "There is too little to forecast by.";
  }
  const what = exhausts.what === "limit" ? "The limit" : "The heap";
  const latest = exhausts.latest_seconds;
  const until = latest === null || latest === undefined ? "perhaps never" : `at the latest in ${durationText(latest)}`;
  return `${what} is full in ${durationText(exhausts.earliest_seconds)} at the earliest, ${until} (95 %).`;
}

/** One chain of references, from its root to what it keeps alive. */
function chainNode(chain) {
  const steps = chain.steps.map((step) => el("li", {}, nameNode(step.class), step.via ? [" by ", nameNode(step.via)] : null,
    step.repeats > 1 ? `, ${countText(step.repeats)} times` : null));
  return el("li", {}, `${countText(chain.objects)} sampled objects`, chain.bytes > 0 ? [", ", exactBytes(chain.bytes), ","] : null,
    " of ", nameNode(chain.class), " are kept by ", nameNode(chain.root), chain.is_cut ? " (the first steps are missing)" : null,
    el("ol", { class: "stack" }, steps));
}

/** Who keeps objects alive, of the latest walk of the heap that has some for which `is` is true. */
export function chains(walks, is) {
  for (const { paths } of walks?.walks ?? []) {
    const found = (paths?.paths ?? []).filter(is);
    if (found.length > 0) {
      return [note(`Found by a walk of the heap (${paths.how}) at ${dateText(paths.at)}; the JVM stood still for ${paths.pause_ms.toFixed(1)} ms.`),
        el("ol", { class: "chains" }, found.map(chainNode))];
    }
  }
  return note("Nobody asked lately. heapwarden paths walks the heap and finds out.");
}

/** Who holds what the account made, of the latest walk that tells. */
function holdersOf(walks, name) {
  const found = walks?.walks.find((one) => one.holders)?.holders;
  const rows = found?.holders.filter((one) => one.made_by === name) ?? [];
  if (rows.length === 0) {
    return null;
  }
  return plainTable("Who holds what it made", ["Holder", "Live", "Held by nobody else"], rows.map((one) => [
    accountLink(one.holder), amount(one.live_bytes, one.standard_error_bytes), exactBytes(one.exclusive_bytes),
  ]));
}

function suspectNode(one) {
  return el("article", { class: "suspect", "aria-label": "Leak suspect" },
    el("h3", {}, classLink(one.account, one.class)),
    figures([
      ["Growth", `${rateText(one.growth_bytes_per_second)} ± ${rateText(one.growth_standard_error)}`],
      ["Live", amount(one.live_bytes, one.live_standard_error_bytes)],
      ["Objects", count(one.objects)],
      ["Suspected for", durationText(one.since_seconds)],
      ["Seen in a window of", durationText(one.window_seconds)],
      ["Generations", count(one.generations)],
      one.with.length > 0 ? ["With its parts", one.with.map((name, at) => [at > 0 ? ", " : "", nameNode(name)])] : null,
    ]),
    el("p", {}, forecastText(one.exhausts)),
    one.sites.length > 0 ? sitesList(one.sites) : note("Its stacks are being taken; they show where it is allocated."),
    one.kept_by?.length > 0 ? [el("h4", {}, "What keeps it alive"), el("ol", { class: "stack" }, one.kept_by.map((chain) => el("li", {}, nameNode(chain))))] : null);
}

function leakParts(leaks, name) {
  if (leaks === null) {
    return note("This source has no report of leaks.");
  }
  const suspects = leaks.suspects.filter((one) => one.account === name);
  const growing = leaks.growing.filter((one) => one.account === name);
  return [
    suspects.length > 0 ? suspects.map(suspectNode) : note(leaks.undecided ? `No verdict yet: ${leaks.undecided}.` : "Nothing in this account is suspected."),
    growing.length === 0 ? null : plainTable("What else grows", ["Class", "Growth", "Live", "Why it is no suspect"], growing.map((one) => [
      classLink(name, one.class), rateText(one.growth_bytes_per_second), amount(one.live_bytes), one.why,
    ])),
  ];
}

/** Returns a table of the costs of its requests, those whose memory stays first. The agent lists 64 at the most. */
function routes(account) {
  const known = [...(account.routes ?? [])].sort((a, b) => b.live_bytes - a.live_bytes || b.calls_total - a.calls_total);
  if (known.length === 0) {
    return note("None has come to a door. Accounts with a limit have doors in mode enforce.");
  }
  return plainTable("Routes", ["Route", "Live", "Calls", "Turned away", "Keeps a call", "Allocates a call", "Peak of a call"], known.map((one) => [
    nameNode(one.route), amount(one.live_bytes, one.standard_error_bytes), count(one.calls_total), count(one.refused_total),
    exactBytes(one.kept_bytes_per_call), exactBytes(one.allocated_bytes_per_call), exactBytes(one.peak_bytes_per_call),
  ]));
}

function places(account) {
  const known = account.places ?? [];
  if (known.length === 0) {
    return note("Nowhere so far.");
  }
  return [
    plainTable("Places", ["Method that gets the error", "Entry", "Thread", "Unit of work it ends", "Errors", "Line of policy that spares the thread"], known.map((one) => [
      nameNode(one.frame), nameNode(one.entry), one.thread, nameNode(one.unit), count(one.count),
      one.never_interrupt ? nameNode(one.never_interrupt) : "–",
    ])),
    account.places_other > 0 ? note(`And ${account.places_other} errors at places that are not listed.`) : null,
  ];
}

/** The view. */
export function accountView(context) {
  const name = context.parts[0];
  const own = { parts: context.parts, liveBytes: 0 };
  const table = new DataTable({
    label: "Holdings by class", columns: classColumns(own), key: (row) => row.class, search: (row) => row.class, sorted: 1,
  });
  const [top, chart, requests, principals, scopes, refused, leaking, keeping, single] = Array.from({ length: 9 }, () => el("div"));
  const draw = () => {
    const points = context.recording.all().filter((one) => one.accounts.has(name));
    const values = points.map((one) => one.accounts.get(name).live_bytes);
    refill(chart, areas("Live bytes", points.map((one) => one.at), [{ values }], null, chart.clientWidth));
  };
  return {
    title: ["Account ", nameNode(name)],
    needs: ["classes", "leaks", "walks", "instances"],
    node: el("div", {}, top, section("Over time", chart),
      section("Holdings by class", table.node, el("p", {}, el("a", { href: address("flames", [], { account: name }) }, "Where it was allocated, as an icicle"))),
      section("Leaks", leaking), section("Who keeps it alive", keeping), section("Which requests fill it", requests), section("On whose behalf", principals), section("Scopes inside it", scopes), section("Single objects", single),
      section("Where it is refused, or would be", refused)),
    update({ classes, leaks, walks, instances }) {
      const account = classes.accounts.find((one) => one.name === name);
      if (account === undefined) {
        refill(top, note("There is no account of this name, or it holds too little to be listed."));
        table.show([]);
        return;
      }
      own.liveBytes = account.live_bytes;
      refill(top, accountFigures(account, context.recording.rate(name)), limitMeter(account));
      draw();
      const listed = account.classes.reduce((sum, one) => sum + one.live_bytes, 0);
      const objects = account.classes.reduce((sum, one) => sum + one.live_objects, 0);
      const freed = account.classes.reduce((sum, one) => sum + (one.freed_bytes_total ?? 0), 0);
      const all = account.classes.reduce((sum, one) => sum + one.allocated_bytes_total, 0);
      const foot = [account.classes_omitted > 0 ? `Sum; ${account.classes_omitted} classes are not listed` : "Sum",
        exactBytes(listed), percentText(account.live_bytes > 0 ? listed / account.live_bytes : 0), count(objects),
        objects > 0 ? exactBytes(Math.round(listed / objects)) : "–", exactBytes(freed), exactBytes(all), "", "", ""];
      table.show(account.classes, foot);
      refill(leaking, leakParts(leaks, name));
      refill(keeping, chains(walks, (chain) => chain.account === name), holdersOf(walks, name));
      refill(single, instancesOf(instances, classes.jvm, name, null));
      refill(principals, account.principals.length === 0 ? note("Nothing is live.")
        : plainTable("Principals", ["Principal", "Live"], account.principals.map((one) => [accountLink(one.name), exactBytes(one.live_bytes)])));
      const inside = classes.accounts.filter((one) => one.parent === name);
      refill(scopes, inside.length === 0 ? note("There are none.") : plainTable("Scopes", ["Scope", "State", "Live", "Limit"],
        inside.map((one) => [accountLink(one.name), stateBadge(one), amount(one.live_bytes, one.live_standard_error_bytes), one.limit_bytes ? exactBytes(one.limit_bytes) : "none"])));
      refill(requests, routes(account));
      refill(refused, places(account));
    },
    resized: draw,
  };
}
