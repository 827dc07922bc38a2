// Figures as people read them. Amounts are in bytes unless a name says otherwise.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** The power of 1024 in which a number of bytes is shown. */
function unitOf(bytes) {
  let power = 0;
  for (let left = Math.abs(bytes); left >= 1024 && power < UNITS.length - 1; left /= 1024) {
    power += 1;
  }
  return power;
}

function digits(value, power) {
  if (power === 0) {
    return COUNT.format(value);
  }
  return value.toFixed(Math.abs(value) >= 100 ? 0 : 1);
}

/** `12.3 MiB` */
export function bytesText(bytes) {
  const power = unitOf(bytes);
  return `${digits(bytes / 1024 ** power, power)} ${UNITS[power]}`;
}

/** `12.3 ± 0.4 MiB`; without the error where it is not known. */
export function amountText(bytes, error) {
  if (error === null || error === undefined) {
    return bytesText(bytes);
  }
  const power = Math.max(unitOf(bytes), error > Math.abs(bytes) ? unitOf(error) : 0);
  const scale = 1024 ** power;
  return `${digits(bytes / scale, power)} ± ${digits(error / scale, power)} ${UNITS[power]}`;
}

/** `+12.3 ± 0.4 MiB` */
export function changeText(bytes, error) {
  return (bytes > 0 ? "+" : "") + amountText(bytes, error);
}

/** `1,234` */
export function countText(count) {
  return COUNT.format(count);
}

/** `12.3 %` of a ratio. */
export function percentText(ratio) {
  return `${(ratio * 100).toFixed(1)} %`;
}

/** `12.3 MiB/s` */
export function rateText(bytesPerSecond) {
  return `${bytesText(Math.round(bytesPerSecond))}/s`;
}

/** `3.2 s`, `4 min`, `2.5 h`, `3 days` */
export function durationText(seconds) {
  if (seconds < 10) {
    return `${seconds.toFixed(1)} s`;
  }
  if (seconds < 120) {
    return `${Math.round(seconds)} s`;
  }
  if (seconds < 7200) {
    return `${Math.round(seconds / 60)} min`;
  }
  if (seconds < 172800) {
    return `${(seconds / 3600).toFixed(1)} h`;
  }
  return `${Math.round(seconds / 86400)} days`;
}

/** The time of day of a number of milliseconds since 1970, where the reader is. */
export function timeText(milliseconds) {
  return new Date(milliseconds).toLocaleTimeString("en-GB");
}

/** Date and time of what RFC 3339 has. */
export function dateText(rfc3339) {
  const at = new Date(rfc3339);
  return Number.isNaN(at.getTime()) ? "unknown" : `${at.toLocaleDateString("en-CA")} ${at.toLocaleTimeString("en-GB")}`;
}

// Characters that cannot be seen, or that turn the direction of others.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]|[\ud800-\udfff]/gu;

/** A name that a tenant may have chosen, with every character to be seen. */
export function nameText(name) {
  return name.replace(UNSEEN, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
}
