// The problems of a JVM, as far as the agent's documents tell. `heapwarden doctor` also looks at the process.

import { DECLARED } from "./declared.js";
import { accountLink, classLink, el, nameNode, note } from "./dom.js";
import { amountText, bytesText, countText, durationText, nameText, rateText } from "./format.js";

/** A wait that `heapwarden doctor` mentions, in milliseconds. */
const NOTICEABLE_MS = 2000;
/** The largest standard error at a limit that is not remarked on. */
const MAX_ERROR_SHARE = 0.1;

/** The least memory left by undeployed versions that counts, in bytes. */
const LEFT_BEHIND_BYTES = 1 << 20;

/** A finding as grave as this, which its declaration must allow. */
function graveFinding(severity, name, ...sentence) {
  if (!DECLARED[name].severities.includes(severity)) {
    throw new Error(`${name} is no ${severity}`);
  }
  return { severity, name, sentence };
}

/** A finding with words of its own. */
function finding(name, ...sentence) {
  return graveFinding(DECLARED[name].severities[0], name, ...sentence);
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A finding with the words of its declaration: of an account, or of none (null). */
function declared(name, account, ...figures) {
  const { sentence, advice } = DECLARED[name];
  const [before, after] = capital(sentence).split("{account}");
  const subject = after === undefined ? [before] : [before, accountLink(account), after];
  return finding(name, ...subject, ...(figures.length === 0 ? ["."] : [" (", ...figures, ").", advice === "" ? "" : ` ${capital(advice)}.`]));
}

/**
 * Findings: that the figures are wrong; what a limit does to an account, one each; that the heap is short; leaks; the others, errors first. Notes
 * come last.
 */
export function findings(accounts, leaks) {
  const first = [ofTheSum(accounts), ofLimitedAccounts(accounts), ofTheHeap(accounts), ofLeaks(leaks)];
  const others = [...ofAccounts(accounts), ...ofLimits(accounts), ...ofAgent(accounts)];
  const order = ["error", "warning", "note"];
  const ranked = [...first, others].flatMap((found, rank) => found.map((one) => ({ rank, one })));
  ranked.sort((a, b) => Number(a.one.severity === "note") - Number(b.one.severity === "note") || a.rank - b.rank
    || order.indexOf(a.one.severity) - order.indexOf(b.one.severity));
  return ranked.map(({ one }) => one);
}

function waitsNoticeably(account) {
  return account.wait_milliseconds_total >= NOTICEABLE_MS;
}

/** That its threads wait before they go on, or before they are refused: added to what else befalls it. */
function slowed(account) {
  return waitsNoticeably(account) ? "; its threads have been slowed" : "";
}

/** The most frequent reason for which errors were put off, if any was. */
function mostDeferred(account) {
  const [most] = Object.entries(account.deferred_by_reason ?? {}).filter(([, times]) => times > 0).sort((a, b) => b[1] - a[1]);
  return most?.[0];
}

/** Whether it was turned away, refused, or should have been. The grace after a refusal is part of it. */
function wasRefused(account) {
  const deferred = Object.entries(account.deferred_by_reason ?? {}).some(([reason, times]) => times > 0 && reason !== "grace");
  return account.refusals_total > 0 || account.admission_refusals_total > 0 || deferred;
}

/** Whether its door is shut, and that no error was thrown is right: it is within its reserve, or none was due. */
function isTurnedAway(account) {
  const most = (account.limit_bytes ?? 0) + (account.reserve_bytes ?? 0);
  return account.door === "shut" && ((account.tree ?? account).live_bytes <= most || mostDeferred(account) === undefined);
}

/** Severity, name, what stands behind the account's name, and what to do; null if nothing is to be told. */
function toldOf(account, enforces) {
  const isOver = account.state === "over";
  const isShut = account.door === "shut";
  const raise = "See what it holds; if it needs that, raise its limit in the policy.";
  if (account.ineffective) {
    return ["error", "ineffective", [` stays over its limit, and refusals do not stop it: they are put off, mostly for the reason ${nameText(account.ineffective.reason)}${account.ineffective.frame ? ` in ${nameText(account.ineffective.frame)}` : ""}${slowed(account)}`],
      "Name where its work begins by door or work in its section of the policy, or bound its memory by settings of its own."];
  }
  if (isOver && !enforces) {
    return ["warning", "over-limit", [" is over its limit; the policy only observes, so nothing is refused"], raise];
  }
  if (isOver && account.refusals_total === 0 && !isTurnedAway(account)) {
    const reason = mostDeferred(account);
    return reason === undefined ? ["warning", "never-refused", [` is over its limit and was never refused: none was due yet${slowed(account)}`], ""]
      : ["error", "never-refused", [` is over its limit and was never refused: refusals are put off, mostly for the reason ${nameText(reason)}${slowed(account)}`], ""];
  }
  if (isOver || isShut) {
    const turned = isShut ? ": new work is turned away" : "";
    const refused = account.refusals_total === 0 ? "" : isShut ? ", and what is inside is refused" : " and is refused";
    return ["warning", "over-limit", [isOver ? " is over its limit" : " is held by its limit", turned, refused, slowed(account)], raise];
  }
  if (account.state === "suspect") {
    return waitsNoticeably(account)
      ? ["warning", "suspect", [" has been slowed: its charge is above its limit, and while the heap is short its threads wait until a collection shows how much of that is garbage"],
        "If that lasts, raise [enforcement] evidence-budget."]
      : ["note", "suspect", [" is charged more than its limit; a collection has not yet proved it"], ""];
  }
  if (account.threads_killed_total > 0) {
    return ["warning", "threads-killed", [" was refused earlier"], ""];
  }
  if (wasRefused(account)) {
    return ["note", "refused-before", [" was refused earlier, or would have been; it is not over its limit now"], ""];
  }
  return waitsNoticeably(account)
    ? ["note", "waited-before", [" was made to wait earlier, until a collection showed that it is below its limit"], ""] : null;
}

/** `live 12 ± 1 MiB of 10 MiB, 7 errors thrown, …` */
function figuresOf(account) {
  const whole = account.tree ?? account;
  const isCharged = account.state === "suspect";
  const held = isCharged ? amountText(whole.charged_bytes, whole.standard_error_bytes)
    : amountText(whole.live_bytes, whole.live_standard_error_bytes);
  const parts = [`${isCharged ? "charged" : "live"} ${held}${account.limit_bytes ? ` of ${bytesText(account.limit_bytes)}` : ""}`];
  const tell = (number, text) => number > 0 && parts.push(text);
  tell(account.refusals_total, `${countText(account.refusals_total)} errors thrown`);
  tell(account.deferred_total, `${countText(account.deferred_total)} put off`);
  tell(account.would_refuse_total, `${countText(account.would_refuse_total)} would have been thrown`);
  tell(account.admission_refusals_total, `turned away ${countText(account.admission_refusals_total)} times at its door`);
  tell(account.wait_milliseconds_total, `waited ${durationText(account.wait_milliseconds_total / 1000)}`);
  const [most] = [...(account.routes ?? [])].sort((a, b) => b.live_bytes - a.live_bytes);
  if (account.state === "over" && most?.live_bytes > 0) {
    parts.push(`${nameText(most.route)} holds the most: ${amountText(most.live_bytes, most.standard_error_bytes)}`);
  }
  return parts.join(", ");
}

/** Returns a finding for each account on which its limit acts or has acted: one each, as `heapwarden doctor` has it. */
function ofLimitedAccounts({ accounts, policy }) {
  const found = [];
  for (const account of accounts) {
    const told = toldOf(account, policy.mode === "enforce");
    if (told === null) {
      continue;
    }
    const [severity, name, sentence, remedy] = told;
    const killed = account.threads_killed_total > 0;
    const threads = killed ? [`; errors ended ${countText(account.threads_killed_total)} of its threads, and what they did may not be done any more`] : [];
    found.push(graveFinding(killed && severity === "note" ? "warning" : severity, name, accountLink(account.name), ...sentence, ...threads,
      ` (${figuresOf(account)}).`, remedy === "" ? "" : ` ${remedy}`));
  }
  return found;
}

function ofTheSum({ heap }) {
  const sum = heap.accounts;
  return sum?.exceeds ? [finding("accounts-exceed-heap",
    `The figures are wrong: the accounts sum up to ${amountText(sum.live_bytes, sum.standard_error_bytes)}, where the heap has ${bytesText(sum.heap_bytes)} in use. No account is refused until they fit again, and all errors are stated ${sum.error_factor.toFixed(1)} times as large. heapwarden doctor says what may help.`)] : [];
}

function ofTheHeap({ heap, enforcement }) {
  return enforcement?.duress ? [declared("heap-is-short", null,
    `${bytesText(heap.used_after_gc_bytes)} of ${bytesText(heap.max_bytes)} in use after the latest collection`)] : [];
}

function ofAccounts({ accounts }) {
  const found = [];
  for (const account of accounts) {
    const whole = account.tree ?? account;
    if (account.soft_limit_bytes && account.state === "open" && whole.live_bytes > account.soft_limit_bytes) {
      found.push(declared("over-soft-limit", account.name,
        `live ${amountText(whole.live_bytes, whole.live_standard_error_bytes)}, soft limit ${bytesText(account.soft_limit_bytes)}`));
    }
    const offHeap = (one) => (one.usage ?? []).reduce((sum, { resource, used }) =>
      resource === "direct" || resource === "native" ? sum + used : sum, 0);
    const inside = accounts.filter((one) => one.parent === account.name);
    const used = inside.reduce((sum, one) => sum + offHeap(one), offHeap(account));
    if (account.direct_limit_bytes && used > account.direct_limit_bytes) {
      found.push(declared("over-direct-limit", account.name,
        `direct and native ${bytesText(used)}, direct-limit ${bytesText(account.direct_limit_bytes)}, blocks refused ${account.direct_refusals_total ?? 0}`));
    }
    if (account.retired_loaders > 0) {
      found.push(declared("retired-loader", account.name, `${countText(account.retired_loaders)} class loaders`));
    }
    if (account.threads_left_behind > 0) {
      const threads = (account.left_threads ?? []).map((thread) => thread.runs ? `"${thread.name}" in ${thread.runs}` : `"${thread.name}"`);
      found.push(declared("threads-left", account.name, `${countText(account.threads_left_behind)} threads: ${threads.slice(0, 3).join(", ")}`));
    }
    if (account.left_behind_bytes >= LEFT_BEHIND_BYTES) {
      found.push(declared("left-behind", account.name, bytesText(account.left_behind_bytes)));
    }
  }
  return found;
}

/** Returns the findings on how the limits suit the heap and the sampling interval. */
function ofLimits({ accounts, heap, sampling }) {
  const found = [];
  const limited = accounts.filter((one) => one.limit_bytes);
  const above = limited.filter((one) => heap.max_bytes > 0 && one.limit_bytes >= heap.max_bytes);
  for (const account of above) {
    found.push(declared("limit-above-heap", account.name, `limit ${bytesText(account.limit_bytes)}, maximum heap ${bytesText(heap.max_bytes)}`));
  }
  // The limits of scopes are part of the limit of their service.
  const names = new Set(limited.map((one) => one.name));
  const sum = limited.filter((one) => !names.has(one.parent)).reduce((all, one) => all + one.limit_bytes, 0);
  if (above.length === 0 && heap.max_bytes > 0 && sum > heap.max_bytes) {
    found.push(declared("limits-overcommitted", null, `limits ${bytesText(sum)}, maximum heap ${bytesText(heap.max_bytes)}`));
  }
  for (const account of accounts) {
    const limit = account.limit_bytes || account.soft_limit_bytes;
    const error = Math.sqrt(sampling.interval_bytes * (limit ?? 0));
    if (limit && error > MAX_ERROR_SHARE * limit) {
      found.push(declared("interval-too-coarse", account.name,
        `limit ${bytesText(limit)}, standard error there ${bytesText(Math.round(error))}, interval ${bytesText(sampling.interval_bytes)}`));
    }
  }
  return found;
}

/** One finding an account. */
function ofLeaks(leaks) {
  const suspects = new Map();
  for (const one of leaks?.suspects ?? []) {
    suspects.set(one.account, [...(suspects.get(one.account) ?? []), one]);
  }
  return [...suspects].map(([account, ones]) => declared("leak-suspected", account, ...ones.flatMap((one, at) => [
    at === 0 ? "" : ", ", classLink(account, one.class),
    ` at ${rateText(one.growth_bytes_per_second)}, suspected ${one.since_seconds > 0 ? `for ${durationText(one.since_seconds)}` : "just now"}`])));
}

function ofAgent(accounts) {
  const found = [];
  const { policy, sampling, heap, evidence } = accounts;
  if (policy.last_reload_successful === false) {
    found.push(declared("policy-rejected", null, nameNode(policy.last_error ?? "")));
  }
  if (sampling.samples === 0) {
    found.push(declared("no-samples", null, "samples: 0"));
  }
  if (accounts.accounts.every((one) => one.live_bytes === 0) && accounts.accounts.some((one) => one.charged_bytes > 0)) {
    found.push(finding("nothing-live-yet", heap.gc_epoch === 0 ? "No live bytes yet: no collection has ended since the agent was loaded."
      : "No live bytes yet: no collection since then is known to cover what was charged.", ` ${capital(DECLARED["nothing-live-yet"].advice)}.`));
  }
  if (sampling.dropped > 0) {
    const reasons = Object.entries(sampling.dropped_by_reason ?? {}).filter(([, times]) => times > 0);
    found.push(declared("samples-dropped", null, `${countText(sampling.dropped)}: ${reasons.map(([why]) => nameText(why)).join(", ")}`));
  }
  const suspects = accounts.accounts.filter((one) => one.state === "suspect");
  // The finding of an account that waits says so.
  if (evidence?.budget_used_up_seconds && suspects.length > 0 && !suspects.some(waitsNoticeably)) {
    found.push(declared("evidence-budget-spent", null, `none for ${durationText(evidence.budget_used_up_seconds)}, while an account is suspect`));
  }
  if (accounts.accounts_omitted > 0) {
    found.push(finding("accounts-omitted", `${countText(accounts.accounts_omitted)} small accounts are not listed.`));
  }
  const limited = accounts.accounts.filter((one) => one.limit_bytes);
  // The finding of an account that is over says so.
  const over = accounts.accounts.some((one) => one.state === "over");
  if (policy.mode === "observe" && limited.length > 0 && !over) {
    found.push(declared("observes", null, `mode = "observe", ${countText(limited.length)} accounts with a limit`));
  }
  return found;
}

/** A list of findings, and who knows more. */
export function findingsList(found) {
  const list = found.length === 0 ? el("p", { class: "fine" }, "Nothing is wrong as far as the agent can tell.")
    : el("ul", { class: "findings" }, found.map((one) =>
      el("li", { "data-finding": one.name },
        el("span", { class: `badge severity-${one.severity}` }, one.severity), " ", one.sentence)));
  return [list, note("Only ", el("code", {}, "heapwarden doctor"),
    " looks at the process: its flags, other agents, the collector, the port, patterns of the policy that match nothing, and services that are not recognised.")];
}
