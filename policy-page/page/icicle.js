// Stacks as an icicle: the thread's start above, what allocated below, a width for each share.

import { el } from "./dom.js";
import { amountText, bytesText, changeText, countText, nameText, percentText } from "./format.js";

const DEPTH_PIXELS = 24;
/** Frames with a smaller share of what is shown are left out. */
const SMALLEST_SHARE = 0.001;

/** The figures of a place in a document: the sample types of pprof. `error` is the field of the standard error. */
export const SAMPLE_TYPES = [
  { key: "live_bytes", title: "Live bytes", text: bytesText, error: "live_standard_error_bytes", share: "share", stacks: "stacks" },
  { key: "objects", title: "Live objects", text: countText, error: null, share: "share", stacks: "stacks" },
  { key: "allocated_bytes", title: "Allocated bytes", text: bytesText, error: "allocated_standard_error_bytes", share: "allocated_share", stacks: "allocated_stacks" },
  { key: "allocated_objects", title: "Allocated objects", text: countText, error: null, share: "allocated_share", stacks: "allocated_stacks" },
];

/** The standard error of a place's figure; null if the document has none. */
export function siteError(site, type) {
  return type.error === null ? null : (site[type.error] ?? null);
}

/** The error of a change: a later sum of what was allocated has the earlier one in it, if both are of one run. */
export function siteChangeVariance(older, newer, type, isSameRun) {
  return type.key.startsWith("allocated") && isSameRun ? Math.abs(newer - older) : newer + older;
}

function frame(name, level, parent) {
  return { name, level, parent, older: 0, newer: 0, olderVariance: 0, newerVariance: 0, children: new Map() };
}

/** All sites of a document, with their account and class. */
export function sitesOf(document) {
  return (document?.accounts ?? []).flatMap((account) => account.classes.flatMap((one) =>
    one.sites.map((site) => ({ account: account.account, class: one.class, site }))));
}

/** Returns the key that tells places apart: a document has one row for a line of an account and class. */
export function placeKey(one) {
  return [one.account, one.class, one.site.frames[0] ?? one.site.through[0] ?? ""].join("\n");
}

/**
 * The stacks of one or two documents as a tree. `newer` and `older` are lists of sites, as above. The callers of a
 * place are those of its heaviest stack, which may be another one in the older document: the newer one's count.
 */
export function stackTree(newer, older, type) {
  const root = frame("all", 0, null);
  const stacks = new Map();
  for (const [side, sites] of [["newer", newer], ["older", older]]) {
    for (const one of sites) {
      const figure = one.site[type.key] ?? 0;
      if (figure === 0) {
        continue;
      }
      const variance = (siteError(one.site, type) ?? 0) ** 2;
      const key = placeKey(one);
      if (!stacks.has(key)) {
        stacks.set(key, [...one.site.frames].reverse().concat([...one.site.through].reverse(), [one.class]));
      }
      let at = root;
      at[side] += figure;
      at[`${side}Variance`] += variance;
      for (const step of stacks.get(key)) {
        if (!at.children.has(step)) {
          at.children.set(step, frame(step, at.level + 1, at));
        }
        at = at.children.get(step);
        at[side] += figure;
        at[`${side}Variance`] += variance;
      }
    }
  }
  return root;
}

function size(one) {
  return Math.max(one.newer, one.older);
}

/** The icicle of a tree. */
export class Icicle {
  constructor(label) {
    this.label = label;
    this.node = el("div", { class: "icicle", role: "tree", "aria-label": label, onkeydown: (event) => this.pressed(event) });
    this.told = el("p", { class: "note", "aria-live": "polite" });
    this.search = "";
    this.zoomed = [];
  }

  /** Shows another tree; what is zoomed into stays, as far as it is there. */
  show(root, type, isDifference, isSameRun = false) {
    this.isSameRun = isSameRun;
    this.root = root;
    this.type = type;
    this.isDifference = isDifference;
    this.draw();
  }

  /** Marks the frames that have this text in their names. */
  find(text) {
    this.search = text.toLowerCase();
    this.draw();
  }

  focusOf() {
    let at = this.root;
    for (const step of this.zoomed) {
      if (!at.children.has(step)) {
        break;
      }
      at = at.children.get(step);
    }
    return at;
  }

