// Numbers for people, and where each of them is from.
import {element} from './dom.js';

/** Three significant digits, or whole numbers. */
export function short(value) {
  const size = Math.abs(value);
  const digits = size >= 100 || value === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return value.toLocaleString('en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits});
}

const kPrefixes = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, ''],
                   [1e-3, 'm'], [1e-6, 'µ'], [1e-9, 'n']];

/** "21 PB/s", "3 µs"; a fraction has no unit. */
export function with_unit(value, unit) {
  if (unit === 'fraction') return String(value);
  if (unit.startsWith('USD')) return `${value.toLocaleString('en-US')} ${unit}`;
  const [scale, prefix] = kPrefixes.find(([s]) => Math.abs(value) >= s * 0.9999) ?? [1, ''];
  return `${Number((value / scale).toPrecision(4))} ${prefix}${unit}`;
}

export const bytes = (value) => with_unit(Number(value.toPrecision(3)), 'B');

export const parameters = (value) =>
    value >= 1e12 ? `${Number((value / 1e12).toPrecision(3))}T` :
    value >= 1e9 ? `${Number((value / 1e9).toPrecision(3))}B` :
                   `${Number((value / 1e6).toPrecision(3))}M`;

const sources = new WeakMap();

/** A number that says where it is from while it is pointed at or has the focus: `source` gives
 *  lines of text. */
export function number(text, source, properties = {}) {
  const node = element('button', {type: 'button', ...properties}, text);
  node.classList.add('number');
  sources.set(node, source);
  return node;
}

/** Shows the sources of numbers in `box`. */
export function connect_sources(box) {
  let shown = null;
  const hide = () => {
    shown?.removeAttribute('aria-describedby');
    shown = null;
    box.hidden = true;
  };
  const show = (node) => {
    if (node === shown) return;
    hide();
    shown = node;
    box.replaceChildren(...sources.get(node)().map((line) => element('p', {}, line)));
    box.hidden = false;
    node.setAttribute('aria-describedby', box.id);
    const {left, bottom, top} = node.getBoundingClientRect();
    const {offsetWidth: width, offsetHeight: height} = box;
    const below = bottom + 6 + height <= innerHeight || top < height + 6;
    box.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - width - 8))}px`;
    box.style.top = `${below ? bottom + 4 : top - height - 4}px`;
  };
  const of = (event) => event.target.closest?.('.number');
  for (const type of ['focusin', 'pointerover', 'click']) {
    document.addEventListener(type, (event) => {
      const node = of(event);
      if (node) show(node);
      else if (!box.contains(event.target)) hide();
    });
  }
  document.addEventListener('focusout', hide);
  document.addEventListener('scroll', hide, {passive: true});
  document.addEventListener('keydown', (event) => { if (event.key === 'Escape') hide(); });
}
