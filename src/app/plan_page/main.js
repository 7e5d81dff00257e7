// The page of `sluice plan --html`: what is chosen, and everything that follows from it.
import {phase_svg, stacked_bar, waterfall} from './charts.js';
import {count, element, find} from './dom.js';
import {Grid, nearest} from './grid.js';
import {bytes, connect_sources, number, parameters, short, with_unit} from './numbers.js';
import {connect_theme} from './theme.js';

const data = JSON.parse(find('data').textContent);
const grid = new Grid(data);

const kWords = {gpu: 'GPU', tpu: 'TPU', wafer: 'wafer', sram: 'SRAM machine', cpu: 'CPU'};
const kTimes = ['memory_bandwidth', 'peak_bf16', 'peak_fp8', 'peak_fp4', 'link_bandwidth',
                'hop_latency', 'layer_latency', 'token_latency'];
const kUnchecked = 50;  // percent: the error bar where nothing could be checked
const kModel = 'Computed by sluice plan; formulas: docs/planner-model.md.';

/** Halves of octaves: where the sliders stop. */
function stops(axis) {
  const all = new Set(axis);
  for (let x = axis[0]; x <= axis.at(-1); x *= 2) {
    all.add(x);
    if (x * 1.5 < axis.at(-1) && Number.isInteger(x * 1.5)) all.add(x * 1.5);
  }
  return [...all].sort((a, b) => a - b);
}

// ---- What is chosen ----

const first = data.first;
const chosen = {
  model: Math.max(0, data.models.findIndex((m) => m.name === first.model)),
  hardware: 0,
  weights: first.weights, draft: first.draft, prefill: '', users: first.users, context: first.context,
};

const clamp = (axis, value) => Math.min(axis.at(-1), Math.max(axis[0], Math.round(value)));

/** Only what the page offers, whatever an address says. */
function repair() {
  const offered = data.models[chosen.model].weights;
  if (!offered.some((w) => w.format === chosen.weights)) chosen.weights = 'published';
  if (!data.drafts.some((d) => d.name === chosen.draft)) chosen.draft = 'none';
  chosen.users = clamp(data.axes.users, chosen.users);
  chosen.context = clamp(data.axes.context, chosen.context);
}

function read_address() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  for (const [key, list] of [['model', data.models], ['hardware', data.hardware]]) {
    const at = list.findIndex((one) => one.name === wanted.get(key));
    if (at >= 0) chosen[key] = at;
  }
  const prefill = data.hardware.findIndex((h) => h.numbers && h.name === wanted.get('prefill'));
  if (prefill >= 0) chosen.prefill = prefill;
  for (const key of ['weights', 'draft']) if (wanted.has(key)) chosen[key] = wanted.get(key);
  for (const key of ['users', 'context']) if (wanted.get(key) > 0) chosen[key] = Number(wanted.get(key));
}

function write_address() {
  const address = new URLSearchParams({
    ...chosen, model: data.models[chosen.model].name, hardware: data.hardware[chosen.hardware].name,
    prefill: data.hardware[chosen.prefill]?.name ?? ''});
  history.replaceState(null, '', `#${address}`);
}

// ---- Where numbers are from ----

const machine = () => data.hardware[chosen.hardware];
const parts_of = (hardware) => hardware.parts.map((i) => data.hardware[i]);

function quantity_line(name, q) {
  const range = q.low < q.high ? `, ${with_unit(q.low, q.unit)} to ${with_unit(q.high, q.unit)}` : '';
  return `${name}: ${with_unit(q.value, q.unit)}${range} (${q.kind}: ${q.source})`;
}

const lines_of = (hardware, names) => parts_of(hardware).flatMap((part, _, all) =>
    names.filter((name) => part.numbers[name]).map((name) => quantity_line(
        all.length > 1 ? `${part.name}, ${name}` : name, part.numbers[name])));

function speed_lines(hardware) {
  const lines = lines_of(hardware, kTimes);
  if (parts_of(hardware).some(({family}) => family === 'gpu' || family === 'tpu')) {
    lines.push('What such devices reach of these: constants fitted to measured serving runs ' +
               '(calibration/gpu.json).');
  }
  lines.push(hardware.error_percent < kUnchecked ?
      `Error bar of ${hardware.error_percent} %: from checks against published measurements (sluice validate).` :
      `No published measurement checks such devices: an error bar of ${kUnchecked} % is assumed.`);
  return lines;
}

