// Small helpers for building elements. Text is only ever set as text, never as markup.

/** An element; `properties` are set on it, "data-x", "aria-x" and "role" as attributes. */
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (/^(data-|aria-|role$)/.test(name)) node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children);
  return node;
}

export const find = (id) => document.getElementById(id);

export function button(text, onclick, properties = {}) {
  return element('button', {type: 'button', className: 'quiet', onclick, ...properties}, text);
}

/** A button that copies what `text()` says and admits it. */
export function copy_button(text) {
  const node = button('Copy', async () => {
    try {
      await navigator.clipboard.writeText(text());
      node.textContent = 'Copied';
    } catch {
      node.textContent = 'Not allowed';
    }
    setTimeout(() => { node.textContent = 'Copy'; }, 1500);
  });
  return node;
}

export const count = (n) => Math.round(n).toLocaleString('en-US');
