// Looks up what `sluice plan` computed: the best plan at each point of a grid of loads.

const kExponentBias = 18;
const kRounding = 1e-5;  // of the numbers of the grid
const kAnyNumber = ['wafer', 'sram'];  // families with pipelines of any length

/** Neighbours of `value` on an ascending axis, and how far it is from the lower to the upper. */
function place(axis, value) {
  const high = Math.max(0, axis.findIndex((x) => x >= value));
  if (axis[high] === value || high === 0) return {low: high, high, share: 0};
  return {low: high - 1, high, share: (value - axis[high - 1]) / (axis[high] - axis[high - 1])};
}

const in_logs = (axis, {low, high}, value) =>
    low === high ? 0 : Math.log(value / axis[low]) / Math.log(axis[high] / axis[low]);

const between_in_logs = (from, to, share) =>
    Math.exp((1 - share) * Math.log(from) + share * Math.log(to));

/** The numbers of a column: four digits in base 36 and an exponent of ten each; a capital letter
 *  repeats the number before, A once. */
function decode(text) {
  const values = [];
  for (let at = 0; at < text.length;) {
    const repeats = text.charCodeAt(at) - 64;
    if (repeats >= 1 && repeats <= 26) {
      for (let i = 0; i < repeats; ++i) values.push(values.at(-1));
      ++at;
      continue;
    }
    const exponent = parseInt(text[at + 4], 36) - kExponentBias;
    values.push(Number(`${parseInt(text.slice(at, at + 4), 36)}e${exponent}`));
    at += 5;
  }
  return Float64Array.from(values);
}

/** Texts of columns become numbers when they are looked at first. */
function decoded(object, key) {
  if (typeof object[key] === 'string') object[key] = decode(object[key]);
  else if (typeof object[key][0] === 'string') object[key] = object[key].map((text) => decode(text));
  return object[key];
}

/** The place on `axis` whose logarithm is nearest. */
export const nearest = (axis, value) => axis.reduce((best, x, i) =>
    Math.abs(Math.log(x / value)) < Math.abs(Math.log(axis[best] / value)) ? i : best, 0);

/** Whether points differ in their numbers of devices and stages only. */
const are_alike = (points) => points.every(({form}) => form === points[0].form);

/** Whether those are the same, too. */
const is_same = (points) => points.every(({counts}) => String(counts) === String(points[0].counts));

const sum_of = (points, value) => points.reduce((sum, point) => sum + point.weight * value(point), 0);

export class Grid {
  constructor(data) {
    this.data = data;
    this.axes = data.axes;
    this.singles = data.hardware.filter((h) => h.parts.length === 1).length;
  }

  of(selection) {
    return this.data.grids[selection.model * this.data.hardware.length + selection.hardware];
  }

  format(selection) {
    return this.data.models[selection.model].weights.findIndex((w) => w.format === selection.weights);
  }

  /** The place of a load and number of guesses in the columns of `best` and `rests`. */
  at(selection, user, context, users = this.axes.users, contexts = this.axes.context) {
    return ((this.format(selection) * users.length + user) * contexts.length + context) *
        this.axes.guesses.length + this.axes.guesses.indexOf(this.draft(selection).length);
  }

  draft(selection) {
    return this.data.drafts.find((d) => d.name === selection.draft);
  }

  /** The ways of placing the model that are known at a load: their entries in the columns. */
  entries(selection, user, context) {
    const grid = this.of(selection), n_loads = this.axes.users.length * this.axes.context.length;
    if (!grid.ways) {
      grid.ways = new Map();
      let key = 0;
      decoded(grid, 'step').forEach((step, entry) => {
        key += step;
        const load = key % n_loads, way = (key - load) / n_loads;
        const place = Math.floor(way / this.data.most_ways) * n_loads + load;
        if (!grid.ways.has(place)) grid.ways.set(place, new Map());
        grid.ways.get(place).set(way % this.data.most_ways, entry);
      });
    }
    return grid.ways.get(this.format(selection) * n_loads + user * this.axes.context.length + context);
  }