function draft_line() {
  const draft = grid.draft(chosen);
  return draft.length === 0 ? 'No draft: one token per pass.' :
      `Draft ${draft.name}: ${draft.accepted} tokens accepted per verification of ` +
      `${draft.length + 1} (published: ${draft.source}).`;
}

const price_lines = (hardware) => parts_of(hardware).flatMap((part) => part.numbers.usd_per_hour ?
    lines_of(part, ['usd_per_hour']) : [...lines_of(part, ['usd_capital']), 'Written off in 4 years.']);

const first_lines = (r, hardware) => r.prefill ?
    [`A prompt of ${count(r.context)} tokens on ${r.prefill.plan}: ${short(r.prefill.compute_ms)} ms. ${kModel}`,
     r.prefill.transfer_ms === null ? 'Its link is not known, so the cache cannot be sent.' :
         `Then ${bytes(r.prefill.bytes)} of cache over the slower link: ${short(r.prefill.transfer_ms)} ms.`,
     ...lines_of(data.hardware[chosen.prefill], ['link_bandwidth']),
     ...lines_of(parts_of(hardware)[0], ['link_bandwidth'])] :
    [`A prompt of ${count(r.context)} tokens in one batch through all stages. ${kModel}`,
     ...speed_lines(hardware)];

const model_lines = (model) => [`${model.name}: ${model.source}`, ...model.not_counted.map(
    (what) => `Not counted: ${what}`)];

// ---- The answer ----

/** What prints the numbers of the chosen load, to the digit. */
function command() {
  const on = parts_of(machine()).map((part) => part.name).join();
  const name = data.models[chosen.model].name;
  const flags = [
    ['on', on], ['users', chosen.users], ['context', chosen.context], ['output', data.output],
    ['weights', chosen.weights === 'published' ? '' : chosen.weights],
    ['cache', data.cache === 'bf16' ? '' : data.cache],
    ['draft', chosen.draft === 'none' ? '' : chosen.draft], ['prefill-on', data.hardware[chosen.prefill]?.name]];
  return `sluice plan ${/[^\w./-]/.test(name) ? `'${name}'` : name} ` +
      flags.filter(([, value]) => value).map(([flag, value]) => `--${flag} ${value}`).join(' ') +
      (data.ranked === 'fastest' ? ' --fastest' : '');
}

function show_answer(r) {
  const hardware = machine(), model = data.models[chosen.model];
  find('headline').textContent = `${model.name} on ${r.name}`;
  const fits = r.missing_bytes === 0;
  find('fault').hidden = fits;
  find('fault').textContent = fits ? '' :
      `Does not fit: the nearest plan needs ${bytes(r.weights_bytes + r.cache_bytes)} per device, ` +
      `${bytes(r.usable_bytes)} are usable: ${bytes(r.missing_bytes)} too little, ` +
      `${short((r.weights_bytes + r.cache_bytes) / r.usable_bytes)} times. What follows is as if it did.`;
  find('tiles').classList.toggle('unfit', !fits);
  const how = {
    exact: 'A point of the grid: exactly what sluice plan prints.',
    between: 'Between points of the grid: of all plans that are best around this load each is interpolated, ' +
        'and the best one shown.',
    near: 'Between points of the grid whose plans differ in their number of devices: all of it interpolated, ' +
        'that number too.',
    above: `Between points of the grid with plans that cannot be interpolated: every number is that of the next point, ` +
        `${count(r.users)} users with ${count(r.context)} tokens, but for the memory, which is what this ` +
        `load takes of that plan.`,
  }[r.how];
  find('how').replaceChildren(how, ...(r.how === 'exact' ? [] : [' Exactly: ', element('code', {}, command())]));
  const tile = (name, text, unit, source) => element('div', {}, element('dt', {}, name),
      element('dd', {}, number(text, source), element('small', {}, ` ${unit}`)));
  const is_slow = r.first_ms >= 1e4;
  const known = (value) => value === null ? 'not known' : short(value);
  find('tiles').replaceChildren(
      tile('One user', short(r.user_tokens_per_s), `tokens/s ± ${hardware.error_percent} %`, () =>
          [`1 s / ${short(r.token_us)} µs per token. ${kModel}`, draft_line(), ...speed_lines(hardware)]),
      tile('All users', short(r.tokens_per_s), 'tokens/s', () =>
          [`${count(r.users)} users at a time, each with the speed of one. ${kModel}`, ...speed_lines(hardware)]),
      tile('First token, alone', known(r.first_ms === null ? null : is_slow ? r.first_ms / 1e3 : r.first_ms),
           is_slow ? 's' : 'ms', () => first_lines(r, hardware)),
      tile('Price of output', known(r.usd_per_mtok), 'USD per million tokens', () =>
          ['USD per hour / tokens per hour of all users.', ...price_lines(hardware)]),
      tile('Price', known(r.usd_per_hour), 'USD/h', () =>
          [`${r.devices} devices.`, ...price_lines(hardware)]),
      tile('Energy', known(r.joules_per_token), 'J per token', () =>
          ['Power / tokens per second of all users.', ...lines_of(hardware, ['power'])]),
      tile('Power', known(r.watts === null ? null : r.watts / 1e3), 'kW', () =>
          [`${r.devices} devices.`, ...lines_of(hardware, ['power'])]),
      tile('Devices', count(r.devices), (kWords[hardware.family] ?? 'device') + (r.devices > 1 ? 's' : ''), () =>
          [`The ${data.ranked} plan that search found. ${kModel}`, ...lines_of(hardware, ['memory_bytes', 'usable_memory'])]));
}