  draw() {
    const top = this.focusOf();
    const hadFocus = this.node.contains(document.activeElement) ? document.activeElement.dataset.path : null;
    this.drawn = new Map();
    this.matched = 0;
    let deepest = 0;
    const elements = [];
    const visit = (one, left, width, path, isBelowMatch) => {
      if (width < SMALLEST_SHARE) {
        return;
      }
      const isMatch = this.search !== "" && one.name.toLowerCase().includes(this.search);
      if (isMatch && !isBelowMatch) {
        this.matched += one.newer;
      }
      const made = this.frameElement(one, top, left, width, path, isMatch);
      this.drawn.set(path, { one, element: made });
      elements.push(made);
      deepest = Math.max(deepest, one.level - top.level);
      let at = left;
      const children = [...one.children.values()].sort((a, b) => size(b) - size(a));
      // Parts of a difference may be wider together than the whole.
      const sum = Math.max(size(one), children.reduce((all, child) => all + size(child), 0), 1);
      for (const [index, child] of children.entries()) {
        const share = (size(child) / sum) * width;
        visit(child, at, share, `${path}.${index}`, isMatch || isBelowMatch);
        at += share;
      }
    };
    visit(top, 0, 1, "0", false);
    this.node.replaceChildren(...elements);
    this.node.style.height = `${(deepest + 1) * DEPTH_PIXELS}px`;
    const focused = this.drawn.get(hadFocus ?? "") ?? this.drawn.get("0");
    focused.element.tabIndex = 0;
    if (hadFocus !== null) {
      focused.element.focus({ preventScroll: true });
    }
    this.tell(top);
  }

  tell(top) {
    if (this.search !== "") {
      const share = top.newer > 0 ? this.matched / top.newer : 0;
      this.told.textContent = `${this.type.text(this.matched)} in stacks that have it, ${percentText(share)} of what is shown.`;
    } else if (top !== this.root) {
      this.told.textContent = `Zoomed into ${nameText(top.name)}. Escape goes back.`;
    } else {
      this.told.textContent = "Click a frame, or press Enter on it, to zoom in. Arrow keys move.";
    }
  }

  figure(one) {
    const error = this.errorOf(one);
    if (this.isDifference) {
      const change = one.newer - one.older;
      return this.type.text === bytesText ? changeText(change, error) : `${change > 0 ? "+" : ""}${countText(change)}`;
    }
    return this.type.text === bytesText ? amountText(one.newer, error) : countText(one.newer);
  }

  errorOf(one) {
    const variance = this.isDifference
      ? siteChangeVariance(one.olderVariance, one.newerVariance, this.type, this.isSameRun) : one.newerVariance;
    return this.type.error === null || variance === 0 ? null : Math.ceil(Math.sqrt(variance));
  }

  frameElement(one, top, left, width, path, isMatch) {
    const share = percentText(size(top) > 0 ? size(one) / size(top) : 0);
    const text = `${nameText(one.name)} ${this.figure(one)}${this.isDifference ? "" : ` (${share})`}`;
    const classes = ["frame", this.tone(one), isMatch ? "match" : ""].join(" ");
    const made = el("div", {
      class: classes, role: "treeitem", tabindex: "-1", title: text, "aria-label": text, "aria-level": one.level - top.level + 1,
      "data-path": path, "data-value": one.newer, "data-older": one.older, "data-error": this.errorOf(one), onclick: () => this.zoom(one),
    }, el("bdi", {}, text));
    made.style.left = `${left * 100}%`;
    made.style.width = `${width * 100}%`;
    made.style.top = `${(one.level - top.level) * DEPTH_PIXELS}px`;
    return made;
  }

  tone(one) {
    if (this.isDifference) {
      return one.newer > one.older ? "grown" : one.newer < one.older ? "shrunk" : "same";
    }
    let hash = 0;
    for (const character of one.name.split("(")[0].split(".").slice(0, 3).join(".")) {
      hash = (hash * 31 + character.codePointAt(0)) % 6;
    }
    return `tone-${hash}`;
  }

  zoom(one) {
    const steps = [];
    for (let at = one; at.parent !== null; at = at.parent) {
      steps.unshift(at.name);
    }
    this.zoomed = steps;
    this.draw();
    const top = this.drawn.get("0").element;
    top.tabIndex = 0;
    top.focus({ preventScroll: true });
  }

  pressed(event) {
    const path = event.target.dataset?.path;
    const here = this.drawn.get(path);
    if (here === undefined) {
      return;
    }
    const parts = path.split(".");
    const last = Number(parts.pop());
    const above = parts.join(".");
    const next = {
      ArrowUp: above,
      ArrowDown: `${path}.0`,
      ArrowLeft: `${above}.${last - 1}`,
      ArrowRight: `${above}.${last + 1}`,
    }[event.key];
    if (next !== undefined) {
      const there = this.drawn.get(next);
      if (there !== undefined) {
        here.element.tabIndex = -1;
        there.element.tabIndex = 0;
        there.element.focus();
      }
    } else if (event.key === "Enter" || event.key === " ") {
      this.zoom(here.one);
    } else if (event.key === "Escape") {
      this.zoom(this.focusOf().parent ?? this.root);
    } else {
      return;
    }
    event.preventDefault();
  }
}
