"use strict";
// The page of a board. Texts of records become text nodes alone.
const form = document.getElementById("board");
const element = (id) => document.getElementById(id);
const chosenCell = { solver: null, model: null };
let board = null, own = [];
const digits = (value, places = 3) => (Number.isFinite(value) ? String(Number(value.toPrecision(places))) : "–");
const share = (value) => (100 * value).toFixed(0) + " %";
function td(text, value = text, kind = "n") {
  const cell = document.createElement("td");
  cell.className = kind;
  cell.textContent = text;
  if (value !== undefined && value !== "" && (kind !== "n" || Number.isFinite(value))) cell.dataset.value = value;
  return cell;
}
const count = (value) => td(value || "", value);
const measured = (value) => td(digits(value), value);
// A cell whose button chooses a solver or a model.
function choose(axis, index, text) {
  const cell = td("", text, "choice-of"), button = document.createElement("button");
  button.type = "button";
  button.append(...text.split(/(?<=[/_.])/).flatMap((part) => [part, document.createElement("wbr")]));
  if (chosenCell[axis] === index) button.setAttribute("aria-current", "true");
  button.addEventListener("click", () => {
    chosenCell[axis] = index;
    show();
    element(axis).focus();
    element(axis).scrollIntoView({ block: "start" });
  });
  cell.append(button);
  return cell;
}
function drawInterval(row, most) {
  const shape = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const at = (rank) => 4 + (92 * (rank - 1)) / Math.max(1, most - 1);
  const label = "mean rank " + row.rank.toFixed(1) + ", 95 % from " + row.low.toFixed(1) + " to " + row.high.toFixed(1);
  const svg = shape("svg", { role: "img", "aria-label": label, viewBox: "0 0 100 12", class: "interval" });
  svg.append(shape("line", { x1: at(row.low), x2: at(row.high), y1: 6, y2: 6 }), shape("circle", { cx: at(row.rank), cy: 6, r: 3 }));
  return svg;
}
function fill(id, lines) {
  const table = element(id);
  table.tBodies[0].replaceChildren(...lines.map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells);
    return row;
  }));
  const sorted = table.querySelector("th[aria-sort]");
  if (sorted) sortTable(table, sorted.cellIndex, sorted.getAttribute("aria-sort") === "descending");
  else filterTable(table);
}
// What one solver came to on one model.
function resultCells(row, i, quantity) {
  const cells = row.cells[i];
  const texts = (column) => [...new Set(cells.map((cell) => board.texts[column][board.cells[column][cell]]))].filter(Boolean).join("; ");
  const seconds = cells.map((cell) => board.cells.cpu_seconds[cell]).filter((one) => one !== null);
  const outcomes = cells.length ? [...new Set(cells.map((cell) => outcome(board, cell, quantity)))].join(", ") : "not run";
  const verdict = texts("verdict");
  return [
    measured(row.values[i]), td(digits(row.ranks[i]), row.ranks[i]), measured(row.ratios[i]), td(outcomes, outcomes, "name"),
    td(texts(quantity.doubt === "marginals" ? "marginals_level" : "log_z_level"), undefined, "name"),
    measured(seconds.length ? quantile(seconds, 0.5) : Infinity), td(verdict === "ok" ? "" : verdict, verdict, "verdict"),
  ];
}
const zeros = (model) => (model.zeros === undefined ? "–" : model.zeros > 0 ? share(model.zeros) : "none");
function showSolver(summary, quantity) {
  const row = summary.rows.find((one) => one.solver === chosenCell.solver) ?? summary.rows[0];
  element("solver").textContent = row ? board.solvers[row.solver].label : "";
  fill("models", !row ? [] : summary.models.map((model, i) => {
    const { label, class: name, variables, states, width } = board.models[model];
    return [choose("model", model, label), td(name, name, "name"), td(variables ?? "–", variables), td(states ?? "–", states),
      td(zeros(board.models[model]), board.models[model].zeros), td(width ?? "–", width), ...resultCells(row, i, quantity)];
  }));
}
function showModel(summary, quantity) {
  const i = summary.models.indexOf(chosenCell.model), model = board.models[chosenCell.model];
  element("card").hidden = i < 0;
  if (i < 0) return;
  element("model").textContent = model.label;
  const facts = {
    class: model.class, variables: model.variables, "largest number of states": model.states, "largest factor": model.order,
    "hard zeros": zeros(model), "width met by the exact answer": model.width,
    "within the accuracy": summary.rows.filter((row) => row.values[i] <= accuracy()).length + " of " + summary.rows.length + " solvers",
  };
  element("facts").replaceChildren(...Object.entries(facts).map(([name, value]) => {
    const fact = document.createElement("span");
    fact.textContent = name + ": " + (value ?? "not known");
    return fact;
  }));
  const rows = [...summary.rows].sort((a, b) => a.ranks[i] - b.ranks[i]);
  fill("rivals", rows.map((row) => [choose("solver", row.solver, board.solvers[row.solver].label), ...resultCells(row, i, quantity)]));
}
const accuracy = () => number(element("accuracy").value) ?? 0;
function readFilters() {
  const sets = Array.from(form.querySelectorAll(".choice"), (choice) => [choice.dataset.axis,
    new Set(Array.from(choice.querySelectorAll("input:checked"), (box) => box.value))]);
  return {
    ...Object.fromEntries(sets), quantity: Number(element("quantity").value), budget: Number(element("budget").value),
    least: number(element("least").value) ?? undefined, most: number(element("most").value) ?? undefined, accuracy: accuracy(),
  };
}
function show() {
  const filters = readFilters(), summary = summarise(board, filters), quantity = board.quantities[filters.quantity];
  const { models, rows } = summary;
  element("summary").textContent = rows.length
    ? models.length + " of " + board.models.length + " models, " + rows.length + " of " + board.solvers.length + " solvers, by " + quantity.name + " after " + board.budgets[filters.budget].label
    : "no model passes these filters and has this quantity after this budget";
  fill("solvers", rows.map((row) => {
    const interval = td(row.low.toFixed(1) + "–" + row.high.toFixed(1), row.low);
    interval.append(drawInterval(row, rows.length));
    const of = (value) => td(value + " of " + models.length, value);
    return [choose("solver", row.solver, board.solvers[row.solver].label), td(row.rank.toFixed(1), row.rank), interval,
      of(row.run), of(row.solved), td(share(row.within), row.within), measured(row.ratio),
      ...["doubted", "refused", "failed", "not run"].map((name) => count(row.counts[name]))];
  }));
  showSolver(summary, quantity);
  showModel(summary, quantity);
}
// Files replace those that were chosen before.
async function readOwn(original) {
  board = structuredClone(original);
  const rows = [], sentences = [];
  for (const file of element("own").files) {
    try {
      rows.push(...readRows(file.name, await file.text(), board.quantities));
    } catch (error) {
      sentences.push(error.message);
    }
  }
  if (rows.length) sentences.unshift(...addResults(board, rows));
  element("messages").textContent = sentences.join(". ");
  show();
}
form.addEventListener("submit", (event) => event.preventDefault());
unpack(element("data").textContent).then((text) => {
  const original = JSON.parse(text);
  board = original;
  form.addEventListener("change", (event) => {
    if (event.target.id === "quantity") element("accuracy").value = board.quantities[event.target.value].tolerance;
    show();
  });
  element("all").addEventListener("click", () => { form.reset(); show(); });
  element("own").addEventListener("change", () => readOwn(original));
  show();
});
