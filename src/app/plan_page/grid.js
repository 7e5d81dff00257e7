// Looks up what `sluice plan` computed: the best plan at each point of a grid of loads.

const kRounding = 1e-5;  // of the numbers of the grid

/** Neighbours of `value` on an ascending axis, and how far it is from the lower to the upper. */
function place(axis, value) {
  const high = Math.max(0, axis.findIndex((x) => x >= value));
  if (axis[high] === value || high === 0) return {low: high, high, share: 0};
  return {low: high - 1, high, share: (value - axis[high - 1]) / (axis[high] - axis[high - 1])};
}

const in_logs = (axis, {low, high}, value) =>
    low === high ? 0 : Math.log(value / axis[low]) / Math.log(axis[high] / axis[low]);

export class Grid {
  constructor(data) {
    this.data = data;
    this.axes = data.axes;
    this.width = data.columns.length;
  }

  /** The place of the first number of a point in the numbers of its grid. */
  at(selection, user, context) {
    const {guesses, users, context: contexts} = this.axes;
    const model = this.data.models[selection.model];
    const format = model.weights.findIndex((w) => w.format === selection.weights);
    const guess = guesses.indexOf(this.draft(selection).length);
    return (((format * guesses.length + guess) * users.length + user) * contexts.length + context) *
        this.width;
  }

  draft(selection) {
    return this.data.drafts.find((d) => d.name === selection.draft);
  }

  /** The plan for `selection`: {model, hardware, weights, draft, users, context}, with the load that
   *  it is for and how it was found: `exact`, `between` or `above`. */
  look(selection) {
    const grid = this.data.grids[selection.model * this.data.hardware.length + selection.hardware];
    const user = place(this.axes.users, selection.users);
    const context = place(this.axes.context, selection.context);
    const corners = [];
    for (const [u, share] of [[user.low, 1 - user.share], [user.high, user.share]]) {
      for (const [c, part] of [[context.low, 1 - context.share], [context.high, context.share]]) {
        const weight = share * part;
        if (weight > 0) corners.push({at: this.at(selection, u, c), weight, u, c});
      }
    }
    const plan_of = ({at}) => grid.points[at];
    const last = corners.at(-1);
    const is_one_plan = corners.every((corner) => plan_of(corner) === plan_of(last));
    const how = corners.length === 1 ? 'exact' : is_one_plan ? 'between' : 'above';
    const used = is_one_plan ? corners : [{...last, weight: 1}];
    const result = {how, users: selection.users, context: selection.context};
    if (how === 'above') {
      result.users = this.axes.users[last.u];
      result.context = this.axes.context[last.c];
    }
    this.data.columns.forEach((name, i) => {
      result[name] = used.reduce((sum, {at, weight}) => sum + weight * grid.points[at + i], 0);
    });
    if (how === 'between') {
      result.first_ms = this.first_ms(grid, used, user, context, selection);
    }
    return this.complete(result, grid.plans[plan_of(last)], selection);
  }

  /** Between points the first token follows powers of the context: straight in logarithms. */
  first_ms(grid, corners, user, context, selection) {
    const column = this.data.columns.indexOf('first_ms');
    const shares = {u: in_logs(this.axes.users, user, selection.users),
                    c: in_logs(this.axes.context, context, selection.context)};
    let sum = 0;
    for (const {at, u, c} of corners) {
      const weight = (user.low === user.high ? 1 : u === user.high ? shares.u : 1 - shares.u) *
          (context.low === context.high ? 1 : c === context.high ? shares.c : 1 - shares.c);
      sum += weight * Math.log(grid.points[at + column]);
    }
    return Math.exp(sum);
  }

  /** What follows from a point and its plan. */
  complete(result, plan, selection) {
    const [name, devices, weights_bytes, usable_bytes, usd_per_hour, watts] = plan;
    const accepted = this.draft(selection).accepted;
    const token_us = result.round_us / accepted;
    const tokens_per_s = result.users * 1e6 / token_us;
    const cache_bytes = result.cache_gb * 1e9;
    const parts = result.compute_us + result.memory_us + result.joins_us + result.launch_us +
        result.hops_us + result.draft_us;
    const waiting = result.round_us - parts;
    return {
      ...result, name, devices, weights_bytes, usable_bytes, usd_per_hour, watts, accepted,
      token_us, tokens_per_s, cache_bytes,
      user_tokens_per_s: 1e6 / token_us,
      waiting_us: waiting > kRounding * result.round_us ? waiting : 0,
      usd_per_mtok: usd_per_hour === null ? null : usd_per_hour / (3600 * tokens_per_s / 1e6),
      joules_per_token: watts === null ? null : watts / tokens_per_s,
      missing_bytes: Math.max(0, weights_bytes + cache_bytes - usable_bytes),
    };
  }
}
