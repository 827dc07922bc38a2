// Where the documents come from: the agent that serves the page, the JVMs and files that `heapwarden ui`
// shows, or the page itself, if it is a report.

/** `agent`, `command` or `report`. */
export const MODE = document.documentElement.dataset.mode;

const PATHS = {
  accounts: "api/v1/accounts",
  classes: "api/v1/accounts?classes=all",
  leaks: "api/v1/leaks",
  sites: "api/v1/sites",
  walks: "api/v1/paths",
  instances: "api/v1/instances",
  history: "api/v1/history",
  fleet: "api/v1/fleet",
  snapshot: "api/v1/snapshot",
  snapshots: "api/v1/snapshots",
};

let embedded = null;

function documents() {
  embedded ??= JSON.parse(document.getElementById("documents").textContent);
  return embedded;
}

/**
 * Lists the sources that can be shown, as `{id, name, kind}`; kind is `agent`, `snapshot`, `report`, or of what
 * Prometheus has recorded `fleet` (all JVMs) or `recorded` (one).
 */
export async function sources() {
  if (MODE === "command") {
    return fetched("api/v1/sources");
  }
  if (MODE === "report") {
    return [{ id: "", name: documents().about.address, kind: "report" }];
  }
  return [{ id: "", name: location.host, kind: "agent" }];
}

/** Whether what a source says changes while one looks. */
export function isLive(source) {
  return source.kind !== "snapshot" && source.kind !== "report";
}

/** The shortest pause between two readings of it: Prometheus is asked twice a minute. */
export function pauseMs(source) {
  return source.kind === "agent" ? 2000 : 30_000;
}

/** A document of a source; null if the source has none of its kind. */
export async function read(source, what) {
  if (source.kind === "report") {
    const all = documents();
    return all[PATHS[what]] ?? (what === "accounts" ? all[PATHS.classes] : null) ?? null;
  }
  if (source.kind === "snapshot") {
    return ofSnapshot(await kept(source), what);
  }
  return fetched(base(source) + PATHS[what]);
}

/** A file of the agent's folder of snapshots. */
export async function readFile(source, name) {
  return fetched(`${base(source)}api/v1/snapshots/${encodeURIComponent(name)}`);
}

function base(source) {
  return source.id === "" ? "" : `source/${encodeURIComponent(source.id)}/`;
}

const files = new Map();

async function kept(source) {
  if (!files.has(source.id)) {
    files.set(source.id, fetched(base(source) + PATHS.snapshot));
  }
  try {
    return await files.get(source.id);
  } catch (error) {
    files.delete(source.id);
    throw error;
  }
}

function ofSnapshot(document, what) {
  switch (what) {
    case "accounts":
    case "classes":
    case "snapshot":
      return document;
    case "sites":
      return document.sites ?? null;
    default:
      return null;
  }
}

async function fetched(path) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", credentials: "omit" });
  } catch {
    throw new Error("There is no answer: the JVM has ended, or it cannot be reached.");
  }
  if (answer.status === 404) {
    return null;
  }
  if (!answer.ok) {
    throw new Error((await answer.text()).trim().slice(0, 500));
  }
  return answer.json();
}