function memory_sources(r) {
  const model = data.models[chosen.model];
  const format = model.weights.find((w) => w.format === chosen.weights);
  return {
    weights: () => [`Its share of ${bytes(format.bytes)} in all (${format.name}).`, ...model_lines(model)],
    cache: () => [`${count(r.users)} users with ${count(r.context)} + ${count(data.output)} tokens, ` +
                  `${data.cache}: ${with_unit(model.cache_bytes_per_token, 'B')} per token and ` +
                  `${with_unit(model.state_bytes, 'B')} per user, its share.`, ...model_lines(model)],
    usable: () => [`${r.fullest.name}:`, ...lines_of(r.fullest, ['memory_bytes', 'usable_memory'])],
  };
}

function show_memory(r) {
  const whole = r.fullest.numbers.memory_bytes.value, needed = r.weights_bytes + r.cache_bytes;
  const sources = memory_sources(r);
  const row = (name, label, value, source) => element('li', {className: name},
      element('span', {}, label), number(bytes(value), source));
  find('memory').replaceChildren(
      stacked_bar([['weights', r.weights_bytes], ['cache', r.cache_bytes]], Math.max(whole, needed),
                  r.usable_bytes),
      element('ul', {className: 'parts'}, row('weights', 'Weights', r.weights_bytes, sources.weights),
              row('cache', 'Caches and states', r.cache_bytes, sources.cache),
              row('room', r.missing_bytes > 0 ? 'Missing' : 'Left of what is usable',
                  r.missing_bytes || r.usable_bytes - needed, sources.usable),
              row('limit', 'Usable', r.usable_bytes, sources.usable),
              row('', 'Of the device', whole, sources.usable)));
}

function show_time(r) {
  const hardware = machine();
  const row = (name, label, us, ...lines) =>
      ({name, label, us, source: () => [lines[0] + ' ' + kModel, ...lines.slice(1)]});
  const rows = [
    row('memory', 'Memory', r.memory_us, 'Operations bound by reading weights, caches and states.',
        ...lines_of(hardware, ['memory_bandwidth'])),
    row('compute', 'Compute', r.compute_us, 'Operations bound by arithmetic.',
        ...lines_of(hardware, ['peak_bf16', 'peak_fp8', 'peak_fp4'])),
    row('join', 'Joins', r.joins_us, 'Collectives within a group of devices.',
        ...lines_of(hardware, ['link_bandwidth'])),
    row('launch', 'Fixed', r.launch_us, 'Per block and step, whatever the load.',
        ...lines_of(hardware, ['layer_latency', 'token_latency'])),
    row('wire', 'Hops', r.hops_us, 'Frames from stage to stage, and tokens back.',
        ...lines_of(hardware, ['hop_latency', 'link_bandwidth'])),
    row('draft', 'Draft', r.draft_us, 'A layer per guess.', draft_line()),
    row('idle', 'Waiting', r.waiting_us, 'Until the slowest stage has served all batches.'),
  ];
  const per = element('p', {}, 'Per emitted token ', number(`${short(r.token_us)} µs`, () =>
      [`One pass / ${r.accepted} tokens.`, draft_line()]));
  find('time').replaceChildren(...waterfall(rows, row('total', 'One pass', r.round_us,
      'All stages and hops one after the other.')), per);
}

