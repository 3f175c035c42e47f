// Times as people read them, in the zone that was chosen: the stream's own, the browser's, or UTC.

const KEY = "eventide-zone";
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];
const LENGTHS = [
  ...[1, 2, 5, 10, 15, 30].map((many) => many * SECOND), ...[1, 2, 5, 10, 15, 30].map((many) => many * MINUTE),
  ...[1, 2, 3, 6, 12].map((many) => many * HOUR), ...[1, 2, 7, 14].map((many) => many * DAY),
];
const MONDAY = 4 * DAY; // the first one since 1970, so that weeks begin with it
const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
let chosen = localStorage.getItem(KEY) ?? "stream";
let parts = null; // how the chosen zone's clock is read; null for the stream's own, in which times are sent

export function chooseZone(zone) {
  chosen = zone;
  localStorage.setItem(KEY, zone);
}

// The zones to choose from, each with its name; and from now on the chosen one is that of this stream.
export function zonesOf(info) {
  const zones = { stream: info.zone + " (of the data)", browser: browserZone + " (of this browser)", utc: "UTC" };
  if (!(chosen in zones)) chosen = "stream";
  const zone = { stream: null, browser: browserZone, utc: "UTC" }[chosen];
  const numbers = Object.fromEntries(["year", "month", "day", "hour", "minute", "second"].map((part) => [part, "2-digit"]));
  parts = zone && new Intl.DateTimeFormat("en", { ...numbers, year: "numeric", timeZone: zone, hourCycle: "h23" });
  return { zones, chosen, name: zone ?? info.zone };
}

// "2026-01-01T10:20:00+01:00" as the clock on a wall in that zone shows it: "2026-01-01T10:20:00".
function onTheWall(start) {
  if (!parts) return start.slice(0, 19);
  const { year, month, day, hour, minute, second } = Object.fromEntries(parts.formatToParts(new Date(start)).map(({ type, value }) => [type, value]));
  return `${year.padStart(4, "0")}-${month}-${day}T${hour}:${minute}:${second}`;
}

// When a release's step begins; steps without a clock by their number.
export const wallTime = ({ start, step }) => (start ? onTheWall(start) : step);
export const shortTime = (release) => (release.start ? written(wallTime(release)) : "step " + release.step);

const day = (wall) => Number(wall.slice(8, 10)) + " " + MONTHS[Number(wall.slice(5, 7)) - 1];
const clock = (wall) => (wall.endsWith(":00") ? wall.slice(11, 16) : wall.slice(11));
const written = (wall) => day(wall) + " " + wall.slice(0, 4) + ", " + clock(wall);

// The marks of an axis: at which of these times each stands, its text, and a second line where that changes.
export function marks(walls, most) {
  if (!walls.length) return [];
  const found = periods(walls).map((period) => places(walls, period)).find((each) => each.length < most);
  const at = found[0] < walls.length / most ? found : [0, ...found];
  if (typeof walls[0] === "number") return at.map((place) => ({ place, text: "step " + walls[place], below: "" }));
  const byDay = at.every((place) => walls[place].endsWith("T00:00:00"));
  let last = "";
  return at.map((place) => {
    const [text, below] = byDay ? [day(walls[place]), walls[place].slice(0, 4)] : [clock(walls[place]), day(walls[place]) + " " + walls[place].slice(0, 4)];
    const shown = below === last ? "" : below;
    last = below;
    return { place, text, below: shown };
  });
}

// What divides an axis, from fine to coarse: functions that tell in which period a time is.
function periods(walls) {
  const round = [...Array(16).keys()].flatMap((power) => [1, 2, 5].map((many) => many * 10 ** power));
  if (typeof walls[0] === "number") return round.map((many) => (step) => Math.floor(step / many));
  const month = (wall) => 12 * Number(wall.slice(0, 4)) + Number(wall.slice(5, 7)) - 1;
  return [
    ...LENGTHS.map((length) => (wall) => Math.floor((Date.parse(wall + "Z") - MONDAY) / length)),
    ...[1, 2, 3, 6, ...round.map((years) => 12 * years)].map((many) => (wall) => Math.floor(month(wall) / many)),
  ];
}

// Where periods begin that begin after the first time.
function places(walls, period) {
  const numbers = walls.map(period);
  return numbers.flatMap((number, place) => (place && number !== numbers[place - 1] ? [place] : []));
}
