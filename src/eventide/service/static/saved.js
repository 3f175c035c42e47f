// What is shown, as a table: the columns are those of long files of releases, the numbers and times those released.

const quoted = (text) => (/[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
const known = (value) => (value === null || value === undefined ? "" : String(value));

// `rows` are places of bins and groups.
export function csv(history, releases, rows) {
  const { info, levels } = history;
  const [byLevel, byStatistic] = [levels.levels.length > 0, info.statistics.length > 1 || info.span !== null];
  const names = ["step", "start", ...(byLevel ? ["level"] : []), "bin", ...(byStatistic ? ["statistic"] : []), "value", "low", "high", "scale", "fresh"];
  const lines = releases.flatMap((release) => rows.map((row) => [
    release.step, release.start ?? "", ...(byLevel ? [quoted(levels.levels[levels.levelOf(row)]?.name ?? "bin")] : []), quoted(history.bins[row]),
    ...(byStatistic ? [quoted(history.statistic)] : []),
    ...["values", "low", "high", "scale"].map((kind) => known(release[kind]?.[row])), release.measured,
  ].join(",")));
  return new Blob([[names.join(","), ...lines, ""].join("\n")], { type: "text/csv" });
}

// A name for a file, of the stream and the times it tells of.
export function fileName(history, releases, what) {
  const [first, last] = [releases[0], releases[releases.length - 1]].map(({ start, step }) => (start ? start.slice(0, 16).replaceAll(/[-:]/g, "") : step));
  return [history.info.name, what, first, last].join("-");
}