  /** The plan for `selection`: {model, hardware, weights, draft, prefill, users, context}, with the
   *  load that it is for and how it was found: `exact`, `between` points, where of all plans that are
   *  best nearby the best is shown, `near` if that one's number of devices is between numbers, too, or
   *  `above`. */
  look(selection) {
    const user = place(this.axes.users, selection.users);
    const context = place(this.axes.context, selection.context);
    const corners = [];
    for (const [u, share] of [[user.low, 1 - user.share], [user.high, user.share]]) {
      for (const [c, part] of [[context.low, 1 - context.share], [context.high, context.share]]) {
        if (share * part > 0) {
          corners.push({weight: share * part, u, c, entries: this.entries(selection, u, c)});
        }
      }
    }
    const best = corners.map((corner) => this.point(selection, corner,
        decoded(this.of(selection), 'best')[this.at(selection, corner.u, corner.c)]));
    const known = [...corners[0].entries.keys()].filter((way) =>
        corners.every(({entries}) => entries.has(way)));
    const candidates = corners.length === 1 ? [] : known.map((way) =>
        corners.map((corner) => this.point(selection, corner, way)));
    if (corners.length === 1 || kAnyNumber.includes(this.data.hardware[selection.hardware].family)) {
      candidates.push(best);
    }
    const results = candidates.filter(are_alike).map((points) =>
        this.between(selection, points, user, context));
    if (corners.length > 1 && !results.some((r) => r.missing_bytes === 0)) {
      results.push(this.above(selection, best.at(-1)));
    }
    const result = results.reduce((a, b) => this.is_better(b, a) ? b : a);
    if (selection.prefill !== '') this.add_prefill(result, selection);
    return result;
  }

  /** A way at a corner. */
  point(selection, corner, way) {
    const grid = this.of(selection), entry = corner.entries.get(way);
    const [form, counts, devices] = grid.plans[decoded(grid, 'plan')[entry]];
    return {...corner, entry, form, counts, devices};
  }

