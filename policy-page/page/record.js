// The accounts as the page has seen them since it was opened, and as the agent remembers them of its last hour.

/** Most points that are kept; beyond it every second one of the older half goes. */
const MAX_POINTS = 1200;
/** Most accounts of a point that is not one of the latest: so many by live bytes, and so many that were refused. */
const MAX_ACCOUNTS = 60;
/** Most changes that are told. */
const MAX_EVENTS = 50;
/** The shortest time over which a rate is taken, in milliseconds. */
const SHORTEST_RATE_MS = 900;

const COUNTS = [
  ["refusals_total", "errors thrown"],
  ["would_refuse_total", "errors that would have been thrown"],
  ["admission_refusals_total", "turned away at its door"],
  ["threads_killed_total", "threads ended by an error"],
];

/** A point in time: `{at, epoch, heapBytes, accounts}`, accounts by name. */
function point(at, heap, accounts) {
  return {
    at,
    epoch: heap.live_gc_epoch,
    heapBytes: heap.used_after_gc_bytes,
    accounts: new Map(accounts.map((account) => [account.name, account])),
  };
}

/** The points of `/api/v1/history`. */
export function remembered(history) {
  return (history?.points ?? []).map((one) => point(Date.parse(one.at), one, one.accounts));
}

/** The readings of one source that are kept, and the colours of its accounts. */
export class Recording {
  constructor() {
    this.points = [];
    this.past = [];
    this.classes = new Map();
    this.colours = new Map();
  }

  /** The colour of an account, the same while the page is open; colours repeat after `most`. */
  colour(name, most) {
    if (!this.colours.has(name)) {
      this.colours.set(name, this.colours.size % most);
    }
    return this.colours.get(name);
  }

  /** A reading of the accounts. */
  add(accounts, at) {
    const slim = accounts.accounts.map((one) => ({
      name: one.name,
      live_bytes: one.live_bytes,
      live_standard_error_bytes: one.live_standard_error_bytes,
      allocated_bytes_total: one.allocated_bytes_total,
      state: one.state,
      ...Object.fromEntries(COUNTS.map(([key]) => [key, one[key] ?? 0])),
    }));
    const made = point(at, accounts.heap, slim);
    made.cpuMilliseconds = total(accounts.costs?.cpu_milliseconds);
    this.points.push(made);
    // The latest two give rates.
    slimDown(this.points.at(-3));
    thin(this.points);
  }

  /** A reading of one class. */
  addClass(key, at, bytes) {
    if (!this.classes.has(key)) {
      this.classes.clear();
      this.classes.set(key, []);
    }
    const points = this.classes.get(key);
    points.push({ at, bytes });
    thin(points);
  }

  /** The last hour and what was seen since, oldest first. */
  all() {
    const opened = this.points[0]?.at ?? Infinity;
    return [...this.past.filter((one) => one.at < opened), ...this.points];
  }

  /** Bytes that an account allocates in a second, over the last moment; null if that is not known. */
  rate(name) {
    return this.perSecond((one) => one.accounts.get(name)?.allocated_bytes_total);
  }

  /** The share of a processor that the agent uses; null if that is not known. */
  processors() {
    const milliseconds = this.perSecond((one) => one.cpuMilliseconds);
    return milliseconds === null ? null : milliseconds / 1000;
  }

  perSecond(value) {
    const last = this.points.at(-1);
    const before = this.points.findLast((one) => last.at - one.at >= SHORTEST_RATE_MS);
    const [from, to] = [before && value(before), last && value(last)];
    if (from === undefined || to === undefined || from === null || to === null || to < from) {
      return null;
    }
    return ((to - from) * 1000) / (last.at - before.at);
  }

  /** Returns the refusals and ended threads of the accounts, latest first: `{from, to, account, what, count}`. */
  events() {
    const events = [];
    const points = this.all();
    for (let at = points.length - 1; at > 0 && events.length < MAX_EVENTS; at -= 1) {
      const [before, after] = [points[at - 1], points[at]];
      for (const [name, account] of after.accounts) {
        const earlier = before.accounts.get(name);
        for (const [key, what] of COUNTS) {
          const more = (account[key] ?? 0) - (earlier?.[key] ?? 0);
          if (earlier !== undefined && more > 0) {
            events.push({ from: before.at, to: after.at, account: name, what, count: more });
          }
        }
      }
    }
    return events.slice(0, MAX_EVENTS);
  }
}

/** Leaves a point its largest accounts, and those that were refused. */
function slimDown(one) {
  if (one === undefined || one.accounts.size <= 2 * MAX_ACCOUNTS) {
    return;
  }
  const all = [...one.accounts.values()].sort((a, b) => b.live_bytes - a.live_bytes);
  const others = all.splice(MAX_ACCOUNTS).filter((account) => COUNTS.some(([key]) => account[key] > 0));
  one.accounts = new Map([...all, ...others.slice(0, MAX_ACCOUNTS)].map((account) => [account.name, account]));
}

/** The sum of an object of counts; null where there is none. */
export function total(counts) {
  return counts ? Object.values(counts).reduce((sum, one) => sum + one, 0) : null;
}

function thin(points) {
  if (points.length > MAX_POINTS) {
    const half = points.length >> 1;
    const older = points.splice(0, half).filter((_, at) => at % 2 === 0);
    points.unshift(...older);
  }
}
