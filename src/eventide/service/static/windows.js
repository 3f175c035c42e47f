// The histogram of the last steps as it moves: the largest bins as bars that change places, each with its error.

import { duration, find, many, number } from "./format.js";
import { shortTime } from "./times.js";

const BARS = 12;
const DEVIATIONS = 2 * Math.SQRT2; // two standard deviations of Laplace noise, in scales

export class Windows {
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.bars = new Map(); // bin -> its row on the page
    this.pinned = null; // the step that somebody looks back at; without one the newest is shown
    find("windows-time").addEventListener("input", () => { this.pinned = Number(find("windows-time").value); this.draw(this.history); });
    find("windows-live").addEventListener("click", () => { this.pinned = null; this.draw(this.history); });
  }

  draw(history) {
    if (this.history !== history) this.pinned = null;
    this.history = history;
    find("windows").hidden = !history.info.span;
    const told = history.releases.filter((release) => release.window_values);
    if (!history.info.span || !told.length) {
      this.show(history, []);
      return;
    }
    const slider = find("windows-time");
    [slider.min, slider.max] = [told[0].step, told[told.length - 1].step];
    const release = told.findLast(({ step }) => this.pinned !== null && step <= this.pinned) ?? told[told.length - 1];
    if (release.step === told[told.length - 1].step) this.pinned = null;
    slider.value = release.step;
    slider.setAttribute("aria-valuetext", shortTime(release));
    find("windows-live").hidden = this.pinned === null;
    find("windows-note").textContent =
      "The " + many(history.info.span, "step") + " of " + duration(history.info.step_seconds) + " that end with the one at " + shortTime(release) +
      ", with two standard deviations of the noise.";
    const largest = history.busiest(release.window_values, release.window_values.map((_, bin) => bin)).slice(0, BARS);
    this.show(history, largest.map((bin) => ({ bin, value: release.window_values[bin], scale: release.window_scale?.[bin] ?? null })));
  }

  // Rows stay the same elements while their bins are shown, so that they move instead of jumping.
  show(history, rows) {
    const most = Math.max(1, ...rows.map(({ value }) => value));
    const shown = new Set(rows.map(({ bin }) => bin));
    [...this.bars].filter(([bin]) => !shown.has(bin)).forEach(([bin, row]) => { row.remove(); this.bars.delete(bin); });
    rows.forEach(({ bin, value, scale }, rank) => {
      if (!this.bars.has(bin)) this.bars.set(bin, this.made(bin));
      const row = this.bars.get(bin);
      const [name, track, count] = row.children;
      row.style.setProperty("--rank", rank);
      name.textContent = name.title = history.bins[bin];
      track.firstChild.style.width = (100 * Math.max(0, value)) / most + "%";
      count.textContent = number(value) + (scale === null ? "" : " ± " + number(DEVIATIONS * scale));
    });
    find("windows-bars").style.setProperty("--rows", rows.length);
  }

  made(bin) {
    const row = document.createElement("li");
    const [name, track, count] = ["button", "span", "span"].map((tag) => document.createElement(tag));
    name.type = "button";
    name.addEventListener("click", () => this.onChoose(bin));
    track.className = "track";
    track.append(document.createElement("span"));
    count.className = "value";
    row.append(name, track, count);
    find("windows-bars").append(row);
    return row;
  }
}
