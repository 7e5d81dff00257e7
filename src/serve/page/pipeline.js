// The live view: what the server counted since the last look, as dots that move through the stages.
import {count, element} from './dom.js';

const kPollMs = 250;
const kWindowMs = 2000;    // what rates are taken over
const kTravelMs = 900;     // how long a dot is on its way
const kFadeMs = 350;       // and how long its fate is shown
const kFrameMs = 20;      // between two drawings
const kMaxDots = 24;       // of one kind per look; more are drawn as fewer
const kLaneHeight = 30;
const kParts = [['compute', 'compute_us'], ['join', 'sync_us'], ['wire', 'wire_us'],
                ['idle', 'idle_us']];

const sum = (list) => list.reduce((total, n) => total + n, 0);

/** Nothing may move: only numbers are shown. */
const still = matchMedia('(prefers-reduced-motion: reduce)');

export class PipelineView {
  /** `load()` returns a promise of what /v1/plan says. */
  constructor(root, load) {
    this.load = load;
    const part = (id) => root.querySelector(`#${id}`);
    this.state = part('pipeline-state');
    this.canvas = part('lanes');
    this.readings = part('readings');
    this.stages = part('stages');
    this.running = false;
    this.drawing = false;
    this.looks = [];  // {time, counters, stages}, oldest first
    this.dots = [];   // {kind, born}
  }

  run(running) {
    if (running === this.running) return;
    this.running = running;
    this.looks = [];
    this.dots = [];
    if (running) this.poll();
  }

  async poll() {
    while (this.running) {
      if (!document.hidden) {
        try {
          this.take(await this.load());
        } catch (error) {
          this.state.textContent = error.message;
          this.looks = [];
        }
      }
      await new Promise((resolve) => setTimeout(resolve, kPollMs));
    }
  }

  take({model, plan, stages, counters}) {
    const look = {time: performance.now(), counters, stages};
    // Another model, or a server that has started anew, counts from somewhere else.
    if (model !== this.model || counters.batches < this.looks.at(-1)?.counters.batches) {
      this.model = model;
      this.looks = [];
    }
    const last = this.looks.at(-1);
    this.plan = plan;
    // The window ends with the last token, so that the numbers stay when the engine rests.
    const moved = !last || counters.batches !== last.counters.batches;
    if (!moved) this.state.textContent = last.counters.generated_tokens ? 'At rest' : 'Ready';
    if (!moved && this.looks.length > 1) {
      if (!this.drawing) this.draw();  // in the colors and the width of now
      return;
    }
    if (last && look.time - last.time > kWindowMs) this.looks = [{...last, time: look.time - kPollMs}];
    this.looks.push(look);
    while (this.looks.length > 2 && look.time - this.looks[0].time > kWindowMs) this.looks.shift();
    if (moved && last) this.add_dots(last.counters, counters);
    this.show(last ? this.looks[0] : start_of(look), look, moved && last);
    if (!this.drawing) this.draw();
  }

  /** The tokens between two looks, spread over the time until the next. */
  add_dots(before, now) {
    const drafted = sum(now.drafted) - sum(before.drafted);
    const accepted = sum(now.accepted) - sum(before.accepted);
    const kinds = {
      prompt: now.prompt_tokens - before.prompt_tokens,
      base: now.generated_tokens - before.generated_tokens - accepted,
      accepted, rejected: drafted - accepted,
    };
    const start = performance.now();
    for (const [kind, n] of Object.entries(kinds)) {
      const n_dots = Math.min(Math.max(n, 0), kMaxDots);
      for (let i = 0; i < n_dots; ++i) {
        this.dots.push({kind, born: start + (i + Math.random()) * kPollMs / n_dots});
      }
    }
    if (still.matches) this.dots = [];
  }

  show(first, last, moved) {
    const {counters: now} = last;
    const delta = (key) => now[key] - first.counters[key];
    const drafted = sum(now.drafted) - sum(first.counters.drafted);
    const accepted = sum(now.accepted) - sum(first.counters.accepted);
    const n_tokens = delta('generated_tokens');
    const seconds = (last.time - first.time) / 1e3;
    if (moved) {
      this.state.textContent = `${now.running} running, ${now.waiting} waiting`;
    }
    const prompt = delta('prompt_tokens') + delta('cached_tokens');
    const rows = [
      ['Tokens a second', n_tokens && seconds ? (n_tokens / seconds).toFixed(1) : '–'],
      ['Tokens a batch', delta('batches') ? (n_tokens / delta('batches')).toFixed(2) : '–'],
      ['Guesses accepted', drafted ? `${accepted} of ${drafted}` : '–'],
      ['Prompt from cache', prompt ? `${Math.round(100 * delta('cached_tokens') / prompt)} %` : '–'],
      ['Cache pages used', `${count(now.pages - now.free_pages)} of ${count(now.pages)}`],
      ['Tokens in all', count(now.generated_tokens)],
    ];
    this.readings.replaceChildren(...rows.flatMap(
        ([name, value]) => [element('dt', {}, name), element('dd', {}, value)]));
    if (n_tokens > 0 || !this.stages.children.length) this.show_stages(first, last, n_tokens);
  }

