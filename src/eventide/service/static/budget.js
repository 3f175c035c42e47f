// The budget of the window that ends now, as a gauge, and of the windows before it; under a cap of the last step, and of
// the steps before it, in what one person can lose.

import { colour, find, number, shortTime } from "./format.js";
import { draw } from "./series.js";

export function drawBudget(ledger) {
  const part = ledger.spent / ledger.epsilon;
  find("gauge-fill").setAttribute("stroke-dasharray", 100 * part + " 100");
  find("gauge-value").textContent = number(ledger.spent, 3);
  const capped = ledger.window_sensitivity !== null;
  const unit = "of " + number(ledger.epsilon, 6) + (capped ? " epsilon lost" : " epsilon spent");
  find("budget-title").textContent = capped ? "Privacy budget of one person" : "Privacy budget of the current window";
  find("gauge-unit").textContent = unit;
  const gauge = find("gauge");
  gauge.setAttribute("aria-valuemax", ledger.epsilon);
  gauge.setAttribute("aria-valuenow", ledger.spent);
  gauge.setAttribute("aria-valuetext", number(ledger.spent, 3) + " " + unit);
  gauge.parentElement.classList.toggle("full", part > 0.999);
  find("budget-note").textContent = (capped ? aPerson(ledger) : aWindow(ledger)) + (ledger.verified ? "" : " SOME WINDOW IS OVER.");
  const x = ledger.history.map((each) => (each.start ? each.start.slice(0, 19) : each.step));
  const ends = x.length ? [x[0], x[x.length - 1]] : [];
  draw("history", [
    { x, y: ledger.history.map((each) => each.in_window), type: "scatter", mode: "lines", fill: "tozeroy",
      fillcolor: colour("accent") + "2b", line: { color: colour("accent"), width: 1.5, shape: "hv" }, hovertemplate: "%{y:.3f}<extra></extra>" },
    { x: ends, y: ends.map(() => ledger.epsilon), type: "scatter", mode: "lines",
      line: { color: colour("limit"), width: 1.5, dash: "dash" }, hoverinfo: "skip" },
  ], { xaxis: { nticks: 3 }, yaxis: { range: [0, 1.15 * ledger.epsilon], nticks: 3 } });
}

function aWindow(ledger) {
  return number(ledger.left, 3) + " left in these " + number(ledger.window) + " steps; the fullest window ever held " +
    number(ledger.worst, 3) + "." + (ledger.next_return ? " Next to come back: " + number(ledger.next_return.amount, 3) + " at " +
    shortTime(ledger.next_return) + "." : "");
}

function aPerson(ledger) {
  return "Few events of one person count, so every step has a budget of its own. In any " + number(ledger.window) +
    " steps one person has lost at most " + number(ledger.worst, 3) + ".";
}
