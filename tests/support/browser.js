/* What is wrong with a page as it is drawn: a list of sentences, posted to the page around it. */
const found = [];
const say = (what, text) => { if (found.length < 400) found.push(what + ": " + String(text).trim().slice(0, 80)); };
window.addEventListener("error", event => say("error", event.message));
const luminance = ([r, g, b]) => {
  const linear = [r, g, b].map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const colour = text => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
const over = (top, below) => {
  const a = top.length > 3 ? top[3] : 1;
  return [0, 1, 2].map(i => a * top[i] + (1 - a) * below[i]);
};
function behind(element) {
  const layers = [];
  for (let e = element; e; e = e.parentElement) layers.push(colour(getComputedStyle(e).backgroundColor));
  const paper = matchMedia("(prefers-color-scheme: dark)").matches ? [20, 24, 28] : [255, 255, 255];
  return layers.reverse().reduce((below, layer) => over(layer, below), paper);
}
function contrast(element, ink, paper) {
  const [a, b] = [luminance(over(ink, paper)), luminance(paper)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}
const inverted = rgb => { /* invert(1) hue-rotate(180deg) */
  const [r, g, b] = rgb.slice(0, 3).map(v => 255 - v);
  const clip = v => Math.min(255, Math.max(0, v));
  return [clip(-0.574 * r + 1.43 * g + 0.144 * b), clip(0.426 * r + 0.43 * g + 0.144 * b), clip(0.426 * r + 1.43 * g - 0.856 * b)];
};
function overlapping(items, what) {
  items.sort((a, b) => a.box.top - b.box.top);
  items.forEach((one, i) => {
    for (let j = i + 1; j < items.length && items[j].box.top < one.box.bottom - 2; j++) {
      const other = items[j].box;
      if (items[j].element === one.element) continue;
      if (Math.min(one.box.right, other.right) - Math.max(one.box.left, other.left) > 2
        && Math.min(one.box.bottom, other.bottom) - Math.max(one.box.top, other.top) > 2.5)
        say(what, one.text.trim().slice(0, 30) + " / " + items[j].text.trim());
    }
  });
}
function texts() {
  const made = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest("script, style, svg, option, select")) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) if (box.width > 1) made.push({ element, box, text: node.data });
  }
  return made;
}
function judge(wide) {
  const page = document.documentElement;
  if (page.scrollWidth > innerWidth + 1) say("wider than the screen", page.scrollWidth + " px");
  const items = texts(), seen = new Set();
  for (const { element, box, text } of items) {
    for (let e = element; e && e !== page; e = e.parentElement) {
      const style = getComputedStyle(e), outer = e.getBoundingClientRect();
      const past = box.right > outer.right + 1.5 || box.left < outer.left - 1.5;
      if (past && (["hidden", "clip"].includes(style.overflowX) || (wide && e.classList.contains("scroll")))) say("cut", text);
      if (["auto", "scroll"].includes(style.overflowX)) break;
    }
    if (seen.has(element)) continue;
    seen.add(element);
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const ratio = contrast(element, colour(style.color), behind(element));
    if (ratio < (large ? 3 : 4.5)) say("contrast " + ratio.toFixed(2), text);
  }
  overlapping(items, "overlap");
  for (const svg of document.querySelectorAll("figure svg")) {
    if (!svg.checkVisibility()) continue;
    const outer = svg.getBoundingClientRect(), dark = getComputedStyle(svg).filter !== "none";
    const scale = outer.width / svg.viewBox.baseVal.width, labels = [];
    for (const label of svg.querySelectorAll("text")) {
      const box = label.getBoundingClientRect(), style = getComputedStyle(label);
      if (!label.textContent.trim() || !box.width) continue;
      labels.push({ element: label, box, text: label.textContent });
      if (box.right > outer.right + 2 || box.left < outer.left - 2 || box.bottom > outer.bottom + 2) say("cut in a figure", label.textContent);
      const size = scale * parseFloat(style.fontSize);
      if (size < SMALLEST) say("small in a figure, " + size.toFixed(1) + " px", label.textContent);
      const ink = dark ? inverted(colour(style.fill)) : colour(style.fill);
      const ratio = contrast(label, ink, behind(svg.parentElement));
      if (ratio < 4.5) say("contrast " + ratio.toFixed(2) + " in a figure", label.textContent);
    }
    overlapping(labels, "overlap in a figure");
  }
  return { found, texts: items.length, figures: document.querySelectorAll("figure svg").length };
}
addEventListener("load", () => parent.postMessage(JSON.stringify(judge(WIDE)), "*"));
