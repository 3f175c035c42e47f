// The budget of the window that ends now, as a gauge, and of the windows before it; under a cap of the last step, and of
// the steps before it, in what one person can lose.

import { amount, colour, find, many, number } from "./format.js";
import { draw } from "./series.js";
import { shortTime, wallTime } from "./times.js";

export function drawBudget(ledger) {
  const part = ledger.spent / ledger.epsilon;
  find("gauge-fill").setAttribute("stroke-dasharray", 100 * part + " 100");
  find("gauge-value").textContent = amount(ledger.spent, ledger.epsilon);
  const capped = ledger.window_sensitivity !== null;
  const unit = "of " + number(ledger.epsilon, 9) + (capped ? " epsilon lost" : " epsilon spent");
  find("budget-title").textContent = capped ? "Privacy budget of one person" : "Privacy budget of the current window";
  find("gauge-unit").textContent = unit;
  const gauge = find("gauge");
  gauge.setAttribute("aria-valuemax", ledger.epsilon);
  gauge.setAttribute("aria-valuenow", ledger.spent);
  gauge.setAttribute("aria-valuetext", amount(ledger.spent, ledger.epsilon) + " " + unit);
  gauge.parentElement.classList.toggle("over", !ledger.verified);
  find("budget-note").textContent = (capped ? aPerson(ledger) : aWindow(ledger)) + (ledger.verified ? "" : " SOME WINDOW IS OVER.");
  const x = ledger.history.map(wallTime);
  const ends = x.length ? [x[0], x[x.length - 1]] : [];
  find("history").hidden = !x.length;
  if (!x.length) return;
  draw("history", [
    { x, y: ledger.history.map((each) => each.in_window), text: ledger.history.map((each) => amount(each.in_window, ledger.epsilon)), type: "scatter", mode: "lines", fill: "tozeroy",
      fillcolor: colour("accent") + "2b", line: { color: colour("accent"), width: 1.5, shape: "hv" }, hovertemplate: "%{text}<extra></extra>" },
    { x: ends, y: ends.map(() => ledger.epsilon), type: "scatter", mode: "lines",
      line: { color: colour("limit"), width: 1.5, dash: "dash" }, hoverinfo: "skip" },
  ], { xaxis: { nticks: 3 }, yaxis: { range: [0, 1.15 * ledger.epsilon], nticks: 3 } });
}

function worst(ledger) {
  return amount(ledger.worst, ledger.worst_of) + (ledger.worst_of === ledger.epsilon ? "" : " of the " + number(ledger.worst_of, 9) + " that was allowed then");
}

function aWindow(ledger) {
  return amount(ledger.left, ledger.epsilon) + " left in the last " + many(ledger.window, "step") + "; the fullest window ever held " +
    worst(ledger) + "." + (ledger.next_return ? " Next to come back: " + amount(ledger.next_return.amount) + " at " +
    shortTime(ledger.next_return) + "." : "");
}

function aPerson(ledger) {
  return "Few events of one person count, so every step has a budget of its own. In any " + many(ledger.window, "step") +
    " one person has lost at most " + worst(ledger) + ".";
}
