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

/** A plan's name without its numbers of devices and stages. */
const kCounts = /\d+(?= x | stages)/g;
const form = (name) => name.replace(kCounts, '');

/** The place on `axis` whose logarithm is nearest. */
export const nearest = (axis, value) => axis.reduce((best, x, i) =>
    Math.abs(Math.log(x / value)) < Math.abs(Math.log(axis[best] / value)) ? i : best, 0);

const sum_of = (corners, value) => corners.reduce((sum, c) => sum + c.weight * value(c), 0);

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

  /** The place of a point in the columns of its grid. */
  at(selection, user, context, users = this.axes.users, contexts = this.axes.context) {
    const {guesses} = this.axes;
    const guess = guesses.indexOf(this.draft(selection).length);
    return ((this.format(selection) * users.length + user) * contexts.length + context) *
        guesses.length + guess;
  }

  draft(selection) {
    return this.data.drafts.find((d) => d.name === selection.draft);
  }

  /** The plan for `selection`: {model, hardware, weights, draft, prefill, users, context}, with the
   *  load that it is for and how it was found: `exact`, `between` points with the same plan, `near`
   *  points whose plans differ in their number of devices, or `above`. */
  look(selection) {
    const grid = this.of(selection);
    const plan = decoded(grid, 'plan'), points = decoded(grid, 'points');
    const user = place(this.axes.users, selection.users);
    const context = place(this.axes.context, selection.context);
    const corners = [];
    for (const [u, share] of [[user.low, 1 - user.share], [user.high, user.share]]) {
      for (const [c, part] of [[context.low, 1 - context.share], [context.high, context.share]]) {
        const at = this.at(selection, u, c);
        if (share * part > 0) corners.push({at, weight: share * part, u, c, plan: grid.plans[plan[at]]});
      }
    }
    const last = corners.at(-1);
    const how = corners.length === 1 ? 'exact' :
        corners.every((corner) => corner.plan === last.plan) ? 'between' :
        this.are_near(corners, points, selection) ? 'near' : 'above';
    const used = how === 'above' ? [{...this.with_room(corners, selection), weight: 1}] : corners;
    const result = {how, users: selection.users, context: selection.context};
    if (how === 'above') {
      result.users = this.axes.users[used[0].u];
      result.context = this.axes.context[used[0].c];
    }
    this.data.columns.forEach((name, i) => {
      result[name] = sum_of(used, ({at}) => points[i][at]);
    });
    if (how === 'above') result.cache_gb = this.cache_gb(used[0], selection);
    if (used.length > 1) {
      result.first_ms = this.first_ms(points, used, user, context, selection);
    }
    this.complete(result, this.plan_of(used), selection);
    if (selection.prefill !== '') this.add_prefill(result, selection);
    return result;
  }

  /** Bytes that a sequence keeps at the end of its answer. */
  sequence_bytes(selection, context) {
    const {prompt_bytes, cache_bytes_per_token} = this.data.models[selection.model];
    const {low, high, share} = place(this.axes.context, context);
    return (1 - share) * prompt_bytes[low] + share * prompt_bytes[high] +
        this.data.output * cache_bytes_per_token;
  }

  /** What the load of `selection` takes of the fullest device of a point's plan: in proportion to users
   *  and to what each of them keeps. */
  cache_gb({at, u, c}, selection) {
    const points = decoded(this.of(selection), 'points');
    return points[this.data.columns.indexOf('cache_gb')][at] * selection.users / this.axes.users[u] *
        this.sequence_bytes(selection, selection.context) /
        this.sequence_bytes(selection, this.axes.context[c]);
  }

  /** The point with the most users and tokens whose plan has room for the load of `selection`; if none
   *  has, the last. */
  with_room(corners, selection) {
    const {parts} = this.of(selection);
    const fits = (corner) => corner.plan[2] + this.cache_gb(corner, selection) * 1e9 <=
        parts[corner.plan[3]][0] * (1 + kRounding);
    return corners.findLast(fits) ?? corners.at(-1);
  }

  /** Pipelines of devices that come in any number, all of them large enough for their loads. */
  are_near(corners, points, selection) {
    if (!kAnyNumber.includes(this.data.hardware[selection.hardware].family)) return false;
    const cache = this.data.columns.indexOf('cache_gb');
    const {parts} = this.of(selection);
    return corners.every(({at, plan: [name, , weights_bytes, part]}) =>
        form(name) === form(corners[0].plan[0]) && part === corners[0].plan[3] &&
        weights_bytes + points[cache][at] * 1e9 <= parts[part][0]);
  }

  /** [name, devices of each part, bytes of weights, fullest part]: one plan, or one between. */
  plan_of(corners) {
    const {plan} = corners.at(-1);
    if (corners.every((corner) => corner.plan === plan)) return plan;
    const mean = (value) => sum_of(corners, value);
    const numbers = corners.map((corner) => corner.plan[0].match(kCounts));
    let i = 0;
    const name = plan[0].replace(kCounts, () => {
      const k = i++;
      return Math.round(corners.reduce((sum, {weight}, c) => sum + weight * numbers[c][k], 0));
    });
    return [name, plan[1].map((_, part) => Math.round(mean((c) => c.plan[1][part]))),
            mean((c) => c.plan[2]), plan[3]];
  }

  /** Between points the first token follows powers of the context: straight in logarithms. */
  first_ms(points, corners, user, context, selection) {
    const column = this.data.columns.indexOf('first_ms');
    const shares = {u: in_logs(this.axes.users, user, selection.users),
                    c: in_logs(this.axes.context, context, selection.context)};
    let sum = 0;
    for (const {at, u, c} of corners) {
      const weight = (user.low === user.high ? 1 : u === user.high ? shares.u : 1 - shares.u) *
          (context.low === context.high ? 1 : c === context.high ? shares.c : 1 - shares.c);
      sum += weight * Math.log(points[column][at]);
    }
    return Math.exp(sum);
  }

  /** What follows from a point and its plan. */
  complete(result, plan, selection) {
    const [name, counts, weights_bytes, part] = plan;
    const {parts} = this.of(selection);
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
    const cache_bytes = result.cache_gb * 1e9;
    const missing = weights_bytes + cache_bytes - usable_bytes;
    Object.assign(result, {
      name, devices, weights_bytes, usable_bytes, usd_per_hour, watts, accepted, draft_us, round_us,
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
    const compute_ms = Math.exp((1 - share) * Math.log(ms[row + context.low]) +
                                share * Math.log(ms[row + context.high]));
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