  /** The numbers of points of one way, by their weights. */
  numbers(selection, points) {
    const grid = this.of(selection), guess = this.axes.guesses.indexOf(this.draft(selection).length);
    const result = {};
    const add = (names, columns) => names.forEach((name, i) => {
      result[name] = sum_of(points, ({entry}) => columns[i][entry]);
    });
    add(this.data.shared, decoded(grid, 'shared'));
    add(this.data.columns, decoded(grid.points, guess));
    const {form} = points[0];
    const mean = (key) => points[0][key].map((_, i) => Math.round(sum_of(points, (p) => p[key][i])));
    const counts = mean('counts');
    return {...result, name: grid.forms[form][0].replace(/#/g, () => counts.shift()),
            part: grid.forms[form][1], counts: mean('devices')};
  }

  between(selection, points, user, context) {
    const result = {how: points.length === 1 ? 'exact' : is_same(points) ? 'between' : 'near',
                    users: selection.users, context: selection.context, ...this.numbers(selection, points)};
    if (points.length > 1) result.first_ms = this.first_ms(points, user, context, selection);
    this.complete(result, selection);
    return result;
  }

  /** As search() sorts: what fits, then the cheapest or fastest; of what does not fit the nearest. */
  is_better(a, b) {
    const fits = [a, b].map((r) => r.missing_bytes === 0);
    if (fits[0] !== fits[1]) return fits[0];
    const rank = (r) => !fits[0] ? (r.weights_bytes + r.cache_bytes) / r.usable_bytes :
        this.data.ranked === 'fastest' ? r.token_us : r.usd_per_mtok ?? r.devices / r.tokens_per_s;
    return rank(a) < rank(b);
  }

  /** The next point with more users and tokens, but for the memory that the load of `selection` takes:
   *  in proportion to users and to what each of them keeps. */
  above(selection, point) {
    const users = this.axes.users[point.u], context = this.axes.context[point.c];
    const result = {how: 'above', users, context, ...this.numbers(selection, [{...point, weight: 1}])};
    result.cache_gb *= selection.users / users * this.sequence_bytes(selection, selection.context) /
        this.sequence_bytes(selection, context);
    this.complete(result, selection);
    return result;
  }

  /** Bytes that a sequence keeps at the end of its answer. */
  sequence_bytes(selection, context) {
    const {prompt_bytes, cache_bytes_per_token} = this.data.models[selection.model];
    const {low, high, share} = place(this.axes.context, context);
    return (1 - share) * prompt_bytes[low] + share * prompt_bytes[high] +
        this.data.output * cache_bytes_per_token;
  }

  /** Between points the first token follows powers of the context: straight in logarithms; from a point
   *  to one in the middle and on to the next if they have the same plan. */
  first_ms(points, user, context, selection) {
    const shared = decoded(this.of(selection), 'shared');
    const [first, middle] = ['first_ms', 'first_between_ms'].map((name) =>
        shared[this.data.shared.indexOf(name)]);
    const share = in_logs(this.axes.context, context, selection.context);
    const of_users = (u) => {
      const [low, high] = [context.low, context.high].map((c) =>
          points.find((point) => point.u === u && point.c === c));
      const ends = [first[low.entry], first[high.entry]];
      if (!is_same([low, high])) return between_in_logs(...ends, share);
      return share <= 0.5 ? between_in_logs(ends[0], middle[low.entry], 2 * share) :
          between_in_logs(middle[low.entry], ends[1], 2 * share - 1);
    };
    return between_in_logs(of_users(user.low), of_users(user.high),
                           in_logs(this.axes.users, user, selection.users));
  }

  /** What follows from a point and its plan. */
  complete(result, selection) {
    const {counts, part} = result, {parts} = this.of(selection);
    const usable_bytes = parts[part][0];
    const of_all = (k) => parts.some((each) => each[k] === null) ? null :
        counts.reduce((sum, n, i) => sum + n * parts[i][k], 0);
    const devices = counts.reduce((sum, n) => sum + n, 0), usd_per_hour = of_all(1), watts = of_all(2);
    const {accepted, length} = this.draft(selection);
    const computing = result.compute_us + result.memory_us + result.joins_us + result.launch_us;
    // A guess takes the time of a layer, which is two blocks.
    const draft_us = length * computing * 2 / this.data.models[selection.model].blocks;
    const round_us = computing + result.hops_us + draft_us + result.waiting_us;
    const token_us = round_us / accepted;
    const tokens_per_s = result.users * 1e6 / token_us;
    const weights_bytes = result.weights_gb * 1e9, cache_bytes = result.cache_gb * 1e9;
    const missing = weights_bytes + cache_bytes - usable_bytes;
    Object.assign(result, {
      devices, weights_bytes, usable_bytes, usd_per_hour, watts, accepted, draft_us, round_us,
      token_us, tokens_per_s, cache_bytes,
      fullest: this.data.hardware[this.data.hardware[selection.hardware].parts[part]],
      user_tokens_per_s: 1e6 / token_us,
      usd_per_mtok: usd_per_hour === null ? null : usd_per_hour / (3600 * tokens_per_s / 1e6),
      joules_per_token: watts === null ? null : watts / tokens_per_s,
      missing_bytes: missing > kRounding * usable_bytes ? missing : 0,
    });
  }

  /** The first token if the hardware `selection.prefill` computes prompts and sends the cache to the
   *  mixers. */
  add_prefill(result, selection) {
    const model = this.data.models[selection.model];
    const prefill = this.data.prefills[selection.model * this.singles + selection.prefill];
    const plan = decoded(prefill, 'plan'), ms = decoded(prefill, 'ms');
    const axis = this.axes.context, context = place(axis, result.context);
    const row = this.format(selection) * axis.length;
    const share = in_logs(axis, context, result.context);
    const compute_ms = between_in_logs(ms[row + context.low], ms[row + context.high], share);
    const bytes = (1 - context.share) * model.prompt_bytes[context.low] +
        context.share * model.prompt_bytes[context.high];
    const link = (i) => this.data.hardware[i].numbers.link_bandwidth?.value ?? 0;
    const slower = Math.min(link(selection.prefill),
                            link(this.data.hardware[selection.hardware].parts[0]));
    const transfer_ms = slower > 0 ? bytes / slower * 1e3 : null;
    result.prefill = {plan: prefill.plans[plan[row + context.high]], compute_ms, transfer_ms, bytes};
    result.first_ms = transfer_ms === null ? null : compute_ms + transfer_ms;
  }

  /** What the speed rests on, at the nearest load for which that was computed: numbers {hardware,
   *  name, weight, low, high}, the most influential first. */
  rests(selection) {
    const {rests} = this.of(selection);
    const {rest_users, rest_context} = this.axes;
    const user = nearest(rest_users, selection.users);
    const context = nearest(rest_context, selection.context);
    const at = this.at(selection, user, context, rest_users, rest_context);
    const [weight, low, high] = ['weight', 'low', 'high'].map((key) => decoded(rests, key));
    const {parts} = this.data.hardware[selection.hardware];
    const numbers = rests.numbers.map(([part, name], i) => ({
      hardware: this.data.hardware[parts[part]], name,
      weight: weight[i][at], low: low[i][at], high: high[i][at]})).filter((n) => n.weight > 0);
    numbers.sort((a, b) => b.weight - a.weight);
    return {users: rest_users[user], context: rest_context[context], numbers};
  }
}
