"use strict";
// The page of a board. Texts of records become text nodes alone.
const element = (id) => document.getElementById(id);
const form = element("board");
const chosenNumbers = { solver: null, model: null };
let board = null;
const format = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : "–");
const percent = (value) => (100 * value).toFixed(0) + " %";
function td(text, value = text, kind = "n") {
  const cell = document.createElement("td");
  cell.className = kind;
  cell.textContent = text;
  if (value !== undefined && value !== "" && (kind !== "n" || Number.isFinite(value))) cell.dataset.value = value;
  return cell;
}
const numberCell = (value) => td(format(value), value);
const wholeCell = (value) => td(value ?? "–", value);
const textCell = (text) => td(text, text, "name");
// A cell whose button chooses a solver or a model; evidence beside a model's own file is not spelt out.
function choiceCell(axis, number, label) {
  const cell = td("", label, "choice-of"), button = document.createElement("button");
  const parts = label.replace(/^(\S+) given \1\.evid$/, "$1, evid").split(/(?<=[/_.])/);
  button.title = label;
  button.append(...parts.flatMap((part) => [part, document.createElement("wbr")]));
  if (chosenNumbers[axis] === number) button.setAttribute("aria-current", "true");
  button.addEventListener("click", () => {
    chosenNumbers[axis] = number;
    show();
    element(axis).focus();
    element(axis).scrollIntoView({ block: "start" });
  });
  cell.append(button);
  return cell;
}
function drawInterval(row, solvers) {
  const shape = (name, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const x = (rank) => 4 + (92 * (rank - 1)) / Math.max(1, solvers - 1);
  const label = "mean rank " + row.rank.toFixed(1) + ", 95 % from " + row.low.toFixed(1) + " to " + row.high.toFixed(1);
  const svg = shape("svg", { role: "img", "aria-label": label, viewBox: "0 0 100 12", class: "interval" });
  svg.append(shape("line", { x1: x(row.low), x2: x(row.high), y1: 6, y2: 6 }), shape("circle", { cx: x(row.rank), cy: 6, r: 3 }));
  return svg;
}
function fillTable(id, lines) {
  const table = element(id), sorted = table.querySelector("th[aria-sort]");
  table.tBodies[0].replaceChildren(...lines.map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells);
    return row;
  }));
  if (sorted) sortTable(table, sorted.cellIndex, sorted.getAttribute("aria-sort") === "descending");
}
// What a solver came to on the i-th model.
function resultCells(row, i, quantity) {
  const cells = row.cells[i];
  const join = (textOf) => [...new Set(cells.map(textOf))].filter(Boolean).join("; ");
  const texts = (column) => join((cell) => board.texts[column][board.cells[column][cell]]);
  const seconds = cells.map((cell) => board.cells.cpu_seconds[cell]).filter((value) => value !== null);
  const verdict = texts("verdict");
  return [
    numberCell(row.values[i]), numberCell(row.ranks[i]), numberCell(row.ratios[i]),
    textCell(join((cell) => outcome(board, cell, quantity)) || "not run"),
    textCell(texts(quantity.doubt === "marginals" ? "marginals_level" : "log_z_level")),
    numberCell(quantile(seconds.length ? seconds : [Infinity], 0.5)), td(verdict === "ok" ? "" : verdict, verdict, "verdict"),
  ];
}
const formatZeros = ({ zeros }) => (zeros === undefined ? "–" : zeros > 0 ? percent(zeros) : "none");
function showSolver({ models, rows }, quantity) {
  const row = rows.find(({ solver }) => solver === chosenNumbers.solver) ?? rows[0];
  element("solver").textContent = row ? board.solvers[row.solver].label : "";
  fillTable("models", !row ? [] : models.map((number, i) => {
    const model = board.models[number];
    return [choiceCell("model", number, model.label), textCell(model.class), wholeCell(model.variables), wholeCell(model.states),
      td(formatZeros(model), model.zeros), wholeCell(model.width), ...resultCells(row, i, quantity)];
  }));
}
function showModel({ models, rows }, quantity, accuracy) {
  const i = models.indexOf(chosenNumbers.model), model = board.models[chosenNumbers.model];
  element("card").hidden = i < 0;
  if (i < 0) return;
  element("model").textContent = model.label;
  const facts = {
    class: model.class, variables: model.variables, "largest number of states": model.states, "largest factor": model.order,
    "hard zeros": formatZeros(model), "width met by the exact answer": model.width,
    "within the accuracy": rows.filter((row) => row.values[i] <= accuracy).length + " of " + rows.length + " solvers",
  };
  element("facts").replaceChildren(...Object.entries(facts).map(([name, value]) => {
    const fact = document.createElement("span");
    fact.textContent = name + ": " + (value ?? "not known");
    return fact;
  }));
  const ranked = [...rows].sort((a, b) => a.ranks[i] - b.ranks[i]);
  fillTable("rivals", ranked.map((row) => [choiceCell("solver", row.solver, board.solvers[row.solver].label), ...resultCells(row, i, quantity)]));
}
function readFilters() {
  const sets = Array.from(form.querySelectorAll(".choice"), (choice) => [choice.dataset.axis,
    new Set(Array.from(choice.querySelectorAll("input:checked"), (box) => box.value))]);
  const fields = Array.from(form.querySelectorAll("[name]"), (field) => [field.name, number(field.value)]);
  return Object.fromEntries([...sets, ...fields]);
}
function show() {
  const filters = readFilters(), summary = summarise(board, filters), quantity = board.quantities[filters.quantity];
  const { models, rows } = summary, share = (count, all) => count + " of " + all.length;
  element("summary").textContent = rows.length
    ? share(models.length, board.models) + " models, " + share(rows.length, board.solvers) + " solvers, by " + quantity.name
      + " after " + board.budgets[filters.budget].label
    : "no model passes these filters and has this quantity after this budget";
  fillTable("solvers", rows.map((row) => {
    const interval = td(row.low.toFixed(1) + "–" + row.high.toFixed(1), row.low);
    interval.append(drawInterval(row, rows.length));
    return [choiceCell("solver", row.solver, board.solvers[row.solver].label), td(row.rank.toFixed(1), row.rank), interval,
      td(share(row.run, models), row.run), td(share(row.solved, models), row.solved), td(percent(row.within), row.within),
      numberCell(row.ratio), ...["doubted", "refused", "failed", "not run"].map((name) => td(row.counts[name] || "", row.counts[name]))];
  }));
  showSolver(summary, quantity);
  showModel(summary, quantity, filters.accuracy);
}
// Files replace those that were chosen before.
async function readUploads(original) {
  board = structuredClone(original);
  const rows = [], sentences = [];
  for (const file of element("uploads").files) {
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
unpack(element("data").textContent).then((text) => {
  const original = board = JSON.parse(text);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", (event) => {
    if (event.target.name === "quantity") form.elements.accuracy.value = board.quantities[event.target.value].tolerance;
    show();
  });
  element("all").addEventListener("click", () => { form.reset(); show(); });
  element("uploads").addEventListener("change", () => readUploads(original));
  show();
});
