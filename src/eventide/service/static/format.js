// Numbers, times and colours as people read them.

export const find = (id) => document.getElementById(id);
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
export const number = (value, digits = 0) =>
  value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits });

// "2026-01-01T10:20:00+01:00" as the clock on that wall shows it; steps without a clock by their number.
export const wallTime = (release) => (release.start ? release.start.slice(0, 19) : release.step);
export const shortTime = (release) =>
  release.start ? release.start.slice(0, 10) + " " + release.start.slice(11, 16) : "step " + release.step;

// plotly reads a little HTML in names; a name is never meant as such.
export const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

export function duration(seconds) {
  if (seconds < 90) return number(seconds, seconds < 10 ? 1 : 0) + " s";
  if (seconds < 5400) return number(seconds / 60) + " min";
  return number(seconds / 3600, 1) + " h";
}

export function fillList(list, entries) {
  list.replaceChildren(
    ...entries.flatMap(([term, description]) => {
      const dt = document.createElement("dt");
      const dd = document.createElement("dd");
      dt.textContent = term;
      dd.textContent = description;
      return [dt, dd];
    }),
  );
}
