// Light or dark, before anything is drawn: as chosen here, or else as the system likes it.
"use strict";
document.documentElement.dataset.theme =
  localStorage.getItem("eventide-theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
