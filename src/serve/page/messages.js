// A conversation on the screen: one element per message.
import {button, copy_button, count, element} from './dom.js';
import {markdown} from './markdown.js';

const kNames = {user: 'You', assistant: 'Sluice', tool: 'Tool'};

/** `actions`: edit(i), regenerate(), give_results([{id, content}]). */
export class MessageList {
  constructor(root, actions) {
    this.root = root;
    this.actions = actions;
    this.frame = 0;  // of a drawing that is due
    this.took_ms = 0;
  }

  /** Shows all messages; `busy` while the last one is being written. */
  show(messages, busy) {
    clearTimeout(this.frame);
    this.frame = 0;
    this.messages = messages;
    this.root.replaceChildren(...messages.map((_, i) => this.message(i, busy)));
    if (!messages.length) {
      this.root.append(element('p', {className: 'empty'}, 'What would you like to know?'));
    }
    this.to_end(true);
  }

  /** Draws the last message again, soon: a long one less often, so that drawing never takes more
   *  than a tenth of the time. */
  update() {
    this.frame ||= setTimeout(() => {
      const start = performance.now();
      this.frame = 0;
      this.root.lastElementChild.replaceWith(this.message(this.messages.length - 1, true));
      this.to_end(false);
      this.took_ms = performance.now() - start;
    }, Math.max(16, 10 * this.took_ms));
  }

  /** Follows the text unless the reader has scrolled up. */
  to_end(always) {
    const below = this.root.scrollHeight - this.root.scrollTop - this.root.clientHeight;
    if (always || below < 160) this.root.scrollTop = this.root.scrollHeight;
  }

  message(i, busy) {
    const m = this.messages[i];
    const is_last = i === this.messages.length - 1;
    const writing = busy && is_last && m.role === 'assistant';
    const node = element('article', {className: m.role, 'aria-busy': String(writing)},
                         element('h3', {}, kNames[m.role] ?? m.role));
    if (m.reasoning) node.append(thinking(m, writing));
    const body = element('div', {className: 'body'});
    if (m.role === 'assistant') body.append(markdown(m.content));
    else body.textContent = m.content;
    node.append(body, ...(m.calls ?? []).map(call_card));
    if (writing && !m.content && !m.calls) body.append(element('span', {className: 'cursor'}));
    if (m.error) node.append(element('p', {className: 'error', role: 'alert'}, m.error));
    if (!writing) node.append(this.footer(i, is_last, busy));
    if (is_last && !busy && m.calls?.length && !m.error) node.append(this.results_form(m.calls));
    return node;
  }

  footer(i, is_last, busy) {
    const m = this.messages[i];
    const node = element('footer');
    if (m.role === 'assistant') {
      node.append(copy_button(() => m.content));
      if (is_last && !busy) node.append(button('Regenerate', () => this.actions.regenerate()));
      node.append(element('span', {className: 'hint'}, describe(m)));
    } else if (m.role === 'user' && !busy) {
      node.append(button('Edit', () => this.actions.edit(i)));
    }
    return node;
  }

  /** Where the user plays the tools' part. */
  results_form(calls) {
    const fields = calls.map((call) => element('textarea', {
      rows: 1, placeholder: `Result of ${call.name}`, 'aria-label': `Result of ${call.name}`,
    }));
    const form = element('form', {className: 'results'}, ...fields,
                         element('button', {type: 'submit'}, 'Send results'));
    form.onsubmit = (event) => {
      event.preventDefault();
      this.actions.give_results(calls.map((call, c) => ({id: call.id, content: fields[c].value})));
    };
    return form;
  }
}

function thinking(m, writing) {
  const open = writing && !m.content;
  return element('details', {className: 'thinking', open},
                 element('summary', {}, open ? 'Thinking' : 'Thought'),
                 element('div', {}, markdown(m.reasoning)));
}

function call_card(call) {
  return element('figure', {className: 'call'},
                 element('figcaption', {}, 'Calls ', element('code', {}, call.name)),
                 element('pre', {tabIndex: 0}, element('code', {}, pretty(call.arguments))));
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;  // not whole yet, or no JSON
  }
}

function describe(m) {
  const parts = [];
  if (m.usage) parts.push(`${count(m.usage.output)} tokens`);
  if (m.first_ms !== undefined) parts.push(`first after ${count(m.first_ms)} ms`);
  if (m.usage?.output > 1 && m.ms > m.first_ms) {
    parts.push(`${((m.usage.output - 1) / (m.ms - m.first_ms) * 1e3).toFixed(1)} tokens/s`);
  }
  if (m.finish === 'length') parts.push('cut at the limit');
  if (m.finish === 'stopped') parts.push('stopped');
  return parts.join(' · ');
}
