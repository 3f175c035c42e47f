// The dashboard: opens a stream, follows it, and keeps chart, heat map, budget and health up to date.

import { Refused, follow, get, getBlob, signIn, signOut, signedIn, streamPath, takeTokenFromAddress } from "./api.js";
import { KEPT, drawAnswers } from "./answers.js";
import { drawBudget } from "./budget.js";
import { duration, fillList, find, many, number, save } from "./format.js";
import { Heat } from "./heat.js";
import { History } from "./history.js";
import { idleness } from "./idle.js";
import { Levels, OpenGroup } from "./levels.js";
import { csv, fileName } from "./saved.js";
import { Search } from "./search.js";
import { Series } from "./series.js";
import { chooseZone, shortTime, zonesOf } from "./times.js";
import { Windows } from "./windows.js";

const DRAW_EVERY = 200; // milliseconds at least between two drawings
const ASK_EVERY = 3_000;
const SPEAK_EVERY = 30_000;
const TROUBLES = {
  failed: "Publishing has stopped; the operator's log says why. What was released stays.",
  ahead: "The machine's clock was wrong once: steps were released that are still to come, and until then no event counts.",
  waiting: "The store cannot be used now. Publishing goes on by itself when it can.",
};

const series = new Series();
const group = new OpenGroup(() => { heat.order = heat.cursor = null; draw(); });
const heat = new Heat((row) => { choose(row); group.open(row); }, group);
const search = new Search(choose);
const windows = new Windows(choose);
let role = null;
let history = null;
let ledger = null;
let answers = []; // the last ones to each window query
let following = null; // ends the stream that is open
let drawing = false;
let spoken = 0;

async function start() {
  takeTokenFromAddress();
  try {
    ({ role } = await get("/v1/access"));
    const { streams } = await get("/v1/streams");
    find("stream").replaceChildren(...streams.map(({ name }) => new Option(name, name)));
    const wanted = new URLSearchParams(location.search).get("stream");
    if (streams.some(({ name }) => name === wanted)) find("stream").value = wanted;
    find("operators").hidden = role !== "operate";
    find("sign-out").hidden = !signedIn();
    await open(find("stream").value);
  } catch (problem) {
    failed(problem);
  }
}

function failed(problem) {
  if (problem instanceof Refused && [401, 403].includes(problem.status)) {
    find("sign-in-problem").textContent = signedIn() ? "This token is not known, or not for reading." : "";
    signOut();
    if (!find("sign-in").open) find("sign-in").showModal();
  } else {
    trouble(problem instanceof Refused ? problem.message : "The service does not answer; trying again.");
    if (!history) setTimeout(start, ASK_EVERY); // what is open asks again by itself
  }
}

