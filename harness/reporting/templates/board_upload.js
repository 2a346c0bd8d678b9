"use strict";
// Results of the reader's own, from files: records of a sweep's folder, or cells.csv of `spinbench report --tables`.
const number = (value) => {
  if (value === "True") return 1;
  return value === "" || value === null || value === undefined || !Number.isFinite(Number(value)) ? null : Number(value);
};
const counted = (count, noun) => count + " " + noun + (count === 1 ? "" : "s");
function parseCsv(text) {
  const lines = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    lines.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "") break;
    if (end !== ",") lines.push([]);
  }
  const [head, ...rows] = lines.filter((line) => line.length > 1);
  // An apostrophe stands before texts that a spreadsheet would read as formulas.
  return rows.map((row) => new Map(head.map((name, i) => [name, (row[i] ?? "").replace(/^'/, "")])));
}
function flatten(content, path = "", flat = new Map()) {
  for (const [name, value] of Object.entries(content)) {
    if (value !== null && typeof value === "object" && !Array.isArray(value)) flatten(value, path + name + ".", flat);
    else flat.set(path + name, value ?? "");
  }
  return flat;
}
// The rows of a file by dotted names; throws a sentence.
function readRows(name, text, quantities) {
  let rows;
  try {
    rows = name.endsWith(".csv") ? parseCsv(text) : [JSON.parse(text)].flat().map((record) => flatten(record));
  } catch {
    throw new Error(name + " is neither a record in JSON nor a table cells.csv");
  }
  if (!rows.length) throw new Error(name + " holds no records");
  const needed = ["axes.model", "axes.method", "axes.backend", "config.seed", "status"];
  for (const row of rows) {
    const missing = needed.find((field) => String(row.get(field) ?? "") === "");
    if (missing) throw new Error(name + " is no record of spinbench: " + missing + " is missing");
    const metric = quantities.map((quantity) => "metrics." + quantity.metric + ".value").find(
      (field) => String(row.get(field) ?? "") !== "" && !((number(row.get(field)) ?? -1) >= 0));
    if (metric) throw new Error(name + " is no record of spinbench: " + metric + " is " + row.get(metric));
  }
  return rows;
}
// Of each row its solver, with the settings that differ, as spinbench.reporting.profiles.boards.solver_names.
function labelSolvers(rows) {
  const values = new Map();
  const name = (row) => row.get("axes.method") + "." + row.get("axes.backend");
  const settings = (row) => [...row].filter(([key]) => key === "config.chains" || key.startsWith("config.method."));
  for (const row of rows) {
    for (const [key, value] of settings(row)) {
      const place = name(row) + " " + key;
      values.set(place, (values.get(place) ?? new Set()).add(String(value)));
    }
  }
  return rows.map((row) => [name(row), ...settings(row).filter(([key]) => values.get(name(row) + " " + key).size > 1)
    .map(([key, value]) => key.replace(/^config\.(method\.)?/, "") + "=" + value)].join(" "));
}
// Adds rows as further solvers; of the same cell the newest counts. Returns sentences on what was added and what not.
function addResults(table, rows) {
  const budgetKey = (part) => JSON.stringify(["seconds", "samples", "burn_in"].map((name) => number(part(name))))
    + Boolean(number(part("cpu")));
  const models = new Map(table.models.map((model, i) => [model.label, i]));
  const budgets = new Map(table.budgets.map((budget, i) => [budgetKey((name) => budget[name]), i]));
  const strangeModels = new Set(), newest = new Map();
  let budgetless = 0;
  const compared = rows.filter((row) => row.get("axes.method") !== "exact");
  compared.sort((a, b) => number(a.get("started_at")) - number(b.get("started_at")));
  const labels = labelSolvers(compared);
  compared.forEach((row, i) => {
    const model = models.get(row.get("axes.model"));
    const budget = budgets.get(budgetKey((name) => row.get("config.budget." + name)));
    if (model === undefined) strangeModels.add(row.get("axes.model"));
    else if (budget === undefined) budgetless++;
    else newest.set(JSON.stringify([labels[i], model, budget, row.get("config.seed")]), [labels[i], model, budget, row]);
  });
  const solvers = new Map();
  for (const [label, model, budget, row] of newest.values()) {
    if (!solvers.has(label)) solvers.set(label, table.solvers.push({ label: "own: " + label, uploaded: true }) - 1);
    const status = row.get("status");
    const texts = {
      status, verdict: row.get(status === "ok" ? "result.status" : "error"),
      marginals_level: row.get("result.levels.marginals"), log_z_level: row.get("result.levels.log_z"),
    };
    const cell = { model, budget, solver: solvers.get(label), seed: row.get("config.seed") };
    for (const [column, dictionary] of Object.entries(table.texts)) {
      const text = String(texts[column] ?? "");
      if (!dictionary.includes(text)) dictionary.push(text);
      cell[column] = dictionary.indexOf(text);
    }
    for (const { metric } of table.quantities) {
      const value = number(row.get("metrics." + metric + ".value"));
      cell[metric] = value === null ? null : Number(value.toPrecision(4)); // as the board's: equal errors stay equal
    }
    cell.cpu_seconds = number(row.get("result.load.cpu_seconds"));
    for (const [column, values] of Object.entries(table.cells)) values.push(cell[column]);
  }
  const sentences = [counted(newest.size, "cell") + " of " + counted(solvers.size, "solver") + " are added"];
  if (strangeModels.size) sentences.push("the board has no model " + [...strangeModels].join(", no "));
  if (budgetless) sentences.push("the board has no budget of " + counted(budgetless, "cell"));
  return sentences;
}
