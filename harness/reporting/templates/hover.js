// The checkpoint nearest to the pointer: value, error and seed. And charts over one time or the other.
const tip = document.getElementById("tip");
const NEAR = 16;
function nearest(svg, x, y) {
  const [left, right, top, bottom, from, to, low, high] = JSON.parse(svg.dataset.axes);
  const at = (value, a, b, start, end) => start + (end - start) * Math.log(value / a) / Math.log(b / a);
  let best = null, least = NEAR * NEAR;
  const rows = new Set(Array.from(svg.querySelectorAll("g[data-row]"), (g) => g.dataset.row).filter((row) => numbers.has(row)));
  for (const row of rows) {
    for (const cell of data().rows[Number(row)].map((number) => data().cells[number])) {
      if (cell.status !== "ok" || cell.result.log_z_kind === "exact") continue;
      const seconds = cell.result.seconds;
      const first = svg.dataset.whole === "1" ? (seconds.plan ?? 0) + seconds.compile : 0;
      for (const point of cell.result.trajectory) {
        const error = point[svg.dataset.quantity];
        if (!(error > 0) || !(point.seconds > 0)) continue;
        const px = at(first + point.seconds, from, to, left, right), py = at(error, low, high, bottom, top);
        const distance = (px - x) ** 2 + (py - y) ** 2;
        if (distance < least) { least = distance; best = { cell, point, error, seconds: first + point.seconds }; }
      }
    }
  }
  return best;
}
function told({ cell, point, error, seconds }, quantity) {
  const digits = (value) => String(Number(value.toPrecision(3)));
  const axes = cell.axes, last = point === cell.result.trajectory.at(-1);
  const known = cell.metrics[quantity] ?? {};
  const spread = last && known.value === error && known.standard_error ? " ± " + digits(known.standard_error) : "";
  const lines = [axes.method + " on " + axes.backend + ", seed " + cell.config.seed];
  lines.push((quantity === "log_z_error" ? "|error of log Z| " : "RMSE ") + digits(error) + spread);
  if (quantity === "log_z_error" && point.log_z !== null) lines.push("log Z " + Number(point.log_z.toPrecision(7)));
  lines.push(digits(seconds) + " s, " + point.samples + " samples");
  if (cell.result.status !== "ok") lines.push(cell.result.status);
  return lines;
}
document.addEventListener("pointermove", (event) => {
  const svg = event.target.closest?.("svg[data-axes]");
  let found = null;
  if (svg && data() !== null) {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    found = nearest(svg, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
  }
  tip.hidden = found === null;
  if (found === null) return;
  tip.replaceChildren(...told(found, svg.dataset.quantity).map((line) => {
    const part = document.createElement("div");
    part.textContent = line;
    return part;
  }));
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4)) + "px";
  tip.style.top = (event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - 12 - tip.offsetHeight : event.clientY + 18) + "px";
});
const whole = document.getElementById("whole");
whole?.addEventListener("change", () => document.body.classList.toggle("whole", whole.checked));
