// The memory that came and the memory that went between two snapshots: the arithmetic of `heapwarden diff`.
//
// Two snapshots of one run know which sums are of the same records (the cohorts that end at a collection both
// know), so what stayed cancels, and the error of the difference is that of what came and went.

/** The row of what an account holds and its document does not list by class. */
export const UNLISTED = "(not listed)";
const SIGNIFICANT = 3;

function nothing() {
  return { old: 0, new: 0, came: 0, went: 0, cameObjects: 0, wentObjects: 0, variance: 0 };
}

function came(change, sum) {
  change.came += sum.bytes;
  change.cameObjects += sum.objects;
  change.variance += sum.variance;
}

function went(change, sum) {
  change.went += sum.bytes;
  change.wentObjects += sum.objects;
  change.variance += sum.variance;
}

function addChange(to, other) {
  for (const key of Object.keys(to)) {
    to[key] += other[key];
  }
}

/** The change in bytes. */
export function changedBytes(change) {
  return change.new - change.old;
}

/** Its standard error, in bytes. */
export function changeError(change) {
  return Math.sqrt(Math.max(0, change.variance));
}

/** Whether the change is further from zero than chance explains. */
export function isSignificant(change) {
  const bytes = changedBytes(change);
  return bytes !== 0 && Math.abs(bytes) >= SIGNIFICANT * changeError(change);
}

function inOrder(a, b) {
  return isSignificant(b) - isSignificant(a) || Math.abs(changedBytes(b)) - Math.abs(changedBytes(a));
}

/** Subtracts the older snapshot from the newer one. */
export function difference(older, newer) {
  const isSameRun = older.run.id !== "" && older.run.id === newer.run.id;
  const ends = (of) => (of.cohorts ?? []).map((one) => one.upto_epoch);
  const known = new Set(ends(newer));
  const cuts = isSameRun ? [...new Set(ends(older))].filter((end) => known.has(end)).sort((a, b) => a - b) : [];
  const last = ends(older).at(-1);
  const units = [older, newer].map((one) => Math.max(1, one.variance_unit_bytes2 ?? 1));
  const names = new Map();
  for (const [side, document] of [older, newer].entries()) {
    for (const account of document.accounts) {
      const sides = names.get(account.name) ?? [null, null];
      sides[side] = account;
      names.set(account.name, sides);
    }
  }
  const accounts = [...names].map(([name, sides]) => accountChange(name, sides, cuts, units));
  const whole = nothing();
  for (const account of accounts) {
    addChange(whole, account.change);
  }
  accounts.sort((a, b) => inOrder(a.change, b.change) || (a.name < b.name ? -1 : 1));
  return {
    isSameRun,
    isCut: isSameRun && (last === undefined || cuts.at(-1) === last),
    whole,
    accounts,
    unseenBytes: 3 * Math.max(older.sampling.interval_bytes, newer.sampling.interval_bytes),
  };
}

function accountChange(name, sides, cuts, units) {
  const rows = new Map();
  const unlisted = sides.map((account, side) => {
    if (account === null) {
      return { bytes: 0, objects: 0, variance: 0 };
    }
    let bytes = account.live_bytes;
    let seen = 0;
    for (const one of account.classes) {
      const pair = rows.get(one.class) ?? [null, null];
      pair[side] = one;
      rows.set(one.class, pair);
      bytes = Math.max(0, bytes - one.live_bytes);
      for (const held of one.cohorts ?? []) {
        seen += held.variance * units[side];
      }
    }
    // The published error is rounded up to a byte.
    const error = Math.max(0, (account.live_standard_error_bytes ?? 0) - 1);
    return { bytes, objects: 0, variance: Math.max(0, error * error - seen) };
  });
  const classes = [...rows].map(([name, pair]) => ({ class: name, change: classChange(pair, cuts, units) }));
  let left = unlisted;
  if (unlisted.some((side) => side.bytes > 0)) {
    const change = { ...nothing(), old: unlisted[0].bytes, new: unlisted[1].bytes };
    went(change, unlisted[0]);
    came(change, unlisted[1]);
    classes.push({ class: UNLISTED, change });
    left = [];
  }
  const change = nothing();
  for (const one of classes) {
    addChange(change, one.change);
  }
  // Nobody knows which of the large arrays whose samples were passed over came or went, unless nothing did.
  if (change.came > 0 || change.went > 0) {
    change.variance += left.reduce((sum, side) => sum + side.variance, 0);
  }
  classes.sort((a, b) => inOrder(a.change, b.change) || (a.class < b.class ? -1 : 1));
  return { name, change, classes };
}

function classChange(pair, cuts, units) {
  const change = { ...nothing(), old: pair[0]?.live_bytes ?? 0, new: pair[1]?.live_bytes ?? 0 };
  const sums = Array.from({ length: cuts.length + 1 }, () =>
    [0, 1].map(() => ({ bytes: 0, objects: 0, variance: 0 })));
  for (const [side, one] of pair.entries()) {
    for (const held of one?.cohorts ?? []) {
      const place = cuts.findIndex((cut) => cut >= held.upto_epoch);
      const sum = sums[place < 0 ? cuts.length : place][side];
      sum.bytes += held.live_bytes;
      sum.objects += held.live_objects;
      sum.variance += held.variance * units[side];
    }
  }
  const [bornSince] = sums.splice(-1);
  for (const [older, newer] of sums) {
    went(change, {
      bytes: Math.max(0, older.bytes - newer.bytes),
      objects: Math.max(0, older.objects - newer.objects),
      variance: Math.abs(older.variance - newer.variance),
    });
    came(change, {
      bytes: Math.max(0, newer.bytes - older.bytes),
      objects: Math.max(0, newer.objects - older.objects),
      variance: 0,
    });
  }
  went(change, bornSince[0]);
  came(change, bornSince[1]);
  return change;
}
