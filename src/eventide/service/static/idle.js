// A stream that brings nothing new: no release for longer than a step, or releases that only repeat.

import { duration, many, number } from "./format.js";
import { shortTime, wallTime } from "./times.js";

// Why nothing is new, and which times of the chart that concerns; null while something is.
export function idleness(history) {
  const { info, releases, latest } = history;
  if (!latest) return null;
  if (info.lag_seconds > 0 && info.next_step === latest.step + 1) {
    const passed = 1000 * (info.step_seconds + info.lag_seconds);
    const until = info.next_start ? { start: new Date(Date.parse(info.next_start) + passed).toISOString() } : { step: info.next_step };
    return {
      short: "no new release",
      sentence: "No new release for " + duration(info.lag_seconds + info.step_seconds) + ": the last one is of " + shortTime(latest) + ". What is shown is not of now.",
      label: "no release",
      from: wallTime({ start: info.next_start, step: info.next_step }),
      until: wallTime(until),
    };
  }
  const measured = releases.findLastIndex((release) => release.measured);
  const repeats = releases.length - 1 - measured;
  const waits = latest.step < info.measured_from && repeats > 0;
  if (!waits && repeats < Math.max(2, Math.min(info.window, releases.length))) return null;
  const since = measured < 0 ? "in the steps shown here" : "since " + shortTime(releases[measured]);
  const until = waits ? " Step " + number(info.measured_from) + " is the next to be measured: before it there is no budget." : "";
  return {
    short: "only repeats",
    sentence: "Nothing was measured " + since + ": the last " + many(repeats, "release") + " only repeat what was known before." + until,
    label: "not measured",
    from: wallTime(releases[measured + 1]),
    until: wallTime(latest),
  };
}
