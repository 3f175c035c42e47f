// Levels: the groups that bins belong to. Groups stand behind the bins as rows of their own, and add up to the bins.

import { find, number } from "./format.js";

export class Levels {
  constructor(bins, levels, spare = []) {
    this.bins = bins.length;
    this.levels = levels;
    this.waiting = new Set(spare); // spare bins without a name, which nobody needs to see
    let first = bins.length;
    this.firsts = levels.map(({ groups }) => { const place = first; first += groups.length; return place; });
    this.names = [...bins, ...levels.flatMap(({ groups }) => groups)];
  }

  // Bins that got names meanwhile.
  rename({ bins, spare }) {
    this.names.splice(0, bins.length, ...bins);
    this.waiting = new Set(spare);
  }

  // Whether a row has anything to show: it is no spare bin, and no group of these alone.
  shown(row) {
    const level = this.levelOf(row);
    if (level < 0) return !this.waiting.has(row);
    return this.levels[level].group_of.some((group, bin) => group === row - this.firsts[level] && !this.waiting.has(bin));
  }

  get total() {
    return this.names.length - 1;
  }

  // A release with a value for each row; one from before there were levels gets sums.
  flat(release) {
    if (!this.levels.length) return release;
    const parts = this.levels.map((level) => release.levels?.[level.name] ?? this.summed(release, level));
    const joined = (kind) => (release[kind] ? [...release[kind], ...parts.flatMap((part) => part[kind] ?? part.values.map(() => null))] : undefined);
    return { ...release, values: joined("values"), scale: joined("scale"), low: joined("low"), high: joined("high") };
  }

  summed({ values }, { groups, group_of }) {
    const sums = groups.map(() => 0);
    values.forEach((value, bin) => { sums[group_of[bin]] += value; });
    return { values: sums, scale: sums.map(() => null) };
  }

  counts(values) {
    return this.flat({ values, scale: values.map(() => null) }).values;
  }

  // The level that a row belongs to, by its place; -1 for a bin.
  levelOf(row) {
    return this.firsts.findLastIndex((first) => row >= first);
  }

  // What a group is made of: the total of the groups of a level (or of the bins), any other group of its bins.
  inside(row, divided) {
    const level = this.levelOf(row);
    if (level < 0) return [row];
    if (row === this.total) {
      const chosen = this.levels.findIndex(({ name }) => name === divided);
      if (chosen >= 0) return this.levels[chosen].groups.map((_, place) => this.firsts[chosen] + place).filter((group) => this.shown(group));
    }
    const { group_of } = this.levels[level];
    return group_of.flatMap((group, bin) => (group === row - this.firsts[level] && this.shown(bin) ? [bin] : []));
  }
}

// Which group is open: starts at the total, divided into the largest groups.
export class OpenGroup {
  constructor(onChange) {
    this.onChange = onChange;
    find("divided").addEventListener("change", () => this.open(this.levels.total));
    find("open-total").addEventListener("click", () => this.open(this.levels.total));
  }

  begin(levels) {
    this.levels = levels;
    this.row = levels.levels.length ? levels.total : null;
    const named = levels.levels.slice(0, -1).map(({ name }) => name).reverse();
    find("divided").replaceChildren(...[...named, "bin"].map((name) => new Option(name, name)));
    find("levels").hidden = this.row === null;
  }

  // The rows to show: those of the open group, or all bins.
  get rows() {
    if (this.row === null) return [...Array(this.levels.bins).keys()].filter((bin) => this.levels.shown(bin));
    return this.levels.inside(this.row, find("divided").value);
  }

  open(row) {
    if (this.levels.levelOf(row) < 0) return;
    this.row = row;
    this.onChange();
  }

  // Above the rows stands what they add up to.
  draw(latest) {
    if (this.row === null) return;
    const atTotal = this.row === this.levels.total;
    find("open-total").hidden = atTotal;
    find("divided-choice").hidden = !atTotal;
    find("open-name").textContent = this.levels.names[this.row];
    find("open-sum").textContent = number(latest?.values[this.row], 3);
    find("open-note").textContent = "is the sum of the " + number(this.rows.length) + (this.rows.length === 1 ? " row below" : " rows below");
  }
}
