// Screens as one animated SVG, without scripts: rows that stay are drawn once, for as long as they are seen. Where nothing is animated, the last
// screen stands still: an animation is stronger than the rule that hides a row.

const [CHAR, LINE, PAD, BAR] = [8.4, 19, 16, 30];
const COLORS = {
  bold: "font-weight:700",
  dim: "opacity:.6",
  red: "fill:#ff7b72",
  green: "fill:#7ee787",
  yellow: "fill:#e3b341",
  blue: "fill:#79c0ff",
  magenta: "fill:#d2a8ff",
  cyan: "fill:#76e3ea",
};
/** How long the last screen stays before it begins again. */
const REST_MS = 6_000;

const escapeXml = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** frames: { ms, rows } by time; a row is a list of { text, style }. */
export function drawSvg(frames, { columns, rows }) {
  const [width, height] = [columns * CHAR + 2 * PAD, rows * LINE + 2 * PAD + BAR];
  const total = Math.round(frames.at(-1).ms + REST_MS);
  const spans = spansOf(frames, total);
  const rules = spans.map(({ from, to }, i) => keyframes(i, from, to, total)).filter((rule) => rule !== "");
  const texts = spans.map(({ y, row }, i) => `<g class="s s${i}">${rowText(row, y)}</g>`);
  const styles = Object.entries(COLORS).map(([name, rule]) => `.${name}{${rule}}`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img" aria-label="Recording of rlcli's quickstart in a terminal">
<style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e6edf3}
${styles.join("")}
@media (prefers-reduced-motion: no-preference){.s{animation:${total}ms step-end infinite}
${rules.join("\n")}}
${spans.map(({ to }, i) => (to < total ? `.s${i}{visibility:hidden}` : "")).join("")}
</style>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
<circle cx="20" cy="18" r="6" fill="#ff5f57"/><circle cx="40" cy="18" r="6" fill="#febc2e"/><circle cx="60" cy="18" r="6" fill="#28c840"/>
${texts.join("\n")}
</svg>
`;
}

/** Each row as long as the same stands at the same place. */
function spansOf(frames, total) {
  const spans = [];
  const open = new Map();
  for (const { ms, rows } of frames) {
    const seen = new Map(rows.map((row, y) => [y, JSON.stringify(row)]));
    for (const [y, span] of open)
      if (seen.get(y) !== span.key) {
        span.to = ms;
        open.delete(y);
      }
    rows.forEach((row, y) => {
      if (open.has(y) || row.length === 0) return;
      const span = { y, row, key: seen.get(y), from: ms, to: total };
      open.set(y, span);
      spans.push(span);
    });
  }
  return spans;
}

function keyframes(i, from, to, total) {
  const percent = (ms) => `${Math.round((ms / total) * 1e4) / 100}%`;
  const start = from === 0 ? "" : "0%{visibility:hidden}";
  const end = to === total ? "" : `${percent(to)}{visibility:hidden}`;
  return `.s${i}{animation-name:k${i}}@keyframes k${i}{${start}${percent(from)}{visibility:visible}${end}${to === total ? "100%{visibility:visible}" : "100%{visibility:hidden}"}}`;
}

function rowText(row, y) {
  let x = 0;
  // Spaces side by side would be one in an SVG, so what stands between them is placed by itself.
  const words = row.flatMap(({ text, style }) => text.split(/( {2,}|^ +| +$)/).map((word) => ({ text: word, style })));
  const parts = words.map(({ text, style }) => {
    const at = x;
    x += [...text].length;
    if (text.trim() === "") return "";
    // Its length is said, so that another font does not move what stands beside it.
    return `<tspan x="${Math.round((PAD + at * CHAR) * 10) / 10}" textLength="${Math.round([...text].length * CHAR * 10) / 10}"${style ? ` class="${style}"` : ""}>${escapeXml(text)}</tspan>`;
  });
  return `<text y="${PAD + BAR + (y + 0.5) * LINE}">${parts.join("")}</text>`;
}
