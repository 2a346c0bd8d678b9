"use strict";
// The records of a row in a dialog, and the seconds to an error of the reader's choice.
let parsed = null;
const data = () => parsed;
const unpacked = unpack(document.getElementById("data").textContent).then((text) => { parsed = JSON.parse(text); });
const dialog = document.getElementById("cell");
const chooser = dialog.querySelector("select");
let shown = 0;
function showCell(number) {
  shown = number;
  const { environment, ...record } = data().cells[number];
  const axes = record.axes;
  dialog.querySelector("strong").textContent = axes.method + " on " + axes.backend + ", " + axes.model;
  dialog.querySelector("pre").textContent =
    JSON.stringify({ ...record, environment: data().environments[environment] }, null, 2);
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-cells]");
  if (button === null) return;
  if (data() === null) await unpacked;
  const cells = button.dataset.cells === "row"
    ? data().rows[Number(button.closest("tr").dataset.number)]
    : JSON.parse(button.dataset.cells);
  chooser.replaceChildren(...cells.map((number) => {
    const record = data().cells[number];
    return new Option("seed " + record.config.seed + ": " + record.status + " (" + record.key + ")", number);
  }));
  showCell(cells[0]);
  dialog.showModal();
});
chooser.addEventListener("change", () => showCell(Number(chooser.value)));
dialog.querySelector("#close").addEventListener("click", () => dialog.close());

// The command that measures cells again; they differ in their seeds alone.
function command(cells) {
  const seeds = [...new Set(cells.map((number) => data().cells[number].config.seed))];
  return data().commands[data().command_of[cells[0]]] + seeds.join(",");
}
async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // not allowed for a page from disk, in some browsers
    const field = document.createElement("textarea");
    field.value = text;
    (dialog.open ? dialog : document.body).append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  const before = button.textContent;
  button.textContent = "✓";
  setTimeout(() => { button.textContent = before; }, 900);
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (button !== null && data() === null) await unpacked;
  if (button !== null) copy(command(data().rows[Number(button.closest("tr").dataset.number)]), button);
});
dialog.querySelector("#copy").addEventListener("click", (event) => copy(command([shown]), event.target));

// As spinbench.mathematics.statistics.time_to_error: the last crossing, interpolated on logarithmic axes.
function timeToError(points, target) {
  let above = -1;
  points.forEach(([, error], i) => { if (!(error <= target)) above = i; });
  if (points.length === 0 || above === points.length - 1) return Infinity;
  if (above < 0) return points[0][0];
  const [[before, high], [after, low]] = [points[above], points[above + 1]];
  if (!(low > 0 && high < Infinity && before > 0)) return after;
  return before * (after / before) ** (Math.log(high / target) / Math.log(high / low));
}
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}
const target = document.getElementById("target");
let series = null;
const points = () => series ??= data().rows.map((cells) => cells.map((i) => data().cells[i]).filter((cell) => cell.status === "ok").map(
  (cell) => cell.result.trajectory.filter((p) => p.marginal_rmse !== null).map((p) => [p.seconds, p.marginal_rmse])));
target.addEventListener("input", async () => {
  await Promise.all([unpacked, complete]);
  const error = Number(target.value) / 100;
  if (!(error > 0)) return;
  for (const cell of document.querySelectorAll("td[data-reached]")) {
    const times = points()[Number(cell.closest("tr").dataset.number)].map((found) => timeToError(found, error));
    const seconds = times.length ? median(times) : Infinity;
    if (Number.isFinite(seconds)) cell.dataset.value = seconds;
    else delete cell.dataset.value;
    cell.textContent = Number.isFinite(seconds) ? seconds.toPrecision(3) : "–";
  }
});
