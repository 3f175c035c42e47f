// Finds bins by a part of their name, also among many thousands; works with the keyboard alone.

import { find, number } from "./format.js";

const SHOWN = 40;

export class Search {
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.history = null;
    this.found = [];
    this.active = 0;
    this.input = find("search");
    this.list = find("matches");
    this.input.addEventListener("input", () => this.open());
    this.input.addEventListener("focus", () => this.open());
    this.input.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.input.addEventListener("keydown", (event) => this.pressed(event));
    this.list.addEventListener("mousedown", (event) => {
      const item = event.target.closest("[role=option]");
      if (item) this.choose(Number(item.dataset.bin));
      event.preventDefault();
    });
  }

  open() {
    if (!this.history) return;
    const asked = this.input.value.trim().toLowerCase();
    const all = asked ? this.matching(asked) : this.history.busiest();
    this.found = all.slice(0, SHOWN);
    this.active = 0;
    this.show(all.length - this.found.length);
  }

  // Names that begin with what was asked first, then those that hold it anywhere.
  matching(asked) {
    const names = this.history.bins.map((name) => name.toLowerCase());
    const holding = names.flatMap((name, bin) => (name.includes(asked) && this.history.levels.shown(bin) ? [bin] : []));
    return [...holding.filter((bin) => names[bin].startsWith(asked)), ...holding.filter((bin) => !names[bin].startsWith(asked))];
  }

  show(more) {
    const items = this.found.map((bin, index) => {
      const item = document.createElement("li");
      item.id = "match-" + index;
      item.role = "option";
      item.dataset.bin = bin;
      item.append(
        Object.assign(document.createElement("span"), { textContent: this.history.bins[bin] }),
        Object.assign(document.createElement("span"), { className: "value", textContent: number(this.history.latest?.values[bin], this.history.digits) }),
      );
      return item;
    });
    const note = this.found.length ? (more ? number(more) + " more; type on" : "") : "no bin has this in its name";
    if (note) items.push(Object.assign(document.createElement("li"), { className: "note", role: "presentation", textContent: note }));
    this.list.replaceChildren(...items);
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.mark();
  }

  mark() {
    this.list.querySelectorAll("[role=option]").forEach((item, index) => {
      item.setAttribute("aria-selected", String(index === this.active));
      if (index === this.active) item.scrollIntoView({ block: "nearest" });
    });
    if (this.found.length) this.input.setAttribute("aria-activedescendant", "match-" + this.active);
    else this.input.removeAttribute("aria-activedescendant");
  }

  pressed(event) {
    if (event.key === "Escape") {
      this.input.value = "";
      this.close();
    } else if (event.key === "Enter" && this.found.length && !this.list.hidden) {
      this.choose(this.found[this.active]);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (this.list.hidden) this.open();
      const move = event.key === "ArrowDown" ? 1 : this.found.length - 1;
      this.active = this.found.length ? (this.active + move) % this.found.length : 0;
      this.mark();
    } else return;
    event.preventDefault();
  }

  choose(bin) {
    this.input.value = "";
    this.close();
    this.onChoose(bin);
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}
