// Conversations and settings in this browser's localStorage.

const kConversations = 'sluice.conversations';
const kSettings = 'sluice.settings';

function read(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function is_conversation(c) {
  return typeof c?.id === 'string' && Array.isArray(c.messages);
}

/** Newest first. */
export function load_conversations() {
  const list = read(kConversations, []);
  return Array.isArray(list) ? list.filter(is_conversation) : [];
}

/** The oldest conversations are let go where the browser has no room for all. */
export function save_conversations(list) {
  for (let n = list.length; n > 0; --n) {
    try {
      localStorage.setItem(kConversations, JSON.stringify(list.slice(0, n)));
      return;
    } catch {
      // No room: with one fewer.
    }
  }
  localStorage.removeItem(kConversations);
}

export const new_conversation = () =>
    ({id: crypto.randomUUID?.() ?? String(Math.random()).slice(2), title: 'New chat', messages: []});

export const load_settings = () => ({...read(kSettings, {})});

export function save_settings(settings) {
  try {
    localStorage.setItem(kSettings, JSON.stringify(settings));
  } catch {
    // They last as long as the page.
  }
}