function show_machines() {
  const model = data.models[chosen.model];
  const look = (load) => data.hardware.map((hardware, i) => {
    const r = grid.look({...chosen, ...load, prefill: '', hardware: i});
    return {hardware, i, r, fits: r.missing_bytes === 0};
  });
  let rows = look({});
  // One load for all: that of the next point, if one of them is there.
  const above = rows.find(({r}) => r.how === 'above');
  const {users, context} = above?.r ?? chosen;
  if (above) rows = look({users, context});
  const rank = ({r, fits}) => fits ? r.usd_per_mtok ?? Infinity : r.missing_bytes / r.usable_bytes;
  rows.sort((a, b) => b.fits - a.fits || rank(a) - rank(b) || a.r.token_us - b.r.token_us);
  const head = ['Hardware', 'Devices', 'tokens/s, one user', 'tokens/s, all', 'USD per Mtok', 'Memory', 'Split'];
  const cell = (text, source) => element('td', {className: 'right'}, number(text, source));
  const line = ({hardware, i, r, fits}) => {
    const choose = element('button', {type: 'button', className: 'quiet', onclick: () => {
      chosen.hardware = i;
      show();
    }}, hardware.name);
    const whole = Math.max(r.fullest.numbers.memory_bytes.value, r.weights_bytes + r.cache_bytes);
    const bar = stacked_bar([['weights', r.weights_bytes], ['cache', r.cache_bytes]], whole, r.usable_bytes);
    const cells = fits ?
        [cell(short(r.user_tokens_per_s), () => [kModel, draft_line(), ...speed_lines(hardware)]),
         cell(short(r.tokens_per_s), () => [kModel, ...speed_lines(hardware)]),
         cell(r.usd_per_mtok === null ? 'not known' : short(r.usd_per_mtok), () => price_lines(hardware))] :
        [element('td', {colSpan: 3, className: 'error'}, `${bytes(r.missing_bytes)} too little per device`)];
    return element('tr', {'aria-current': String(i === chosen.hardware)}, element('td', {}, choose),
                   element('td', {className: 'right'}, count(r.devices)), ...cells,
                   element('td', {}, bar), element('td', {}, r.name.split(', ').slice(1).join(', ')));
  };
  find('machines-load').textContent = `${model.name}, ${count(users)} users with ${count(context)} tokens, ` +
      `by price; the ${data.ranked} plan of each.`;
  find('machines').replaceChildren(
      element('thead', {}, element('tr', {}, ...head.map((h, i) =>
          element('th', {scope: 'col', className: i >= 1 && i <= 4 ? 'right' : ''}, h)))),
      element('tbody', {}, ...rows.map(line)));
}

function show_rests() {
  const model = data.models[chosen.model], draft = grid.draft(chosen), parts = parts_of(machine());
  const rests = grid.rests(chosen);
  const speed = grid.look({...chosen, users: rests.users, context: rests.context}).user_tokens_per_s;
  const is_estimate = ({kind}) => kind === 'estimated' || kind === 'assumed';
  const line = (hardware, name, moved) => {
    const q = hardware.numbers[name];
    return [parts.length > 1 ? `${hardware.name}, ${name}` : name, moved ? moved.weight.toFixed(2) : '',
            moved && moved.low !== moved.high ? `${short(moved.low * speed)} – ${short(moved.high * speed)}` : '',
            with_unit(q.value, q.unit),
            q.low < q.high ? `${with_unit(q.low, q.unit)} – ${with_unit(q.high, q.unit)}` : '', q.kind, q.source];
  };
  const moving = rests.numbers.map((moved) => line(moved.hardware, moved.name, moved));
  const others = parts.flatMap((hardware) => Object.keys(hardware.numbers).filter((name) =>
      !rests.numbers.some((n) => n.hardware === hardware && n.name === name)).map((name) => line(hardware, name)));
  const more = [
    ['parameters', '', '', `${parameters(model.parameters)}, ${parameters(model.active)} active`, '', 'derived', model.source],
    ...(draft.length ? [['accepted per verification', '', '', String(draft.accepted), '', 'measured', draft.source]] : [])];
  const head = ['Number', 'Weight', 'tokens/s', 'Value', 'Range', 'Kind', 'Source'];
  find('rests').replaceChildren(
      element('thead', {}, element('tr', {}, ...head.map((h) => element('th', {scope: 'col'}, h)))),
      element('tbody', {}, ...[...moving, ...others, ...more].map((cells) =>
          element('tr', {}, ...cells.map((text) => element('td', {}, text))))));
  const whole = rests.numbers.reduce((sum, n) => sum + n.weight, 0);
  const estimated = rests.numbers.filter((n) => is_estimate(n.hardware.numbers[n.name]))
      .reduce((sum, n) => sum + n.weight, 0);
  const is_here = rests.users === chosen.users && rests.context === chosen.context;
  find('rests-what').textContent =
      `Weight: by how many percent the speed of one user moves with 1 % of the number; tokens/s: at the ends of ` +
      `its range, the others as they are. For ${count(rests.users)} users with ${count(rests.context)} tokens` +
      `${is_here ? '' : ', the nearest load for which this was computed'}. ` +
      `${whole > 0 ? Math.round(100 * estimated / whole) : 0} % of the weight is on estimates and assumptions.`;
}

