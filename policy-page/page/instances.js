// Single objects, as the last answers to `heapwarden instances` have them.

import { amount, count, el, exactBytes, nameNode, note, plainTable } from "./dom.js";
import { countText, dateText, durationText, nameText } from "./format.js";

function valueNode(value) {
  if (!value) {
    return "";
  }
  const length = value.length === null || value.length === undefined ? "" : ` (length ${countText(value.length)})`;
  if (value.text !== null && value.text !== undefined) {
    return [nameNode(value.text), length];
  }
  return value.digest ? [el("span", { title: "Masked: equal values of one answer have equal digests" }, nameText(`#${value.digest}`)), length] : length;
}

function ageRange(row) {
  const [least, most] = [durationText(row.age_at_least_seconds), durationText(row.age_at_most_seconds)];
  return least === most ? least : `${least} to ${most}`;
}

function objectsTable(title, rows) {
  const optional = (number) => (number === null || number === undefined ? "" : count(number));
  return plainTable(title, ["Class", "Bytes", "Elements", "Capacity", "Age", "Collections", "Value"], rows.map((row) => [
    nameNode(row.class), exactBytes(row.bytes), optional(row.elements), optional(row.capacity), ageRange(row),
    count(row.collections_survived), valueNode(row.value),
  ]));
}

function tablePart(title, rows, table) {
  if (!rows) {
    return null;
  }
  return [el("h3", {}, title), rows.length === 0 ? note("Nothing.") : table(title, rows)];
}

function answerNode(answer) {
  return [
    note(`Asked at ${dateText(answer.at)}: `, answer.class ? ["of ", nameNode(answer.class), ", "] : null,
      `${countText(answer.looked_at)} of ${countText(answer.sampled)} sampled objects were looked at`,
      answer.cut_short ? ["; fewer than there should be: ", nameText(answer.cut_short)] : null,
      answer.values_shown ? "." : ". Values are masked: the policy does not allow them."),
    answer.not_readable?.length > 0 ? note("Not readable in this JDK: ", answer.not_readable.map((one, at) => [at > 0 ? ", " : "", nameNode(one)])) : null,
    tablePart("Largest objects", answer.largest, objectsTable),
    tablePart("Most elements", answer.elements, objectsTable),
    tablePart("Oldest objects", answer.oldest, objectsTable),
    tablePart("Most frequent equal values", answer.equal, (title, rows) =>
      plainTable(title, ["Class", "Objects", "Live", "With content", "Samples", "Value"], rows.map((row) => [
        nameNode(row.class), count(row.objects), amount(row.live_bytes, row.standard_error_bytes),
        amount(row.with_content_bytes, row.with_content_standard_error_bytes), count(row.samples), valueNode(row.value),
      ]))),
    tablePart("Wasted capacity", answer.wasted, (title, rows) =>
      plainTable(title, ["Class", "Objects", "Empty", "Wasted", "Of", "Samples"], rows.map((row) => [
        nameNode(row.class), count(row.objects), count(row.empty_objects), amount(row.wasted_bytes, row.standard_error_bytes),
        exactBytes(row.capacity_bytes), count(row.samples),
      ]))),
  ];
}

/** A word of a shell's command line. */
function quoted(word) {
  return `'${nameText(word).replaceAll("'", "'\\''")}'`;
}

/** The last answer about an account, or about one of its classes, and the command line that asks. */
export function instancesOf(known, jvm, account, name) {
  const pid = jvm?.pid > 0 ? jvm.pid : "PID";
  const ofClass = name === null ? "" : ` --class ${quoted(name)}`;
  const ask = el("p", {}, "To ask: ", el("code", {}, `heapwarden instances ${pid} --account ${quoted(account)}${ofClass}`));
  if (known === null) {
    return note("This source has no answers about single objects.");
  }
  const found = known.answers.find((one) => one.account === account && (name === null || one.class === name));
  return [ask, found ? answerNode(found) : note("Nobody asked lately.")];
}
