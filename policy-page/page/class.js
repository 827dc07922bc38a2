// One class of an account: how old and how large its objects are, where they were allocated, whether it grows.

import { areas, bar } from "./chart.js";
import { chains, forecastText, sitesList } from "./account.js";
import { instancesOf } from "./instances.js";
import { accountLink, address, amount, count, el, exactBytes, figures, nameNode, note, plainTable, refill, section } from "./dom.js";
import { bytesText, countText, durationText, percentText, rateText } from "./format.js";

function histogram(label, title, bins, bound) {
  if (!bins || bins.length === 0) {
    return note("This source does not say.");
  }
  const all = Math.max(1, bins.reduce((sum, bin) => sum + bin.live_bytes, 0));
  let before = null;
  const rows = bins.map((bin) => {
    const upto = bin.upto === null || bin.upto === undefined ? null : bin.upto;
    const text = upto === null ? (before === null ? "any" : `over ${bound(before)}`) : `up to ${bound(upto)}`;
    before = upto ?? before;
    return [text, exactBytes(bin.live_bytes), count(bin.live_objects), [percentText(bin.live_bytes / all), bar(bin.live_bytes / all)]];
  });
  return plainTable(label, [title, "Live", "Objects", "Share"], rows);
}

/** Returns a table of earlier looks at the class; null if there were none. */
function courseTable(course) {
  if (!course || course.length === 0) {
    return null;
  }
  return plainTable("At earlier looks", ["Before", "Live", "Generations"], course.map((one) => [
    durationText(one.seconds_ago), exactBytes(one.live_bytes), count(one.generations),
  ]));
}

function trend(row, leaks) {
  if (leaks === null) {
    return note("This source has no report of leaks.");
  }
  const is = (one) => one.account === row.account && one.class === row.class;
  const suspect = leaks.suspects.find(is);
  if (suspect) {
    return [
      el("p", {}, el("strong", {}, "Suspected of a leak: "),
        `it grows by ${rateText(suspect.growth_bytes_per_second)} ± ${rateText(suspect.growth_standard_error)} over ${durationText(suspect.window_seconds)}.`),
      el("p", {}, forecastText(suspect.exhausts)),
      courseTable(suspect.course),
    ];
  }
  const growing = [...leaks.growing, ...leaks.acknowledged].find(is);
  if (growing) {
    return el("p", {}, `It grows by ${rateText(growing.growth_bytes_per_second)}, and is no suspect: ${growing.why}.`);
  }
  return el("p", {}, leaks.undecided ? `No verdict yet: ${leaks.undecided}.` : "It does not grow.");
}

function sitesOfClass(sites, leaks, account, name) {
  const suspect = leaks?.suspects.find((one) => one.account === account && one.class === name);
  const row = sites?.accounts.find((one) => one.account === account)?.classes.find((one) => one.class === name);
  const survivors = (row?.sites ?? []).filter((site) => site.stacks > 0);
  if (survivors.length > 0) {
    return [
      note(`By ${countText(row.stacks)} stacks, of ${bytesText(row.with_stack_bytes)} of its ${bytesText(row.live_bytes)}: what was allocated since stacks are taken.`),
      sitesList(survivors),
      row.sites_omitted > 0 ? note(`${countText(row.sites_omitted)} smaller places are not listed.`) : null,
      el("p", {}, el("a", { href: address("flames", [], { account, class: name }) }, "As an icicle")),
    ];
  }
  if (suspect && suspect.sites.length > 0) {
    return sitesList(suspect.sites);
  }
  return note("No stacks are taken of it. They are for suspects, and for accounts that the policy names in [leaks] sites.");
}

/** The view. */
export function classView(context) {
  const [account, name] = context.parts;
  const [top, ages, collections, sizes, where, grows, chart] = Array.from({ length: 7 }, () => el("div"));
  const [holders, single] = [el("div"), el("div")];
  const key = `${account}\n${name}`;
  const draw = () => {
    const points = context.recording.classes.get(key) ?? [];
    refill(chart, areas("Live bytes", points.map((one) => one.at), [{ values: points.map((one) => one.bytes) }], null, chart.clientWidth));
  };
  return {
    title: ["Class ", nameNode(name)],
    needs: ["classes", "leaks", "sites", "walks", "instances"],
    node: el("div", {}, el("p", {}, "In account ", accountLink(account)), top,
      section("Trend", grows, chart), section("Where it was allocated", where), section("Who keeps it alive", holders),
      section("Ages", ages, collections), section("Sizes of one object", sizes), section("Single objects", single)),
    update({ classes, leaks, sites, walks, instances }, at) {
      const row = classes.accounts.find((one) => one.name === account)?.classes.find((one) => one.class === name);
      if (row === undefined) {
        refill(top, note("The account holds nothing of this class, or too little to be listed."));
      } else {
        context.recording.addClass(key, at, row.live_bytes);
        refill(top, figures([
          ["Live", amount(row.live_bytes, row.live_standard_error_bytes)],
          ["Objects", count(row.live_objects)],
          ["Bytes each", row.live_objects > 0 ? exactBytes(Math.round(row.live_bytes / row.live_objects)) : "–"],
          ["Allocated in all", exactBytes(row.allocated_bytes_total)],
          row.freed_bytes_total === undefined ? null : ["Freed", exactBytes(row.freed_bytes_total)],
          row.generations === undefined ? null : ["Generations", count(row.generations)],
          row.sample_share === undefined ? null : ["Samples kept", percentText(row.sample_share)],
        ]));
      }
      refill(grows, trend({ account, class: name }, leaks));
      draw();
      refill(where, sitesOfClass(sites, leaks, account, name));
      refill(holders, chains(walks, (chain) => chain.account === account && chain.class === name));
      refill(single, instancesOf(instances, classes.jvm, account, name));
      refill(ages, histogram("Ages in time", "Age", row?.ages_seconds, durationText));
      refill(collections, histogram("Ages in collections", "Collections survived", row?.ages_collections, countText));
      refill(sizes, histogram("Sizes", "Size", row?.sizes, bytesText));
    },
    resized: draw,
  };
}