function show() {
  repair();
  write_address();
  fill_controls();
  const r = grid.look(chosen);
  show_answer(r);
  show_memory(r);
  show_time(r);
  show_machines();
  show_rests();
  show_phase();
}

// ---- The diagram ----

const phase = data.phase;
/** The diagram is of one kind of hardware: where feed-forwards are. */
const phase_hardware = () => parts_of(machine()).at(-1);
const kContours = {devices: 'devices', speed: 'tokens/s of one user', usd: 'USD per million tokens'};
let cursor = null;  // [column, row] of the diagram, once it was moved

function show_phase() {
  const what = find('contours').value;
  const points = data.phases[machine().parts.at(-1)][find('attention').selectedIndex];
  const model = data.models[chosen.model];
  const [column, row] = cursor ??
      [nearest(phase.contexts, chosen.context), nearest(phase.sizes, model.parameters)];
  const at = column * phase.sizes.length + row;
  find('phase').replaceChildren(phase_svg(phase, points[what], [
    [chosen.context, model.parameters, 'here'],
    [phase.contexts[column], phase.sizes[row], 'cursor']]));
  const usd = points.usd[at];
  find('phase-reading').replaceChildren(
      `${count(phase.contexts[column])} tokens, ${parameters(phase.sizes[row])} parameters: ` +
      `${count(points.devices[at])} × ${phase_hardware().name}, ${short(points.speed[at])} tokens/s for one user, ` +
      (usd === null ? 'price not known' : `${short(usd)} USD per million tokens`));
}

function move_cursor(event) {
  const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
  if (!step) return;
  event.preventDefault();
  const start = cursor ?? [nearest(phase.contexts, chosen.context),
                           nearest(phase.sizes, data.models[chosen.model].parameters)];
  cursor = [[phase.contexts, step[0], start[0]], [phase.sizes, step[1], start[1]]].map(
      ([axis, by, from]) => Math.min(axis.length - 1, Math.max(0, from + by)));
  show_phase();
}

function point_cursor(event) {
  const frame = find('phase').querySelector('.frame').getBoundingClientRect();
  const part = (from, size, x) => Math.min(1, Math.max(0, (x - from) / size));
  cursor = [Math.round(part(frame.left, frame.width, event.clientX) * (phase.contexts.length - 1)),
            Math.round((1 - part(frame.top, frame.height, event.clientY)) * (phase.sizes.length - 1))];
  show_phase();
}

// ---- Controls ----

const sliders = {users: stops(data.axes.users), context: stops(data.axes.context)};

function options(id, list, value) {
  find(id).replaceChildren(...list.map(([key, text]) => element('option', {value: key}, text)));
  find(id).value = value;
}

function fill_controls() {
  const model = data.models[chosen.model];
  options('model', data.models.map((m, i) => [i, `${m.name} · ${parameters(m.parameters)}`]), chosen.model);
  options('hardware', data.hardware.map((h, i) => [i, h.name]), chosen.hardware);
  options('prefill', [['', 'where tokens are made'], ...data.hardware.map((h, i) => [i, h.name]).filter(
      ([i]) => data.hardware[i].numbers)], chosen.prefill);
  options('weights', model.weights.map((w) => [
    w.format, `${w.format === 'published' ? `as published: ${w.name}` : w.name} · ${bytes(w.bytes)}`]),
      chosen.weights);
  options('draft', data.drafts.map((d) => [
    d.name, d.length === 0 ? 'none' : `${d.name}: ${d.accepted} of ${d.length + 1} accepted`]), chosen.draft);
  for (const key of ['users', 'context']) {
    if (document.activeElement !== find(key)) find(key).value = chosen[key];
    find(`${key}-slider`).value = nearest(sliders[key], chosen[key]);
    find(`${key}-slider`).setAttribute('aria-valuetext', count(chosen[key]));
  }
}

