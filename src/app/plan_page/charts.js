// Bars of memory and time, and the diagram of contexts and sizes. Colors come from the style sheet.
import {element} from './dom.js';
import {number, parameters, short} from './numbers.js';

const percent = (part) => `${(100 * part).toFixed(3)}%`;

/** One bar of parts [name, value], out of `whole`; `limit` is marked. */
export function stacked_bar(parts, whole, limit) {
  const bar = element('div', {className: 'stack', 'aria-hidden': 'true'});
  for (const [name, value] of parts) {
    const part = element('span', {className: name});
    part.style.width = percent(value / whole);
    bar.append(part);
  }
  if (limit < whole) {
    const mark = element('i');
    mark.style.left = percent(limit / whole);
    bar.append(mark);
  }
  return bar;
}

/** Rows of {name, label, us, source}, each starting where the one before ends; `total` likewise. */
export function waterfall(rows, total) {
  const whole = Math.max(total.us, rows.reduce((sum, row) => sum + row.us, 0));
  let before = 0;
  const line = (row, start) => {
    const bar = element('span', {className: `${row.name} piece`});
    bar.style.marginLeft = percent(start / whole);
    bar.style.width = percent(row.us / whole);
    return element('div', {className: 'step'}, element('span', {}, row.label),
                   element('span', {className: 'track', 'aria-hidden': 'true'}, bar),
                   number(`${short(row.us)} µs`, row.source));
  };
  const lines = rows.map((row) => {
    before += row.us;
    return line(row, before - row.us);
  });
  return [...lines, line(total, 0)];
}

// ---- Contours ----

const kSvg = 'http://www.w3.org/2000/svg';

function shape(tag, attributes, text = '') {
  const node = document.createElementNS(kSvg, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.textContent = text;
  return node;
}

/** Where value(column, row) crosses `level`: segments [x, y, x, y] in columns and rows. Straight in
 *  the logarithm of the value along the edges of each cell. */
export function contour(columns, rows, value, level) {
  const segments = [];
  const cross = (c0, r0, c1, r1) => {
    const a = Math.log(value(c0, r0) / level), b = Math.log(value(c1, r1) / level);
    if ((a < 0) === (b < 0)) return [];
    const t = a / (a - b);
    return [[c0 + t * (c1 - c0), r0 + t * (r1 - r0)]];
  };
  for (let c = 0; c + 1 < columns; ++c) {
    for (let r = 0; r + 1 < rows; ++r) {
      const ends = [...cross(c, r, c + 1, r), ...cross(c + 1, r, c + 1, r + 1),
                    ...cross(c, r + 1, c + 1, r + 1), ...cross(c, r, c, r + 1)];
      for (let i = 0; i + 1 < ends.length; i += 2) segments.push([...ends[i], ...ends[i + 1]]);
    }
  }
  return segments;
}

/** Levels of 1, 3, 10 ... (or 1, 2, 4 ... for few octaves) inside the range of `values`. */
export function levels_of(values) {
  const low = Math.min(...values), high = Math.max(...values);
  if (high / low < 30) {
    const first = 2 ** Math.ceil(Math.log2(low * 1.01));
    return Array.from({length: 6}, (_, i) => first * 2 ** i).filter((x) => x < high);
  }
  const levels = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); ++e) {
    for (const x of [10 ** e, 3 * 10 ** e]) if (x > low && x < high) levels.push(x);
  }
  return levels.length > 8 ? levels.filter((x) => Math.abs(Math.log10(x) % 1) < 1e-9) : levels;
}

const tokens = (n) => n >= 1 << 20 ? `${n / (1 << 20)}Mi` : `${n / 1024}Ki`;

/** An SVG of contexts to the right and sizes upwards, both logarithmic. `marks`: [context, size,
 *  class] of points. */
export function phase_svg(phase, values, marks) {
  const {contexts, sizes} = phase;
  const left = 52, top = 10, width = 560, height = 330;
  const along = (axis, x) => Math.log(x / axis[0]) / Math.log(axis.at(-1) / axis[0]);
  const x_of = (context) => left + width * Math.min(1, Math.max(0, along(contexts, context)));
  const y_of = (size) => top + height * (1 - Math.min(1, Math.max(0, along(sizes, size))));
  const svg = shape('svg', {viewBox: `0 0 ${left + width + 48} ${top + height + 46}`, role: 'img',
                            'aria-label': 'Contours; the text below reads the point out'});
  svg.append(shape('rect', {x: left, y: top, width, height, class: 'frame'}));
  for (let context = contexts[0]; context <= contexts.at(-1) * 1.001; context *= 4) {
    svg.append(shape('text', {x: x_of(context), y: top + height + 18, 'text-anchor': 'middle'},
                     tokens(context)));
  }
  for (const size of [1e10, 1e11, 1e12, 1e13]) {
    svg.append(shape('text', {x: left - 6, y: y_of(size) + 4, 'text-anchor': 'end'}, parameters(size)),
               shape('path', {d: `M${left} ${y_of(size)}h${width}`, class: 'rule'}));
  }
  svg.append(shape('text', {x: left + width / 2, y: top + height + 38, 'text-anchor': 'middle'},
                   'tokens of context; upwards: parameters'));
  const value = (c, r) => values[c * sizes.length + r];
  for (const level of values[0] === null ? [] : levels_of(values)) {
    const lines = contour(contexts.length, sizes.length, value, level).map(
        (ends) => ends.map((end, i) => i % 2 === 0 ? left + width * end / (contexts.length - 1) :
                                       top + height * (1 - end / (sizes.length - 1))));
    if (!lines.length) continue;
    svg.append(shape('path', {class: 'contour', d: lines.map(
        ([a, b, c, d]) => `M${a.toFixed(1)} ${b.toFixed(1)}L${c.toFixed(1)} ${d.toFixed(1)}`).join('')}));
    const end = lines.flatMap(([a, b, c, d]) => [[a, b], [c, d]]).sort((p, q) => q[0] - p[0])[0];
    svg.append(shape('text', {x: end[0] + 4, y: end[1] + 4, class: 'level'}, short(level).replace(/\.0+$/, '')));
  }
  for (const [context, size, name] of marks) {
    svg.append(shape('circle', {cx: x_of(context), cy: y_of(size), r: 5, class: name}));
  }
  return svg;
}
