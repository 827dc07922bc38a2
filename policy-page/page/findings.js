// What is wrong, as far as the agent's documents tell. `heapwarden doctor` also looks at the process.

import { accountLink, classLink, el, nameNode } from "./dom.js";
import { amountText, countText, durationText, rateText } from "./format.js";

function finding(severity, name, ...sentence) {
  return { severity, name, sentence };
}

/** Findings, errors first. */
export function findings(accounts, leaks) {
  const found = [...ofAccounts(accounts.accounts), ...ofLeaks(leaks), ...ofAgent(accounts)];
  const order = ["error", "warning", "note"];
  return found.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}

function ofAccounts(accounts) {
  const found = [];
  for (const account of accounts) {
    const link = accountLink(account.name);
    const whole = account.tree ?? account;
    const live = amountText(whole.live_bytes, whole.live_standard_error_bytes);
    if (account.ineffective) {
      found.push(finding("error", "ineffective", link, ` stays over its limit, and refusals do not stop it: ${account.ineffective.reason}.`));
    } else if (account.state === "over") {
      const refused = account.refusals_total + account.admission_refusals_total;
      found.push(finding("error", "over-limit", link, ` is over its limit with ${live}; it was refused ${countText(refused)} times.`));
    } else if (account.state === "suspect") {
      found.push(finding("warning", "suspect", link, " is charged more than its limit; a collection has not yet proved it."));
    } else if (account.refusals_total > 0 || account.admission_refusals_total > 0) {
      found.push(finding("warning", "refused-before", link,
        ` was over its limit before: ${countText(account.refusals_total)} errors and ${countText(account.admission_refusals_total)} answers of 503.`));
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

/** A list of findings. */
export function findingsList(found) {
  if (found.length === 0) {
    return el("p", { class: "fine" }, "Nothing is wrong as far as the agent can tell.");
  }
  return el("ul", { class: "findings" }, found.map((one) =>
    el("li", { "data-finding": one.name },
      el("span", { class: `badge severity-${one.severity}` }, one.severity), " ", one.sentence)));
}