function connect() {
  connect_theme(find('theme'));
  connect_sources(find('source'));
  find('prefill').onchange = () => {
    const {value} = find('prefill');
    chosen.prefill = value === '' ? '' : Number(value);
    show();
  };
  for (const key of ['model', 'hardware']) {
    find(key).onchange = () => {
      chosen[key] = Number(find(key).value);
      cursor = null;
      show();
    };
  }
  for (const key of ['weights', 'draft']) {
    find(key).onchange = () => {
      chosen[key] = find(key).value;
      show();
    };
  }
  for (const key of ['users', 'context']) {
    const field = find(key), slider = find(`${key}-slider`);
    field.min = data.axes[key][0];
    field.max = data.axes[key].at(-1);
    slider.max = sliders[key].length - 1;
    field.oninput = () => {
      if (!field.checkValidity()) return;
      chosen[key] = Number(field.value);
      show();
    };
    field.onblur = () => { field.value = chosen[key]; };
    slider.oninput = () => {
      chosen[key] = sliders[key][Number(slider.value)];
      show();
    };
  }
  find('controls').onsubmit = (event) => event.preventDefault();
  options('attention', phase.attention.map((name) => [name, name]), phase.attention[0]);
  options('contours', Object.entries(kContours), 'devices');
  find('attention').onchange = find('contours').onchange = show_phase;
  find('phase').onkeydown = move_cursor;
  find('phase').onclick = point_cursor;
  window.onhashchange = () => {
    read_address();
    show();
  };
}

function show_claims() {
  find('claims').replaceChildren(...data.claims.map((c) => element('details', {},
      element('summary', {}, element('b', {className: c.verdict}, c.verdict), ` ${c.claim}`),
      element('p', {}, c.why), element('ul', {}, ...c.sets.map((set) => element('li', {}, set))),
      element('p', {className: 'hint'}, `${c.kind}: ${c.source}`))));
}

function show_method() {
  const axis = (list) => list.map(count).join(', ');
  const lines = [
    `sluice plan priced the ${data.ranked} plan of every model, hardware, format and number of guesses at ` +
    `${axis(data.axes.users)} users and ${axis(data.axes.context)} tokens of prompt; ` +
    `answers have ${count(data.output)} tokens, caches are ${data.cache}. There the page is exact.`,
    'Between these points, where the same plan is best at all of them, each part of the time and the bytes are ' +
    'interpolated linearly in users and tokens: exact for what grows with both, as caches do, and close for ' +
    'experts, of which more users touch ever fewer new ones. The first token follows a power of the context. ' +
    'Speed, price and energy are then computed from these.',
    'Pipelines of wafers and SRAM machines grow by single devices: where the best plans differ in their number ' +
    'only, that number and everything else is interpolated. Where other plans are best, nothing is: the ' +
    'point with the most users and tokens among the next ones whose plan has room is shown; the memory of that ' +
    'plan is computed for the load at hand, in proportion to users and to what each of them keeps.',
    'Two kinds of hardware, A + B: attention and states are on A, feed-forwards on B, and each token goes to and ' +
    'fro. Prompts elsewhere: the plan there that computes one prompt soonest, then its cache over the slower link ' +
    'to where attention is; the price of that hardware is not added.',
    'Formulas, sources and how far predictions were off: docs/planner-model.md.',
  ];
  find('method').replaceChildren(...lines.map((line) => element('p', {}, line)));
  find('fixed').textContent = `Answers of ${count(data.output)} tokens, ${data.cache} caches, the ` +
      `${data.ranked} plan.`;
  find('refused').textContent = data.refused.length === 0 ? '' :
      `Not priced: ${data.refused.map((r) => r.why).join('; ')}.`;
  find('phase-what').textContent = `Hypothetical models of ${phase.layers} layers with ${100 * phase.active} % of ` +
      `their parameters active, ${phase.weights}, ${phase.users} users, on the least number of devices ` +
      '(sluice phase). Filled: the chosen model and context. Ring: the point that is read out.';
}

read_address();
connect();
show_claims();
show_method();
show();
