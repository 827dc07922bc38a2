// What is wrong, as far as the agent's documents tell. `heapwarden doctor` also looks at the process.

import { accountLink, classLink, el, nameNode, note } from "./dom.js";
import { amountText, bytesText, countText, durationText, nameText, rateText } from "./format.js";

/** A wait that `heapwarden doctor` mentions, in milliseconds. */
const NOTICEABLE_MS = 2000;
/** The largest standard error at a limit that is not remarked on. */
const MOST_ERROR_SHARE = 0.1;

function finding(severity, name, ...sentence) {
  return { severity, name, sentence };
}

/** Findings, errors first. */
export function findings(accounts, leaks) {
  const found = [...ofAccounts(accounts), ...ofLimits(accounts), ...ofLeaks(leaks), ...ofAgent(accounts)];
  const order = ["error", "warning", "note"];
  return found.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}

function ofAccounts({ accounts, policy }) {
  const found = [];
  for (const account of accounts) {
    const link = accountLink(account.name);
    const whole = account.tree ?? account;
    const live = amountText(whole.live_bytes, whole.live_standard_error_bytes);
    if (account.ineffective) {
      found.push(finding("error", "ineffective", link, ` stays over its limit, and refusals do not stop it: ${account.ineffective.reason}.`));
    } else if (account.state === "over" && policy.mode === "enforce" && account.refusals_total === 0 && account.door !== "shut") {
      const [most] = Object.entries(account.deferred_by_reason ?? {}).filter(([, times]) => times > 0).sort((a, b) => b[1] - a[1]);
      found.push(finding(most ? "error" : "warning", "never-refused", link, ` is over its limit with ${live} and was never refused`,
        most ? `: ${countText(account.deferred_total)} refusals were put off, mostly for the reason ${nameText(most[0])}.` : ": none was due yet."));
    } else if (account.state === "over") {
      const refused = account.refusals_total + account.admission_refusals_total;
      found.push(finding("error", "over-limit", link, ` is over its limit with ${live}; it was refused ${countText(refused)} times.`));
    } else if (account.state === "suspect") {
      found.push(finding("warning", "suspect", link, " is charged more than its limit; a collection has not yet proved it."));
    } else if (account.refusals_total > 0 || account.admission_refusals_total > 0) {
      found.push(finding("warning", "refused-before", link,
        ` was over its limit before: ${countText(account.refusals_total)} errors and ${countText(account.admission_refusals_total)} answers of 503.`));
    } else if (account.wait_milliseconds_total >= NOTICEABLE_MS) {
      found.push(finding("note", "waited-before", link,
        ` waited ${durationText(account.wait_milliseconds_total / 1000)} in all, until a collection showed that it is below its limit.`));
    }
    if (account.threads_killed_total > 0) {
      found.push(finding("error", "threads-killed", link, `: errors ended ${countText(account.threads_killed_total)} of its threads.`));
    }
    if (account.soft_limit_bytes && account.state === "open" && whole.live_bytes > account.soft_limit_bytes) {
      found.push(finding("warning", "over-soft-limit", link, ` is over its soft limit with ${live}.`));
    }
    if (account.retired_loaders > 0) {
      found.push(finding("warning", "retired", link, `: ${countText(account.retired_loaders)} undeployed versions still hold bytes.`));
    }
    if (account.left_behind_bytes > 0) {
      found.push(finding("warning", "left-behind", link, `: undeployed versions left ${amountText(account.left_behind_bytes)} behind.`));
    }
  }
  return found;
}

/** What the limits say of the heap and of the sampling interval. */
function ofLimits({ accounts, heap, sampling }) {
  const found = [];
  const limited = accounts.filter((one) => one.limit_bytes);
  const above = limited.filter((one) => heap.max_bytes > 0 && one.limit_bytes >= heap.max_bytes);
  for (const account of above) {
    found.push(finding("warning", "limit-above-heap", accountLink(account.name),
      ` cannot reach its limit of ${bytesText(account.limit_bytes)}: the JVM runs out of memory first, at ${bytesText(heap.max_bytes)}.`));
  }
  // The limits of scopes are part of the limit of their service.
  const names = new Set(limited.map((one) => one.name));
  const sum = limited.filter((one) => !names.has(one.parent)).reduce((all, one) => all + one.limit_bytes, 0);
  if (above.length === 0 && heap.max_bytes > 0 && sum > heap.max_bytes) {
    found.push(finding("note", "limits-overcommitted",
      `The limits together, ${bytesText(sum)}, exceed the maximum heap of ${bytesText(heap.max_bytes)}: the JVM can run out of memory before any account is over its limit.`));
  }
  for (const account of accounts) {
    const limit = account.limit_bytes || account.soft_limit_bytes;
    const error = Math.sqrt(sampling.interval_bytes * (limit ?? 0));
    if (limit && error > MOST_ERROR_SHARE * limit) {
      found.push(finding("warning", "interval-too-coarse", accountLink(account.name),
        `: the sampling interval of ${bytesText(sampling.interval_bytes)} is too coarse for a limit of ${bytesText(limit)}; the standard error there is ${bytesText(Math.round(error))}.`));
    }
  }
  return found;
}

function ofLeaks(leaks) {
  return (leaks?.suspects ?? []).map((one) => finding("error", "leak-suspected",
    accountLink(one.account), " leaks ", classLink(one.account, one.class),
    ` at ${rateText(one.growth_bytes_per_second)}, suspected ${one.since_seconds > 0 ? `for ${durationText(one.since_seconds)}` : "just now"}.`));
}

function ofAgent(accounts) {
  const found = [];
  const { policy, sampling, heap, evidence } = accounts;
  if (policy.last_reload_successful === false) {
    found.push(finding("error", "policy-rejected", "The latest policy file was rejected, and the one before stays in force: ", nameNode(policy.last_error ?? "")));
  }
  if (sampling.samples === 0) {
    found.push(finding("warning", "no-samples", "There is no sample yet, so all accounts are empty."));
  } else if (heap.gc_epoch === 0) {
    found.push(finding("warning", "no-collection", "There was no collection yet, so nothing is known to be live."));
  } else if (accounts.accounts.every((one) => one.live_bytes === 0) && accounts.accounts.some((one) => one.charged_bytes > 0)) {
    found.push(finding("note", "nothing-live-yet", "No collection since the agent was loaded is known to cover what was charged: nothing is known to be live yet."));
  }
  if (sampling.dropped > 0) {
    const reasons = Object.entries(sampling.dropped_by_reason ?? {}).filter(([, times]) => times > 0);
    found.push(finding("warning", "samples-dropped",
      `${countText(sampling.dropped)} samples were dropped (${reasons.map(([why]) => why).join(", ")}); accounts are too low by them.`));
  }
  if (evidence?.budget_used_up_seconds) {
    found.push(finding("warning", "budget-spent", `The budget of collections is used up for ${durationText(evidence.budget_used_up_seconds)}; verdicts wait.`));
  }
  if (accounts.accounts_omitted > 0) {
    found.push(finding("note", "accounts-omitted", `${countText(accounts.accounts_omitted)} small accounts are not listed.`));
  }
  const limited = accounts.accounts.some((one) => one.limit_bytes);
  if (policy.mode === "observe" && limited) {
    found.push(finding("note", "observes", "The policy observes: errors are counted and not thrown."));
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
