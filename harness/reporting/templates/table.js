"use strict";
// Sorting and filtering. A cell's data-value is what it sorts by; cells without one come last, in both directions.
function sortTable(table, column, descending) {
  const body = table.tBodies[0];
  const key = (row) => row.cells[column].dataset.value ?? "";
  const numeric = table.tHead.rows[0].cells[column].classList.contains("n");
  const compare = numeric ? (a, b) => Number(a) - Number(b) : new Intl.Collator("en", { numeric: true }).compare;
  const rows = Array.from(body.rows, (row) => [key(row), row]);
  rows.sort(([a], [b]) => (a === "" || b === "" ? (a === "") - (b === "") : descending ? compare(b, a) : compare(a, b)));
  body.replaceChildren(...rows.map(([, row]) => row));
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
  filterTable(table);
}
for (const table of document.querySelectorAll("table.sortable")) {
  for (const cell of table.tHead.rows[0].cells) {
    cell.querySelector("button")?.addEventListener("click", () => {
      sortTable(table, cell.cellIndex, cell.getAttribute("aria-sort") === "ascending");
    });
  }
}
const filters = Array.from(document.querySelectorAll("select[data-axis]"));
let chosen = [];
function passes(element) {
  return chosen.every(([axis, value]) => {
    const own = element.dataset[axis];
    return own === undefined || own === "" || own === value;
  });
}
// Of a table with data-limit only the first rows that pass are shown; a button below it shows the others.
function filterTable(table) {
  const limit = Number(table.dataset.limit ?? Infinity);
  const passing = [];
  for (const row of table.tBodies[0].rows) {
    const shown = passes(row) && passing.push(row) <= limit;
    if (row.hidden === shown) row.hidden = !shown;
  }
  const more = table.closest(".scroll").nextElementSibling;
  if (more?.classList.contains("more")) {
    more.hidden = passing.length <= limit;
    more.querySelector("button").textContent = "show all " + passing.length + " rows";
  }
  return passing;
}
for (const more of document.querySelectorAll(".more")) {
  more.addEventListener("click", () => {
    const table = more.previousElementSibling.querySelector("table");
    delete table.dataset.limit;
    filterTable(table);
  });
}
let numbers = new Set();
function filterCharts(element) {
  for (const curve of element.querySelectorAll("g[data-row]")) {
    curve.style.display = numbers.has(curve.dataset.row) ? "" : "none";
  }
  const whole = chosen.every(([axis]) => axis === "model");
  for (const front of element.querySelectorAll("g[id$='-front']")) front.style.display = whole ? "" : "none";
}
function filter() {
  chosen = filters.map((select) => [select.dataset.axis, select.value]).filter(([, value]) => value !== "");
  const passing = Array.from(document.querySelectorAll("table.sortable"), filterTable).flat();
  numbers = new Set(passing.map((row) => row.dataset.number).filter((number) => number !== undefined));
  for (const panel of document.querySelectorAll(".panel[data-model]")) {
    panel.hidden = !passes(panel);
    if (!panel.hidden && chosen.some(([axis]) => axis === "model")) panel.open = true;
  }
  filterCharts(document);
  const output = document.getElementById("count");
  if (output) output.textContent = numbers.size + " of " + document.querySelectorAll("tr[data-number]").length + " rows";
}
for (const select of filters) select.addEventListener("change", filter);
if (filters.length) filter();
// Charts of a folded panel are text until it is unfolded for the first time.
for (const panel of document.querySelectorAll(".panel")) {
  panel.addEventListener("toggle", () => {
    const waiting = panel.querySelector(".charts > script");
    if (!panel.open || waiting === null) return;
    waiting.parentElement.innerHTML = waiting.textContent;
    filterCharts(panel);
  });
}
