// Makes elements. Texts become text nodes, so no name is ever markup.

import { amountText, bytesText, changeText, countText, nameText } from "./format.js";

/** An element with attributes; `on…` are listeners. Children are nodes, texts, lists of these, or null. */
export function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  set(made, attributes);
  append(made, children);
  return made;
}

/** The same in SVG. */
export function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(made, attributes);
  append(made, children);
  return made;
}

function set(made, attributes) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) {
      continue;
    }
    if (name.startsWith("on")) {
      made.addEventListener(name.slice(2), value);
    } else {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

function append(made, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined) {
      made.append(child);
    }
  }
}

/** A name that a tenant may have chosen: isolated, so that it cannot reorder the text around it. */
export function nameNode(name) {
  return el("bdi", { class: "name" }, nameText(name));
}

/** An address within the page. */
export function address(view, parts = [], query = {}) {
  const path = [view, ...parts].map(encodeURIComponent).join("/");
  const search = new URLSearchParams();
  const source = current.get("source");
  for (const [key, value] of Object.entries(source === null ? query : { ...query, source })) {
    if (value !== null && value !== undefined && value !== "") {
      search.set(key, value);
    }
  }
  const text = search.toString();
  return `#/${path}${text === "" ? "" : `?${text}`}`;
}

/** The query of the address that is shown. */
export let current = new URLSearchParams();

/** Another address is shown. */
export function shown(query) {
  current = query;
}

/** A link to an account. */
export function accountLink(name) {
  return el("a", { href: address("account", [name]) }, nameNode(name));
}

/** A link to a class of an account. */
export function classLink(account, name) {
  return el("a", { href: address("class", [account, name]) }, nameNode(name));
}

/** Bytes with their error. The exact figures are the value and the title. */
export function amount(bytes, error) {
  const known = error !== null && error !== undefined;
  const title = known ? `${countText(bytes)} bytes ± ${countText(error)}` : `${countText(bytes)} bytes`;
  return el("data", { value: bytes, "data-error": known ? error : null, title }, amountText(bytes, error));
}

/** A change in bytes with its error. */
export function changeNode(bytes, error) {
  const title = `${countText(bytes)} bytes ± ${countText(error)}`;
  return el("data", { value: bytes, "data-error": error, title }, changeText(bytes, error));
}

/** Bytes that are exact, such as a limit. */
export function exactBytes(bytes) {
  return el("data", { value: bytes, title: `${countText(bytes)} bytes` }, bytesText(bytes));
}

/** A number. */
export function count(number) {
  return el("data", { value: number }, countText(number));
}

/** A list of figures: pairs of a term and what it is; null is left out. */
export function figures(pairs) {
  const shownPairs = pairs.filter((pair) => pair !== null);
  return el("dl", { class: "figures" }, shownPairs.map(([term, ...what]) =>
    el("div", { "data-term": term }, el("dt", {}, term), el("dd", {}, what))));
}

/** A part of a view under a heading. */
export function section(title, ...children) {
  return el("section", { "aria-label": title }, el("h2", {}, title), children);
}

/** A remark. */
export function note(...text) {
  return el("p", { class: "note" }, text);
}

/** The state of an account, in words and in colour. */
export function stateBadge(account) {
  return el("span", { class: `badge state-${account.state}` }, account.state);
}

/** A plain table for a few rows: titles, and rows of cells. The first column is the head of each row. */
export function plainTable(label, titles, rows) {
  const head = el("tr", {}, titles.map((title, at) => el("th", { scope: "col", class: at > 0 ? "number" : null }, title)));
  const body = rows.map((cells) => el("tr", {}, cells.map((cell, at) =>
    at === 0 ? el("th", { scope: "row" }, cell) : el("td", { class: "number" }, cell))));
  const table = el("table", { "aria-label": label }, el("thead", {}, head), el("tbody", {}, body));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
}

/** Puts what is new in the place of what was there, and the focus back where it was. */
export function refill(place, ...children) {
  const focused = place.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  place.replaceChildren();
  append(place, children);
  if (focused !== null) {
    const again = [...place.querySelectorAll("a, button, [tabindex]")].find((one) => keyOf(one) === focused);
    again?.focus({ preventScroll: true });
  }
}

function keyOf(element) {
  return `${element.tagName} ${element.getAttribute("href") ?? element.getAttribute("aria-label") ?? element.textContent}`;
}
