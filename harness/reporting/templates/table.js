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
    cell.querySelector("button")?.addEventListener("click", async () => {
      await complete;
      sortTable(table, cell.cellIndex, cell.getAttribute("aria-sort") === "ascending");
    });
  }
}
const filters = Array.from(document.querySelectorAll(".choice[data-axis]"));
const text = document.getElementById("text");
let chosen = [];
let words = [];
function passes(element) {
  return chosen.every(([axis, values]) => {
    const own = element.dataset[axis];
    return own === undefined || own === "" || values.has(own);
  });
}
const holds = (row) => words.length === 0 || words.every((word) => row.textContent.toLowerCase().includes(word));
// Of a table with data-limit only the first rows that pass are shown; a button below it shows the others.
function filterTable(table) {
  const limit = Number(table.dataset.limit ?? Infinity);
  const passing = [];
  for (const row of table.tBodies[0].rows) {
    const shown = passes(row) && holds(row) && passing.push(row) <= limit;
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
  const whole = words.length === 0 && chosen.every(([axis]) => axis === "model");
  for (const front of element.querySelectorAll("g[id$='-front']")) front.style.display = whole ? "" : "none";
}
function filter() {
  chosen = filters.map((choice) => [choice.dataset.axis, new Set(
    Array.from(choice.querySelectorAll("input:checked"), (box) => box.value))]).filter(([, values]) => values.size > 0);
  words = (text?.value ?? "").toLowerCase().split(/\s+/).filter((word) => word !== "");
  for (const choice of filters) {
    const values = chosen.find(([axis]) => axis === choice.dataset.axis)?.[1];
    choice.querySelector("b").textContent = values === undefined ? "all" : values.size === 1 ? [...values][0] : values.size;
  }
  const passing = Array.from(document.querySelectorAll("table.sortable"), filterTable).flat();
  const rows = passing.filter((row) => row.dataset.number !== undefined);
  numbers = new Set(rows.map((row) => row.dataset.number));
  const models = new Set(rows.map((row) => row.dataset.model));
  for (const panel of document.querySelectorAll(".panel[data-model]")) {
    panel.hidden = !passes(panel) || (words.length > 0 && !models.has(panel.dataset.model));
    if (!panel.hidden && chosen.some(([axis]) => axis === "model")) panel.open = true;
  }
  filterCharts(document);
  const output = document.getElementById("count");
  if (output) output.textContent = numbers.size + " of " + document.querySelectorAll("tr[data-number]").length + " rows";
}
for (const choice of filters) choice.addEventListener("change", filter);
text?.addEventListener("input", filter);
document.getElementById("all")?.addEventListener("click", () => {
  for (const choice of filters) for (const box of choice.querySelectorAll("input:checked")) box.checked = false;
  if (text) text.value = "";
  filter();
});
document.addEventListener("click", (event) => {
  for (const choice of filters) if (!choice.contains(event.target)) choice.open = false;
});
if (filters.length) filter();
// What is long is packed: a tenth of itself. The page is read and the first rows are shown before it is unpacked.
async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}
async function addRows(waiting) {
  const rows = await unpack(waiting.textContent);
  waiting.previousElementSibling.tBodies[0].insertAdjacentHTML("beforeend", rows);
  waiting.remove();
  filter();
}
// Charts of a panel are text until it is unfolded for the first time.
async function draw(panel) {
  const waiting = panel.querySelector(".charts > script");
  if (!panel.open || waiting === null) return;
  const charts = await unpack(waiting.textContent);
  if (!waiting.isConnected) return;
  waiting.parentElement.innerHTML = charts;
  filterCharts(panel);
}
const panels = Array.from(document.querySelectorAll(".panel"));
for (const panel of panels) panel.addEventListener("toggle", () => draw(panel));
const complete = Promise.all([...Array.from(document.querySelectorAll("script.rows"), addRows), ...panels.map(draw)]);
