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
const sourceOf = (solver) => (solver.own ? "my own" : solver.library ? "libraries" : "spinbench");
const KINDS = {
  class: (model) => model.class,
  states: (model) => model.states && (model.states > 2 ? "more" : "binary"),
  zeros: (model) => model.zeros === undefined ? undefined : model.zeros > 0 ? "yes" : "no",
};
// filters: {quantity, budget} are numbers in the table; {class, states, zeros, solvers} sets of what passes, where one
// is empty or missing all; {least, most} numbers of variables. What is not known of a model passes no filter of it.
function passing(table, filters) {
  const passes = (set, value) => !set?.size || set.has(value);
  const within = ({ variables }) => (filters.least === undefined || variables >= filters.least)
    && (filters.most === undefined || variables <= filters.most);
  const suits = (model) => within(model) && Object.entries(KINDS).every(([name, kind]) => passes(filters[name], kind(model)));
  return {
    models: table.models.map(suits),
    solvers: table.solvers.map((solver) => passes(filters.solvers, sourceOf(solver))),
  };
}
function ranks(ratios) {
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
function intervals(rankings, solvers) {
  const random = generator(0), models = rankings.length;
  const means = Array.from({ length: solvers }, () => new Float64Array(RESAMPLES));
  for (let i = 0; i < RESAMPLES; i++) {
    for (let k = 0; k < models; k++) {
      const row = rankings[Math.floor(random() * models)];
      for (let s = 0; s < solvers; s++) means[s][i] += row[s] / models;
    }
  }
  return means.map((mean) => [quantile(mean, 0.025), quantile(mean, 0.975)]);
}
function countOutcomes(table, groups, quantity, runs) {
  const counts = { ok: 0, doubted: 0, failed: 0, refused: 0, "not run": 0 };
  for (const group of groups) {
    for (const cell of group) counts[outcome(table, cell, quantity)]++;
    counts["not run"] += runs - group.length;
  }
  return counts;
}
// Solvers from the best mean rank on. A solver's numbers are in the order of `models`, which are those on which some
// solver has the quantity, doubted or not: `cells` its cells, `values` medians over them, infinite where it failed,
// refused, was doubted or not run, `ratios` over the best of the model, and `ranks`.
function summarise(table, filters) {
  const { cells } = table, quantity = table.quantities[filters.quantity], numbers = cells[quantity.metric];
  const pass = passing(table, filters), groups = new Map(), models = new Set(), solvers = new Set();
  const key = (solver, model) => solver * table.models.length + model;
  for (let cell = 0; cell < numbers.length; cell++) {
    const solver = cells.solver[cell], model = cells.model[cell];
    if (cells.budget[cell] !== filters.budget || !pass.models[model] || !pass.solvers[solver]) continue;
    if (!groups.has(key(solver, model))) groups.set(key(solver, model), []);
    groups.get(key(solver, model)).push(cell);
    if (numbers[cell] === null) continue;
    models.add(model);
    solvers.add(solver);
  }
  const order = [...models].sort((a, b) => a - b);
  const group = (solver, model) => groups.get(key(solver, model)) ?? [];
  const value = (cell) => (outcome(table, cell, quantity) === "ok" ? numbers[cell] ?? Infinity : Infinity);
  const rows = [...solvers].map((solver) => {
    const own = order.map((model) => group(solver, model));
    return { solver, cells: own, values: own.map((one) => (one.length ? quantile(one.map(value), 0.5) : Infinity)) };
  });
  const ratios = order.map((_, i) => {
    const floored = rows.map((row) => Math.max(row.values[i], quantity.floor)), best = Math.min(...floored);
    return floored.map((one) => (best < Infinity ? one / best : Infinity));
  });
  const rankings = ratios.map(ranks), ends = intervals(rankings, rows.length);
  const runs = Math.max(0, ...Array.from(groups.values(), (one) => one.length));
  rows.forEach((row, s) => {
    row.ratios = ratios.map((line) => line[s]);
    row.ranks = rankings.map((line) => line[s]);
    [row.low, row.high] = ends[s];
    row.rank = row.ranks.reduce((sum, one) => sum + one, 0) / order.length;
    const solved = row.ratios.filter((one) => one < Infinity);
    row.solved = solved.length;
    row.ratio = Math.exp(solved.reduce((sum, one) => sum + Math.log(one), 0) / solved.length);
    row.run = row.cells.filter((one) => one.some((cell) => table.texts.status[cells.status[cell]] === "ok")).length;
    row.within = row.values.filter((one) => one <= filters.accuracy).length / order.length;
    row.counts = countOutcomes(table, row.cells, quantity, runs);
  });
  return { models: order, rows: rows.sort((a, b) => a.rank - b.rank) };
}
