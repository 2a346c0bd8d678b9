"use strict";
// How solvers compare over the models that pass: the definitions of spinbench.reporting.profiles.boards, which names
// their sources. Nothing here knows of the page.
const RESAMPLES = 2000;
// Linear between the sorted values around it, as numpy.quantile; infinite where one of these is.
function quantile(values, q) {
  const sorted = Float64Array.from(values).sort();
  const place = q * (sorted.length - 1), below = Math.floor(place);
  return place === below ? sorted[below] : sorted[below] * (1 - place + below) + sorted[below + 1] * (place - below);
}
// Numbers in 0 to 1, the same for the same seed (mulberry32).
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let bits = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}
// A doubt that names the other number alone is none of this one.
function outcome(table, cell, quantity) {
  const status = table.texts.status[table.cells.status[cell]];
  if (status === "skipped") return "refused";
  if (status !== "ok") return "failed";
  const other = quantity.doubt === "marginals" ? "log Z" : "marginals";
  const doubts = table.texts.verdict[table.cells.verdict[cell]].split(", ");
  return doubts.every((doubt) => doubt === "ok" || doubt.startsWith(other)) ? "ok" : "doubted";
}
const MODEL_FILTERS = {
  class: (model) => model.class,
  states: (model) => model.states && (model.states > 2 ? "more" : "binary"),
  zeros: (model) => model.zeros === undefined ? undefined : model.zeros > 0 ? "yes" : "no",
};
const solverKind = (solver) => (solver.uploaded ? "my own" : solver.library ? "libraries" : "spinbench");
const isChosen = (values, value) => !values?.size || values.has(value);
// What is not known of a model passes no filter of it.
function passesFilters(model, filters) {
  const variables = model.variables ?? NaN, { minVariables, maxVariables } = filters;
  return !(minVariables && !(variables >= minVariables)) && !(maxVariables && !(variables <= maxVariables))
    && Object.entries(MODEL_FILTERS).every(([name, kind]) => isChosen(filters[name], kind(model)));
}
function rankSolvers(ratios) {
  return ratios.map((ratio) => {
    let less = 0, equal = 0;
    for (const other of ratios) {
      less += other < ratio;
      equal += other === ratio;
    }
    return less + (equal + 1) / 2;
  });
}
// Of each solver [low, high], over resampled models.
function rankIntervals(ranks, solvers) {
  const random = generator(0), models = ranks.length;
  const means = Array.from({ length: solvers }, () => new Float64Array(RESAMPLES));
  for (let i = 0; i < RESAMPLES; i++) {
    for (let k = 0; k < models; k++) {
      const modelRanks = ranks[Math.floor(random() * models)];
      for (let s = 0; s < solvers; s++) means[s][i] += modelRanks[s] / models;
    }
  }
  return means.map((mean) => [quantile(mean, 0.025), quantile(mean, 0.975)]);
}
// Solvers from the best mean rank on. filters: numbers of a quantity and a budget of the table, an accuracy, sets of
// classes, states, zeros and solvers (all where empty), minVariables, maxVariables. A solver's lists are in the order of
// `models`, on which some solver has the quantity, doubted or not: `cells`, `values`, their medians, infinite where it
// failed, refused, was doubted or not run, `ratios` over the best of the model, and `ranks`.
function summarise(table, filters) {
  const { cells } = table, quantity = table.quantities[filters.quantity], numbers = cells[quantity.metric];
  const passingModels = table.models.map((model) => passesFilters(model, filters));
  const passingSolvers = table.solvers.map((solver) => isChosen(filters.solvers, solverKind(solver)));
  const groups = new Map(), measuredModels = new Set(), solvers = new Set();
  const key = (solver, model) => solver * table.models.length + model;
  for (let cell = 0; cell < numbers.length; cell++) {
    const solver = cells.solver[cell], model = cells.model[cell], place = key(solver, model);
    if (cells.budget[cell] !== filters.budget || !passingModels[model] || !passingSolvers[solver]) continue;
    groups.set(place, [...(groups.get(place) ?? []), cell]);
    if (numbers[cell] === null) continue;
    measuredModels.add(model);
    solvers.add(solver);
  }
  const models = [...measuredModels].sort((a, b) => a - b);
  const value = (cell) => (outcome(table, cell, quantity) === "ok" ? numbers[cell] ?? Infinity : Infinity);
  const rows = [...solvers].map((solver) => {
    const solverCells = models.map((model) => groups.get(key(solver, model)) ?? []);
    return { solver, cells: solverCells, values: solverCells.map((group) => quantile(group.length ? group.map(value) : [Infinity], 0.5)) };
  });
  const ratios = models.map((_, i) => {
    const floored = rows.map((row) => Math.max(row.values[i], quantity.floor)), best = Math.min(...floored);
    return floored.map((number) => (best < Infinity ? number / best : Infinity));
  });
  const ranks = ratios.map(rankSolvers), intervals = rankIntervals(ranks, rows.length);
  const runs = Math.max(0, ...Array.from(groups.values(), (group) => group.length));
  rows.forEach((row, s) => {
    row.ratios = ratios.map((modelRatios) => modelRatios[s]);
    row.ranks = ranks.map((modelRanks) => modelRanks[s]);
    [row.low, row.high] = intervals[s];
    row.rank = row.ranks.reduce((sum, rank) => sum + rank, 0) / models.length;
    const finite = row.ratios.filter((ratio) => ratio < Infinity);
    row.solved = finite.length;
    row.ratio = Math.exp(finite.reduce((sum, ratio) => sum + Math.log(ratio), 0) / finite.length);
    row.within = row.values.filter((number) => number <= filters.accuracy).length / models.length;
    row.run = row.cells.filter((group) => group.some((cell) => table.texts.status[cells.status[cell]] === "ok")).length;
    row.counts = { ok: 0, doubted: 0, failed: 0, refused: 0, "not run": models.length * runs - row.cells.flat().length };
    for (const cell of row.cells.flat()) row.counts[outcome(table, cell, quantity)]++;
  });
  return { models, rows: rows.sort((a, b) => a.rank - b.rank) };
}
