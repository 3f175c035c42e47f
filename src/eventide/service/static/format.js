// Numbers and colours as people read them.

export const find = (id) => document.getElementById(id);
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
export const number = (value, digits = 0) =>
  value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits });

// An amount of epsilon, with enough digits for amounts like `of`, down to the ledger's unit.
export const amount = (value, of = value) => number(value, of ? Math.min(9, Math.max(3, 3 - Math.floor(Math.log10(of)))) : 3);
export const many = (count, thing) => number(count) + " " + thing + (count === 1 ? "" : "s");

// plotly reads a little HTML in names; a name is never meant as such.
export const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

export function duration(seconds) {
  const [length, unit] = [[86_400, "day"], [3_600, "hour"], [60, "minute"]].find(([each]) => seconds >= 2 * each || seconds === each) ?? [1, "second"];
  const digits = seconds < 1 ? 3 : 1;
  return Number((seconds / length).toFixed(digits)) === 1 ? "1 " + unit : number(seconds / length, digits) + " " + unit + "s";
}

// Give what was made to the person as a file.
export function save(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
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