// A link could not carry the token, so the page is fetched and shown from memory.
async function openPage(path) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await getBlob(path));
  Object.assign(link, { target: "_blank", rel: "noopener" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function trouble(sentence) {
  find("trouble").textContent = sentence;
  find("trouble").hidden = !sentence;
}

async function open(name) {
  following?.abort();
  following = new AbortController();
  const { signal } = following;
  const [info, rows, guarantee] = await Promise.all(["", "/bins", "/guarantee"].map((rest) => get(streamPath(name, rest))));
  const statistic = info.statistics.includes(find("statistic").value) ? find("statistic").value : info.statistics[0];
  find("statistic").replaceChildren(...info.statistics.map((each) => new Option(each, each, false, each === statistic)));
  find("statistic-choice").hidden = info.statistics.length < 2;
  const begun = new History(info, new Levels(rows.bins, rows.levels, rows.spare), statistic);
  const { releases } = await get(streamPath(name, "/releases?latest=" + begun.capacity));
  if (signal.aborted) return; // another stream was chosen meanwhile
  releases.forEach((release) => begun.add(release));
  begun.named = JSON.stringify(begun.latest?.bins ?? {});
  history = search.history = begun;
  group.begin(begun.levels);
  showZones();
  series.chosen = [];
  series.zoom = null;
  if (info.synthetic) await addTruth();
  document.title = name + " · eventide";
  find("guarantee").textContent = guarantee.sentence;
  find("to-sign").href = streamPath(name, "/guarantee.html");
  find("series-title").textContent = "Released " + begun.title;
  series.all = false;
  find("synthetic").hidden = find("truth-choice").hidden = !info.synthetic;
  trouble("");
  await Promise.all([refresh(), askAnswers()]);
  if (signal.aborted) return;
  draw();
  follow(name, history.latest ? history.latest.step + 1 : 0, signal, arrived, connection).catch(failed);
}

async function addTruth() {
  const first = history.releases[0]?.step ?? 0;
  const { counts } = await get(streamPath(history.info.name, "/synthetic?first=" + Math.max(first, ...history.truth.keys(), 0)));
  counts.forEach(({ step, values }) => history.truth.set(step, history.levels.counts(values)));
}

async function askAnswers() {
  const asked = history;
  const found = asked.info.questions ? await get(streamPath(asked.info.name, "/answers?latest=" + KEPT)) : { answers: [] };
  if (history === asked) ({ answers } = found);
}

function arrived(release) {
  if (!history?.add(release)) return;
  if (JSON.stringify(release.bins ?? {}) !== history.named) askNames(release).catch(failed);
  history.answered ||= Boolean(release.answers);
  soon();
  if (Date.now() - spoken > SPEAK_EVERY) {
    spoken = Date.now();
    const said = series.chosen.map((bin) => history.bins[bin] + " " + number(history.latest.values[bin], history.digits));
    find("announcer").textContent = shortTime(release) + ": " + said.join(", ");
  }
}

// Ask for the names of bins again: a spare one has got its own.
async function askNames(release) {
  const asked = history;
  asked.named = JSON.stringify(release.bins ?? {});
  const rows = await get(streamPath(asked.info.name, "/bins"));
  if (history !== asked) return;
  asked.levels.rename(rows);
  heat.order = heat.cursor = null;
  soon();
}

function connection(state) {
  find("status").dataset.state = state === "live" ? "live" : "trouble";
  showStatus(state);
}

function showStatus(state = find("status").dataset.state) {
  const latest = history?.latest;
  const idle = history && idleness(history);
  const where = latest ? "step " + number(latest.step) + " · " + shortTime(latest) : "no step released yet";
  find("status").classList.toggle("idle", !latest || Boolean(idle));
  find("status-text").textContent = (state !== "live" ? "connecting again · " : idle ? idle.short + " · " : latest ? "live · " : "waiting · ") + where;
  find("idle").hidden = !idle;
  find("idle").textContent = idle?.sentence ?? "";
}

// The zones to choose from, and the times of everything from now on in the one that is chosen.
function showZones() {
  const { zones, chosen, name } = zonesOf(history.info);
  find("zone").replaceChildren(...Object.entries(zones).map(([zone, text]) => new Option(text, zone, false, zone === chosen)));
  history.zone = name;
}

// Draw after a moment, together with whatever else arrives until then.
function soon() {
  if (drawing) return;
  drawing = true;
  setTimeout(async () => {
    drawing = false;
    if (!history) return; // another stream is being opened
    const asked = history;
    try {
      if (history.info.synthetic) await addTruth();
      const spent = await get(streamPath(asked.info.name, "/ledger"));
      if (history !== asked) return;
      ledger = spent;
      if (history.answered) {
        history.answered = false;
        await askAnswers();
      }
      draw();
    } catch (problem) {
      failed(problem);
    }
  }, DRAW_EVERY);
}

function draw() {
  if (!history || !window.Plotly) return;
  if (!series.chosen.length && !history.emptied) history.contrast().forEach((bin) => series.choose(bin));
  series.draw(history, idleness(history), history.zone);
  group.draw(history.latest);
  heat.draw(history);
  windows.draw(history);
  if (ledger) drawBudget(ledger);
  drawAnswers(history.info.questions, answers, history.bins, series.chosen.filter((bin) => bin < history.levels.bins));
  showStatus();
}

async function refresh() {
  const asked = history;
  const { name } = asked.info;
  const [info, spent, figures] = await Promise.all([
    get(streamPath(name)), get(streamPath(name, "/ledger")), role === "operate" ? get(streamPath(name, "/operations")) : null,
  ]);
  if (history !== asked) return;
  ledger = spent;
  history.info = info;
  fillList(find("health"), [
    ["state", info.health],
    info.lag_seconds ? ["behind by", duration(info.lag_seconds)] : ["on time", "yes"],
    ["steps released", number(info.next_step)],
    ["mechanism", info.mechanism],
    ["published are", info.statistics.length > 1 ? info.statistics.join(", ") : info.title],
    ["step", duration(info.step_seconds)],
    ["window", many(info.window, "step") + (info.window > 1 ? ", " + duration(info.window * info.step_seconds) : "")],
    ["time zone", info.zone],
    ...(info.cap ? [["of one person count", info.cap]] : []),
    ["bins", number(info.bins)],
    ["events of", info.population],
  ]);
  trouble(TROUBLES[info.health] || "");
  const before = find("idle").textContent;
  showStatus();
  if (before !== find("idle").textContent) soon(); // the chart says so as well
  if (figures) {
    fillList(find("operations"), [
      ["accepted", number(figures.accepted)],
      ["late", number(figures.late)],
      ["left out by limits per person", number(figures.left_out)],
      ...(figures.left_out_by_cap === null ? [] : [["of these by the cap", number(figures.left_out_by_cap)]]),
      ...Object.entries(figures.refused).map(([reason, count]) => ["refused: " + reason, number(count)]),
      ["batches waiting", number(figures.waiting)],
    ]);
  }
}

function choose(bin) {
  series.choose(bin);
  draw();
}

function changeTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("eventide-theme", theme);
  showTheme();
  draw();
}

function showTheme() {
  find("theme").textContent = document.documentElement.dataset.theme === "dark" ? "☀" : "☾";
}

find("theme").addEventListener("click", changeTheme);
find("stream").addEventListener("change", () => { history = null; open(find("stream").value).catch(failed); });
find("statistic").addEventListener("change", () => { history = null; open(find("stream").value).catch(failed); });
find("truth").addEventListener("change", draw);
find("table-view").addEventListener("toggle", draw);
find("sign-out").addEventListener("click", () => { signOut(); location.reload(); });
find("zone").addEventListener("change", () => { chooseZone(find("zone").value); showZones(); series.zoom = null; draw(); });
find("to-sign").addEventListener("click", (event) => {
  if (!signedIn()) return; // then the link is enough
  event.preventDefault();
  openPage(find("to-sign").href).catch(failed);
});
const chartRows = () => [series.chosen, series.visible];
const mapRows = () => [heat.order, history.releases];
function saveTable(what, [rows, releases]) {
  if (releases.length) save(csv(history, releases, rows), fileName(history, releases, what) + ".csv");
}
async function savePicture(what, [, releases], picture) {
  if (releases.length) save(await picture(), fileName(history, releases, what) + ".png");
}
find("chart-csv").addEventListener("click", () => saveTable("chart", chartRows()));
find("heat-csv").addEventListener("click", () => saveTable("map", mapRows()));
find("chart-png").addEventListener("click", () => savePicture("chart", chartRows(), () => series.picture()).catch(failed));
find("heat-png").addEventListener("click", () => savePicture("map", mapRows(), () => heat.saved(history.info.name + ": released " + history.title + ", times: " + history.zone)).catch(failed));
find("sign-in").addEventListener("cancel", (event) => event.preventDefault());
find("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  signIn(find("token").value.trim());
  find("token").value = "";
  find("sign-in").close();
  start();
});
find("chosen").addEventListener("click", (event) => {
  if (event.target.dataset.bin === undefined) return;
  history.emptied = series.chosen.length === 1;
  series.drop(Number(event.target.dataset.bin));
  draw();
  find("search").focus();
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
  if (event.key === "/") { find("search").focus(); event.preventDefault(); }
  if (event.key === "t") changeTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (change) => {
  if (localStorage.getItem("eventide-theme")) return;
  document.documentElement.dataset.theme = change.matches ? "dark" : "light";
  showTheme();
  draw();
});
setInterval(() => { if (history && !find("sign-in").open) refresh().catch(failed); }, ASK_EVERY);
showTheme();
start();
