// The latest answer to each window query, with twice the standard deviation of its noise, and the curve of those before.

import { find, many, number } from "./format.js";
import { shortTime } from "./times.js";

const [WIDTH, HEIGHT] = [120, 26];
export const KEPT = 30; // answers of each query

// `answers` are the last ones of each query, oldest first; `chosen` are places in `names`, what the values are about.
export function drawAnswers(questions, answers, names, chosen) {
  find("answers").hidden = !questions;
  if (!questions) return;
  const total = questions.of === "total";
  const places = total ? [0] : chosen;
  find("answers-note").textContent =
    "Events within the last steps, with two standard deviations of the noise. " + number(questions.epsilon, 6) +
    " of epsilon is for these answers" + (total ? "." : "; bins are those in the chart.");
  const titles = places.map((place) => (total ? "all bins" : names[place]));
  find("answers-head").replaceChildren(row("th", ["query", "window", "from", "until", ...titles, "before"]));
  find("answers-body").replaceChildren(
    ...questions.queries.map((query) => {
      const own = answers.filter((answer) => answer.query === query.name);
      const last = own[own.length - 1];
      const [from, until] = last ? [time(last.start, last.begin), time(last.until, last.end)] : ["–", "not due yet"];
      const values = places.map((place) => (last ? value(last, place) : "–"));
      const line = row("td", [query.name, many(query.window, "step"), from, until, ...values, ""]);
      line.lastChild.replaceChildren(curve(own.map((answer) => answer.values[places[0]])));
      return line;
    }),
  );
}

const time = (start, step) => shortTime({ start, step });
const value = (answer, place) => number(answer.values[place]) + " ± " + number(2 * Math.sqrt(answer.variance));

function row(kind, texts) {
  const line = document.createElement("tr");
  line.append(
    ...texts.map((text) => {
      const cell = document.createElement(kind);
      cell.textContent = text;
      if (kind === "th") cell.scope = "col";
      return cell;
    }),
  );
  return line;
}

function curve(values) {
  const svg = element("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, "aria-hidden": "true" });
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const x = (place) => (values.length < 2 ? WIDTH : (place * WIDTH) / (values.length - 1));
  const y = (number) => HEIGHT - 3 - ((number - low) / (high - low || 1)) * (HEIGHT - 6);
  const points = values.map((number, place) => x(place).toFixed(1) + "," + y(number).toFixed(1)).join(" ");
  svg.append(element("polyline", { points, class: "curve" }));
  return svg;
}

function element(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.entries(attributes).forEach(([key, text]) => made.setAttribute(key, text));
  return made;
}
