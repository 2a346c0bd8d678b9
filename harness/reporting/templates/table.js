"use strict";
// Sorting and filtering. A cell's data-value is what it sorts by; cells without one come last, in both directions.
function sortTable(table, column, descending) {
  const body = table.tBodies[0];
  const key = (row) => row.cells[column].dataset.value ?? "";
  const numeric = table.tHead.rows[0].cells[column].classList.contains("n");
  const compare = numeric ? (a, b) => Number(a) - Number(b) : new Intl.Collator("en", { numeric: true }).compare;
  const rows = Array.from(body.rows, (row) => [key(row), row]);
  rows.sort(([a], [b]) => (a === "" || b === "" ? (a === "") - (b === "") : descending ? compare(b, a) : compare(a, b)));
  body.append(...rows.map(([, row]) => row));
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  table.tHead.rows[0].cells[column].setAttribute("aria-sort", descending ? "descending" : "ascending");
}
for (const table of document.querySelectorAll("table.sortable")) {
  for (const cell of table.tHead.rows[0].cells) {
    cell.querySelector("button")?.addEventListener("click", () => {
      sortTable(table, cell.cellIndex, cell.getAttribute("aria-sort") === "ascending");
    });
  }
}
const filters = Array.from(document.querySelectorAll("select[data-axis]"));
function filter() {
  const chosen = filters.map((select) => [select.dataset.axis, select.value]).filter(([, value]) => value !== "");
  const passes = (element) => chosen.every(([axis, value]) => {
    const own = element.dataset[axis];
    return own === undefined || own === "" || own === value;
  });
  const shown = new Set();
  let count = 0;
  for (const row of document.querySelectorAll("tr[data-model]")) {
    row.hidden = !passes(row);
    if (!row.hidden && row.dataset.number !== undefined) { shown.add(row.dataset.number); count += 1; }
  }
  for (const panel of document.querySelectorAll(".panel[data-model]")) panel.hidden = !passes(panel);
  for (const curve of document.querySelectorAll("g[data-row]")) {
    curve.style.display = shown.has(curve.dataset.row) ? "" : "none";
  }
  const whole = chosen.every(([axis]) => axis === "model");
  for (const front of document.querySelectorAll("g[id$='-front']")) front.style.display = whole ? "" : "none";
  const output = document.getElementById("count");
  if (output) output.textContent = count + " of " + document.querySelectorAll("tr[data-number]").length + " rows";
}
for (const select of filters) select.addEventListener("change", filter);
if (filters.length) filter();
