// Keeps the page up to date, and makes it work from the keyboard. Everything else works without it.
"use strict";

const EVERY_MS = 3000;

// Whether the user is using a part of the page.
function isInUse(part) {
  const selection = document.getSelection();
  const isSelected = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  return isSelected || part.contains(document.activeElement) || part.querySelector(".at, :hover.hit") !== null;
}

async function refresh() {
  const parts = document.querySelectorAll("[data-live]");
  if (document.hidden || parts.length === 0) return;
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of parts) {
    const next = page.querySelector(`[data-live="${CSS.escape(part.dataset.live)}"]`);
    if (next && next.innerHTML !== part.innerHTML && !isInUse(part)) {
      const scrolled = [...part.querySelectorAll("ol")].map((list) => list.scrollTop);
      part.replaceChildren(...document.adoptNode(next).childNodes);
      part.querySelectorAll("ol").forEach((list, at) => { list.scrollTop = scrolled[at] ?? 0; });
    }
  }
}

function again() {
  setTimeout(() => refresh().catch(() => {}).finally(again), EVERY_MS);
}

// Rows: j and k go from one to the next, Enter opens.
function move(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (rows.length === 0) return;
  const now = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.min(Math.max(now < 0 ? (by > 0 ? 0 : rows.length - 1) : now + by, 0), rows.length - 1)];
  next.querySelector("a")?.focus();
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("focusin", (event) => {
  for (const row of document.querySelectorAll("[data-row].at")) row.classList.remove("at");
  event.target.closest?.("[data-row]")?.classList.add("at");
});

// The chart: what is said of the request that is pointed at.
function point(hit) {
  const chart = hit?.closest("section");
  const readout = chart?.querySelector("[data-readout]");
  if (!readout) return;
  for (const other of chart.querySelectorAll(".hit.at")) other.classList.remove("at");
  hit.classList.add("at");
  readout.textContent = hit.querySelector("title").textContent;
}

document.addEventListener("pointerover", (event) => {
  if (event.target.matches?.(".hit")) point(event.target);
});
document.addEventListener("pointerout", (event) => {
  if (event.target.matches?.(".hit")) event.target.classList.remove("at");
});

function step(chart, by) {
  const hits = [...chart.querySelectorAll(".hit")];
  if (hits.length === 0) return;
  const now = hits.findIndex((hit) => hit.classList.contains("at"));
  point(hits[Math.min(Math.max(now < 0 ? hits.length - 1 : now + by, 0), hits.length - 1)]);
}

document.addEventListener("focusout", (event) => {
  if (event.target.matches?.("[data-chart]")) {
    for (const hit of event.target.querySelectorAll(".hit.at")) hit.classList.remove("at");
  }
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const chart = event.target.closest("[data-chart]");
  if (chart && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
    event.preventDefault();
    step(chart, event.key === "ArrowLeft" ? -1 : 1);
    return;
  }
  const keys = {
    "/": () => document.getElementById("find")?.focus(),
    j: () => move(1),
    k: () => move(-1),
    u: () => document.querySelector("[data-up]")?.click(),
  };
  const does = keys[event.key];
  if (does) {
    event.preventDefault();
    does();
  }
});

again();
