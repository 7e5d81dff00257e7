// The settings panel: every field with a data-setting is a key of one object of strings.
import {load_settings, save_settings} from './store.js';

export class Settings {
  constructor(root, on_change) {
    this.values = load_settings();
    this.fields = [...root.querySelectorAll('[data-setting]')];
    for (const field of this.fields) {
      field.value = this.values[field.dataset.setting] ?? '';
      check_json(field);
      field.addEventListener('input', () => {
        check_json(field);
        this.set(field.dataset.setting, field.value);
        on_change();
      });
    }
  }

  set(name, value) {
    this.values[name] = value;
    save_settings(this.values);
  }

  /** The first field that is not as it should be; undefined if all are. */
  wrong() {
    return this.fields.find((field) => !field.checkValidity());
  }
}

function check_json(field) {
  const expected = field.dataset.json;
  if (!expected) return;
  field.setCustomValidity(json_fault(field.value, expected));
}

function json_fault(text, expected) {
  if (!text.trim()) return '';
  try {
    const value = JSON.parse(text);
    const is_right = expected === 'array' ? Array.isArray(value) :
        typeof value === 'object' && value !== null && !Array.isArray(value);
    return is_right ? '' : `Expected a JSON ${expected}.`;
  } catch (error) {
    return `Not JSON: ${error.message}`;
  }
}

/** Dollars for `usage`, by the settings or else by `listed`, the server's price of the model;
 *  undefined if neither has a price. */
export function price_of(usage, s, listed) {
  const own = s.price_input || s.price_output;
  if (!own && !listed) return undefined;
  const input = Number(own ? s.price_input : listed.input);
  const cached = Number((own ? s.price_cached : listed.cached) || input);
  const output = Number(own ? s.price_output : listed.output);
  return ((usage.input - usage.cached) * input + usage.cached * cached + usage.output * output) / 1e6;
}