  show_stages(first, last, n_tokens) {
    // The server lists no stage before the first batch.
    const counted = (look, s, key) => look.stages[s]?.[key] ?? 0;
    this.stages.replaceChildren(...this.plan.stages.map((stage, s) => {
      const ms = kParts.map(([name, key]) => {
        const spent = (counted(last, s, key) - counted(first, s, key)) / 1e3;
        return {name, ms: n_tokens > 0 ? spent / n_tokens : 0};
      });
      const total = sum(ms.map((part) => part.ms));
      const bar = element('div', {className: 'split'}, ...ms.map(({name, ms: spent}) => {
        const piece = element('i', {className: name});
        piece.style.width = `${total > 0 ? 100 * spent / total : 0}%`;
        return piece;
      }));
      const text = n_tokens > 0 ?
          ms.map(({name, ms: spent}) => `${name} ${spent.toFixed(2)}`).join(' · ') : 'no token yet';
      return element('li', {}, element('b', {}, stage.name || `stage ${s}`),
                     element('small', {}, ` ${blocks_of(stage)}`), bar,
                     element('small', {}, text));
    }));
  }

  // ---- Lanes: across, the blocks in order of execution; down, the stages ----

  /** Draws until the last dot has gone. */
  draw() {
    const now = performance.now();
    this.dots = this.dots.filter((dot) => now < dot.born + kTravelMs + kFadeMs);
    this.drawing = this.running && this.dots.length > 0;
    if (this.drawing) setTimeout(() => requestAnimationFrame(() => this.draw()), kFrameMs);
    const stages = this.plan?.stages ?? [];
    const width = this.canvas.clientWidth, height = Math.max(1, stages.length) * kLaneHeight;
    const scale = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * scale) ||
        this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.height = `${height}px`;
    }
    const context = this.canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.canvas);
    const color = (name) => style.getPropertyValue(`--${name}`);
    const hops = route_of(this.plan);
    this.draw_lanes(context, stages, hops, width, color);
    for (const dot of this.dots) {
      if (now >= dot.born) draw_dot(context, dot, now - dot.born, hops, width, color);
    }
  }

  draw_lanes(context, stages, hops, width, color) {
    context.fillStyle = color('lane');
    for (let s = 0; s < stages.length; ++s) context.fillRect(0, lane_y(s) - 1, width, 2);
    context.fillStyle = color('owned');
    for (const {stage, from, to} of hops) {
      context.fillRect(from * width + 1, lane_y(stage) - 4, (to - from) * width - 2, 8);
    }
  }
}

/** What a look was when the server started: the first one shows all that was since. */
function start_of(look) {
  const zero = (value) => (Array.isArray(value) ? value.map(zero) : 0);
  const zeros = (object) =>
      Object.fromEntries(Object.entries(object).map(([key, value]) => [key, zero(value)]));
  return {time: look.time, counters: zeros(look.counters), stages: look.stages.map(zeros)};
}

const lane_y = (stage) => (stage + 0.5) * kLaneHeight;

function blocks_of(stage) {
  const ranges = stage.blocks.map(([first, last]) => `${first}–${last - 1}`).join(', ');
  return `blocks ${ranges}${stage.head ? ', head' : ''}`;
}

/** The hops of a token as {stage, from, to}, parts of its way in [0, 1]; the head counts as a
 *  block. */
export function route_of(plan) {
  if (!plan) return [];
  const n = plan.n_blocks + 1;
  const hops = plan.stages.flatMap(({blocks, head}, stage) => {
    const ranges = head ? [...blocks, [plan.n_blocks, n]] : blocks;
    return ranges.map(([first, last]) => ({stage, from: first / n, to: last / n}));
  });
  return hops.sort((a, b) => a.from - b.from);
}

function draw_dot(context, {kind, born}, age, hops, width, color) {
  const way = Math.min(age / kTravelMs, 1);
  const hop = hops.findLast(({from}) => from <= way) ?? {stage: 0};
  const fade = Math.max(0, (age - kTravelMs) / kFadeMs);
  const is_guess = kind === 'accepted' || kind === 'rejected';
  // Dots of one moment do not hide each other.
  const jitter = (born * 7.31 % 1 - 0.5) * 10;
  const fall = kind === 'rejected' ? fade * 14 : 0;
  context.globalAlpha = 1 - fade;
  context.beginPath();
  context.arc(4 + way * (width - 8), lane_y(hop.stage) + jitter + fall, kind === 'prompt' ? 2 : 3.5,
              0, 2 * Math.PI);
  if (is_guess && way < 1) {
    context.strokeStyle = color('draft');
    context.lineWidth = 1.5;
    context.stroke();
  } else {
    context.fillStyle = color(kind);
    context.fill();
  }
  context.globalAlpha = 1;
}
