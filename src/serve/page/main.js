// Ties the parts of the page together.
import {add_chunk, chat_body, get_json, stream_chat} from './api.js';
import {button, count, element, find} from './dom.js';
import {MessageList} from './messages.js';
import {PipelineView} from './pipeline.js';
import {price_of, Settings} from './settings.js';
import {load_conversations, new_conversation, save_conversations} from './store.js';
import {connect_theme} from './theme.js';

const kPanels = ['list', 'settings', 'pipeline'];

let conversations = load_conversations();
let current = conversations[0] ?? new_conversation();
let models = [];       // as the server lists them
let answering = null;  // the AbortController of the answer under way

const settings = new Settings(find('settings'), () => show_tally());
const list = new MessageList(find('messages'), {
  edit(i) {
    find('input').value = current.messages[i].content;
    current.messages.length = i;
    refresh();
    find('input').focus();
    fit_input();
  },
  regenerate,
  give_results(results) {
    for (const {id, content} of results) {
      current.messages.push({role: 'tool', tool_call_id: id, content});
    }
    answer();
  },
});
const pipeline = new PipelineView(find('pipeline'), () => get_json(
    `/v1/plan?model=${encodeURIComponent(find('model').value)}`, settings.values.key));

// ---- Conversations ----

function keep() {
  conversations = conversations.filter((c) => c !== current);
  if (current.messages.length) conversations.unshift(current);
  save_conversations(conversations);
}

function open(conversation) {
  stop();
  current = conversation;
  refresh();
  find('input').focus();
}

function remove(conversation) {
  conversations = conversations.filter((c) => c !== conversation);
  save_conversations(conversations);
  if (conversation === current) open(conversations[0] ?? new_conversation());
  else refresh();
}

function refresh() {
  list.show(current.messages, answering !== null);
  find('conversations').replaceChildren(...conversations.map((c) => element(
      'li', {},
      button(c.title, () => open(c), {className: 'quiet title', 'aria-current': String(c === current)}),
      button('×', () => remove(c), {title: 'Delete', 'aria-label': `Delete ${c.title}`}))));
  find('send').hidden = answering !== null;
  find('stop').hidden = answering === null;
  show_tally();
}

function show_tally() {
  const sum = {input: 0, cached: 0, output: 0};
  for (const {usage} of current.messages) {
    for (const key of Object.keys(usage ? sum : {})) sum[key] += usage[key];
  }
  const model = models.find((m) => m.id === find('model').value);
  const price = price_of(sum, settings.values, model?.price);
  find('tally').textContent = sum.output === 0 ? '' :
      `${count(sum.input)} tokens in (${count(sum.cached)} cached) · ${count(sum.output)} out` +
      (price === undefined ? '' : ` · $${price.toFixed(6)}`);
}

// ---- Answers ----

function send(text) {
  if (!text.trim() || answering) return;
  if (!current.messages.length) current.title = text.trim().replace(/\s+/g, ' ').slice(0, 60);
  current.messages.push({role: 'user', content: text});
  find('input').value = '';
  fit_input();
  answer();
}

function regenerate() {
  if (answering || current.messages.at(-1)?.role !== 'assistant') return;
  current.messages.pop();
  answer();
}

function stop() {
  answering?.abort();
}

/** Asks for the next message of the current conversation and shows it as it comes. */
async function answer() {
  const wrong = settings.wrong();
  if (wrong) {
    show_panel('settings', true);
    wrong.reportValidity();
    refresh();
    return;
  }
  const conversation = current;
  const message = {role: 'assistant', content: ''};
  const controller = answering = new AbortController();
  const start = performance.now();
  try {
    const body = chat_body(conversation.messages, find('model').value, settings.values);
    conversation.messages.push(message);
    keep();
    refresh();
    for await (const chunk of stream_chat(body, settings.values.key, controller.signal)) {
      if (chunk.choices.length) message.first_ms ??= performance.now() - start;
      add_chunk(message, chunk);
      if (conversation === current) list.update();
    }
  } catch (error) {
    if (controller.signal.aborted) message.finish = 'stopped';
    else message.error = error.message;
  }
  message.ms = performance.now() - start;
  if (answering === controller) answering = null;
  if (conversation === current) keep();
  else save_conversations(conversations);
  refresh();
}

// ---- The page around it ----

function fit_input() {
  const input = find('input');
  input.style.height = 'auto';
  input.style.height = `${Math.min(input.scrollHeight + 2, 240)}px`;  // 2: its borders
}

/** On a narrow screen one panel covers the conversation; on a wide one settings and pipeline share
 *  the right side. */
function show_panel(name, shown) {
  const narrow = matchMedia('(max-width: 900px)').matches;
  for (const other of kPanels) {
    const is_it = other === name;
    if (!is_it && !(shown && (narrow || other !== 'list'))) continue;
    const visible = is_it && shown;
    find(other).hidden = !visible;
    find(`show-${other}`).setAttribute('aria-expanded', String(visible));
  }
  pipeline.run(!find('pipeline').hidden);
}

const toggle_panel = (name) => show_panel(name, find(name).hidden);

async function load_models() {
  try {
    models = (await get_json('/v1/models', settings.values.key)).data;
    find('model').replaceChildren(...models.map((m) => element('option', {value: m.id}, m.id)));
    const wanted = models.find((m) => m.id === settings.values.model);
    if (wanted) find('model').value = wanted.id;
    show_tally();
  } catch (error) {
    find('tally').textContent = error.message;
  }
}

const kKeys = {
  n: () => open(new_conversation()),
  r: () => regenerate(),
  p: () => toggle_panel('pipeline'),
  s: () => toggle_panel('settings'),
};

function on_key(event) {
  const writing = event.target.matches('input, textarea, select');
  if (event.key === 'Escape') {
    if (answering) stop();
    else for (const name of ['settings', 'pipeline']) show_panel(name, false);
  } else if (event.key === '/' && !writing) {
    event.preventDefault();
    find('input').focus();
  } else if (event.altKey && !event.ctrlKey && !event.metaKey) {
    // The key's place, not what it writes: with Alt it may write something else.
    const act = kKeys[event.code.replace('Key', '').toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

function connect() {
  find('composer').onsubmit = (event) => {
    event.preventDefault();
    send(find('input').value);
  };
  find('input').oninput = fit_input;
  find('input').onkeydown = (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send(find('input').value);
  };
  find('stop').onclick = stop;
  find('new').onclick = kKeys.n;
  for (const name of kPanels) find(`show-${name}`).onclick = () => toggle_panel(name);
  connect_theme(find('theme'), settings.values.theme, (theme) => settings.set('theme', theme));
  find('model').onchange = () => {
    settings.set('model', find('model').value);
    show_tally();
  };
  find('settings').querySelector('[data-setting=key]').addEventListener('change', load_models);
  document.addEventListener('keydown', on_key);
}

connect();
fit_input();
load_models();
const is_wide = matchMedia('(min-width: 901px)').matches;
show_panel('list', is_wide);
if (is_wide) show_panel('pipeline', true);
refresh();
