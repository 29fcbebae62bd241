// What the page does by itself: light or dark, ticks, and telling readers of a screen what has changed.
// Live parts ask for themselves again by htmx; without scripts every page and form works, and is loaded again by hand.
"use strict";
(() => {
  const root = document.documentElement;
  const remembered = localStorage.getItem("theme");
  if (remembered) root.dataset.theme = remembered;

  const ticks = () => document.querySelectorAll("input[name=id][type=checkbox]");
  const said = (element) => {
    const place = document.getElementById("said");
    if (place && element.dataset.said && place.textContent !== element.dataset.said) place.textContent = element.dataset.said;
  };
  let unfolded = [];
  let scrolled = [];
  let focused = "";
  const openingTag = (element) => element.outerHTML.slice(0, element.outerHTML.indexOf(">"));
  const trouble = (kind) => {
    const notice = document.getElementById("trouble");
    notice.hidden = !kind;
    notice.textContent = kind ? notice.dataset[kind] : "";
  };

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-theme-toggle]")) return;
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = root.dataset.theme || (dark ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-tick-all]")) ticks().forEach((tick) => (tick.checked = event.target.checked));
  });
  // A list in which something is ticked stays as it is, or the ticks would be lost.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.querySelector("input[name=id]:checked")) event.preventDefault();
  });
  // What is unfolded stays so when its part of the page comes again; so do the focus and how far tables are scrolled.
  document.addEventListener("htmx:beforeSwap", (event) => {
    unfolded = [...event.target.querySelectorAll("details")].map((each) => each.open);
    scrolled = [...event.target.querySelectorAll(".wide")].map((each) => each.scrollLeft);
    focused = event.target.contains(document.activeElement) ? openingTag(document.activeElement) : "";
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    const now = document.getElementById(event.target.id);
    if (!now) return;
    now.querySelectorAll("details").forEach((each, number) => (each.open = Boolean(unfolded[number])));
    now.querySelectorAll(".wide").forEach((each, number) => (each.scrollLeft = scrolled[number] || 0));
    const again = focused && [...now.querySelectorAll("a, input, summary, [tabindex]")].find((each) => openingTag(each) === focused);
    if (again) again.focus({ preventScroll: true });
    said(now);
  });
  document.addEventListener("htmx:beforeOnLoad", () => trouble(""));
  document.addEventListener("htmx:sendError", () => trouble("silent"));
  document.addEventListener("htmx:responseError", () => trouble("refused"));
})();
