// What the page remembers of a stream: the last releases, oldest first, and what follows from them.

const NOISE_INSIDE = Math.log(20); // discrete Laplace noise stays within this many scales 95 % of the time
const CELLS = 1_500_000;
const hasInterval = (release) => Boolean(release.low && release.high); // of 90 %, which is what filters give by default

// The filter of a statistic: one for all, or as people=kalman,events=none; what is not named has the default.
const filterOf = (written, statistic) => {
  if (!written?.includes("=")) return written;
  const own = written.split(",").find((each) => each.slice(0, each.lastIndexOf("=")).trim() === statistic);
  return own ? own.slice(own.lastIndexOf("=") + 1).trim() : "truncate";
};

export class History {
  constructor(info, levels, statistic) {
    this.info = info;
    this.statistic = statistic; // the one of several that is shown
    this.ofSlots = info.statistics?.length > 1 && statistic.startsWith("people/"); // of several steps: null between
    this.truncates = filterOf(info.filter, statistic) === "truncate";
    this.title = info.statistics?.length > 1 ? statistic : info.title;
    this.levels = levels;
    this.bins = levels.names; // and groups, where there are levels
    this.capacity = Math.max(24, Math.min(432, Math.floor(CELLS / this.bins.length)));
    this.releases = [];
    this.truth = new Map(); // step -> counts, of synthetic streams alone
    this.named = "{}"; // the names that spare bins have got, as the last release tells them
    this.digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(info.unit ?? 0.01) - 1e-9))); // behind the point
    this.answered = false; // whether a release brought answers to window queries that are not shown yet
  }

  get latest() {
    return this.releases[this.releases.length - 1];
  }

  add(release) {
    if (this.latest && release.step <= this.latest.step) return false;
    const told = { ...release, measured: release.fresh, ...release.statistics?.[this.statistic] };
    if (this.ofSlots && told.values.every((value) => value === null)) return false;
    this.releases.push(this.levels.flat(told));
    if (this.releases.length > this.capacity) this.truth.delete(this.releases.shift().step);
    return true;
  }

  // The interval around a released value that comes with it, or where most of the noise falls.
  interval(release, bin) {
    if (hasInterval(release) && release.low[bin] !== null) return [release.low[bin], release.high[bin]];
    const scale = release.scale[bin];
    if (scale === null || release.values[bin] === null) return [null, null];
    const [value, reach] = [release.values[bin], scale * NOISE_INSIDE];
    return [this.truncates ? Math.max(0, value - reach) : value - reach, value + reach];
  }

  // What the band around the releases is, in words.
  band() {
    const own = "where the mechanism expects the true number, with its interval of 90 %";
    const noise = "where 95 % of the noise falls";
    if (!this.releases.some(hasInterval)) return noise;
    return this.releases.every(hasInterval) ? own : own + "; at steps without such an interval, " + noise;
  }

  // Two bins worth a first look: the busiest now, and whichever is busiest when that one is at its lowest.
  contrast() {
    if (!this.latest) return [];
    if (this.levels.levels.length) return [this.levels.total];
    const [first] = this.busiest();
    const lowest = this.releases.reduce((low, release) => (release.values[first] < low.values[first] ? release : low));
    const second = this.busiest(lowest.values).find((bin) => bin !== first);
    return second === undefined ? [first] : [first, second];
  }

  // Bins, those with the largest values first.
  busiest(values = this.latest ? this.latest.values : [], among = this.bins.map((_, bin) => bin)) {
    return among.filter((bin) => this.levels.shown(bin)).sort((one, other) => values[other] - values[one]);
  }
}
