// A table of many rows: sorted by a column, filtered by text. Only the rows in sight are in the document.

import { el } from "./dom.js";
import { countText } from "./format.js";

/** The height of a row in pixels, as the style sheet has it. */
const ROW = 30;
/** Rows beyond the edges of what is in sight. */
const MORE = 12;
/** The most rows that are in the document at a time, whatever the height of the window. */
const MOST = 200;

/**
 * A table. `columns` are `{title, help, text, number, cell, width}`: `text(row)` or `number(row)` is what it is
 * sorted by, `cell(row)` what is shown. `key(row)` tells rows apart; `search(row)` is what the filter looks in.
 */
export class DataTable {
  constructor({ label, columns, key, search, sorted = 0, height = "60vh" }) {
    this.columns = columns;
    this.key = key;
    this.search = search;
    this.sorted = sorted;
    this.descending = columns[sorted].number !== undefined;
    this.rows = [];
    this.listed = [];
    this.texts = new Map();
    this.filter = "";
    this.head = columns.map((column, at) => this.headCell(column, at));
    this.body = el("tbody");
    this.foot = el("tfoot");
    this.table = el("table", { class: "data", "aria-label": label },
      el("colgroup", {}, columns.map((column) => this.columnWidth(column))),
      el("thead", {}, el("tr", { "aria-rowindex": "1" }, this.head)), this.body, this.foot);
    this.region = el("div", { class: "scroll rows", tabindex: "0", role: "region", "aria-label": label }, this.table);
    this.region.style.maxHeight = height;
    this.region.addEventListener("scroll", () => this.draw());
    this.input = el("input", { type: "search", "aria-label": `Filter: ${label}`, placeholder: "Filter", oninput: () => {
      this.filter = this.input.value.toLowerCase();
      this.list();
    } });
    this.told = el("output", { class: "told" });
    this.node = el("div", { class: "table" }, el("div", { class: "bar-of-table" }, this.input, this.told), this.region);
  }

  columnWidth(column) {
    const made = el("col");
    made.style.width = column.width ?? "8.5em";
    return made;
  }

  headCell(column, at) {
    const button = el("button", { type: "button", title: column.help, onclick: () => {
      this.descending = this.sorted === at ? !this.descending : column.number !== undefined;
      this.sorted = at;
      this.list();
    } }, column.title);
    return el("th", { scope: "col", class: column.number ? "number" : null }, button);
  }

  /** Shows other rows; order, filter and place stay. `foot` is a row of cells beneath. */
  show(rows, foot = null) {
    this.rows = rows;
    this.texts.clear();
    this.foot.replaceChildren();
    if (foot !== null) {
      this.foot.append(el("tr", {}, foot.map((cell, at) =>
        el(at === 0 ? "th" : "td", { scope: at === 0 ? "row" : null, class: this.columns[at].number ? "number" : null }, cell))));
    }
    this.list();
  }

  text(row) {
    const key = this.key(row);
    let text = this.texts.get(key);
    if (text === undefined) {
      text = this.search(row).toLowerCase();
      this.texts.set(key, text);
    }
    return text;
  }

  list() {
    const column = this.columns[this.sorted];
    const value = column.number ?? column.text;
    const kept = this.filter === "" ? this.rows : this.rows.filter((row) => this.text(row).includes(this.filter));
    const keyed = kept.map((row) => [value(row), row]);
    const compare = column.number ? (a, b) => (a[0] ?? -1) - (b[0] ?? -1) : (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0);
    keyed.sort(this.descending ? (a, b) => compare(b, a) : compare);
    this.listed = keyed.map(([, row]) => row);
    for (const [at, cell] of this.head.entries()) {
      if (at === this.sorted) {
        cell.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      } else {
        cell.removeAttribute("aria-sort");
      }
    }
    this.table.setAttribute("aria-rowcount", String(this.listed.length + 1));
    const all = countText(this.rows.length);
    this.told.textContent = this.filter === "" ? `${all} rows` : `${countText(this.listed.length)} of ${all} rows`;
    this.from = -1;
    this.draw();
  }

  draw() {
    const inSight = Math.ceil((this.region.clientHeight || 600) / ROW);
    const first = Math.floor(this.region.scrollTop / ROW) - MORE;
    const from = Math.max(0, Math.min(first, this.listed.length - inSight));
    const to = Math.min(this.listed.length, from + Math.min(MOST, inSight + 2 * MORE));
    // A few pixels of scrolling change nothing.
    if (this.from === from) {
      return;
    }
    this.from = from;
    const focused = this.body.contains(document.activeElement)
      ? document.activeElement.closest("tr").dataset.key : null;
    const rows = this.listed.slice(from, to).map((row, at) => this.row(row, from + at));
    this.body.replaceChildren(this.space(from), ...rows, this.space(this.listed.length - to));
    if (focused !== null) {
      const again = rows.find((row) => row.dataset.key === focused);
      (again?.querySelector("a") ?? this.region).focus({ preventScroll: true });
    }
  }

  row(row, at) {
    const cells = this.columns.map((column, place) => {
      const tag = place === 0 ? "th" : "td";
      return el(tag, { scope: place === 0 ? "row" : null, class: column.number ? "number" : null }, column.cell(row));
    });
    return el("tr", { "aria-rowindex": at + 2, "data-key": this.key(row) }, cells);
  }

  space(rows) {
    const made = el("tr", { class: "space", "aria-hidden": "true" });
    made.style.height = `${rows * ROW}px`;
    return made;
  }
}
