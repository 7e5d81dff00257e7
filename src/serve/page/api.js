// The server's API as the page uses it.

function headers(key) {
  const all = {'Content-Type': 'application/json'};
  if (key) all.Authorization = `Bearer ${key}`;
  return all;
}

async function failure(response) {
  let message = `The server answered ${response.status}.`;
  try {
    message = (await response.json()).error.message;
  } catch {
    // No body that says more.
  }
  return new Error(message);
}

export async function get_json(path, key) {
  const response = await fetch(path, {headers: headers(key)});
  if (!response.ok) throw await failure(response);
  return response.json();
}

/** Yields the chunks of a streamed chat completion. Throws what the server says is wrong. */
export async function* stream_chat(body, key, signal) {
  const response = await fetch('/v1/chat/completions', {
    method: 'POST', headers: headers(key), body: JSON.stringify(body), signal,
  });
  if (!response.ok) throw await failure(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) throw new Error('The connection ended before the answer did.');
    const events = (waiting + value).split('\n\n');
    waiting = events.pop();
    for (const event of events) {
      if (!event.startsWith('data: ')) continue;
      if (event === 'data: [DONE]') return;
      const chunk = JSON.parse(event.slice(6));
      if (chunk.error) throw new Error(chunk.error.message);
      yield chunk;
    }
  }
}

const number = (text) => (text === undefined || text === '' ? undefined : Number(text));

/** A tool as the API wants it; the short form is the function alone. */
const as_tool = (tool) => (tool.type ? tool : {type: 'function', function: tool});

/** The request for the next answer of a conversation. Throws on settings that are not JSON. */
export function chat_body(messages, model, s) {
  const body = {
    model, stream: true, stream_options: {include_usage: true},
    messages: messages.filter(says_something).map(as_message),
    temperature: number(s.temperature), top_p: number(s.top_p), top_k: number(s.top_k),
    min_p: number(s.min_p), seed: number(s.seed), max_completion_tokens: number(s.max_tokens),
    reasoning_effort: s.effort || undefined,
  };
  if (s.system?.trim()) body.messages.unshift({role: 'system', content: s.system});
  const stops = (s.stop ?? '').split('\n').filter((line) => line);
  if (stops.length) body.stop = stops;
  if (s.schema?.trim()) {
    body.response_format = {
      type: 'json_schema', json_schema: {name: 'answer', schema: JSON.parse(s.schema)},
    };
  }
  if (s.tools?.trim()) {
    body.tools = JSON.parse(s.tools).map(as_tool);
    body.tool_choice = s.tool_choice || undefined;
  }
  return body;
}

/** An answer that failed or was stopped at once is not part of the conversation. */
const says_something = (m) => m.role !== 'assistant' || m.content || m.calls?.length;

function as_message(m) {
  if (m.role === 'tool') return {role: 'tool', tool_call_id: m.tool_call_id, content: m.content};
  const message = {role: m.role, content: m.content};
  if (m.calls?.length) {
    message.tool_calls = m.calls.map((call) => ({
      id: call.id, type: 'function', function: {name: call.name, arguments: call.arguments},
    }));
  }
  if (m.reasoning) message.reasoning_content = m.reasoning;
  return message;
}

/** Adds what a chunk says to an assistant's message. */
export function add_chunk(message, chunk) {
  if (chunk.usage) message.usage = usage_of(chunk.usage);
  const choice = chunk.choices[0];
  if (!choice) return;
  const {content, reasoning_content: reasoning, tool_calls: calls} = choice.delta;
  if (content) message.content += content;
  if (reasoning) message.reasoning = (message.reasoning ?? '') + reasoning;
  for (const delta of calls ?? []) {
    message.calls ??= [];
    const call = (message.calls[delta.index] ??= {id: '', name: '', arguments: ''});
    if (delta.id) call.id = delta.id;
    call.name += delta.function?.name ?? '';
    call.arguments += delta.function?.arguments ?? '';
  }
  if (choice.finish_reason) message.finish = choice.finish_reason;
}

function usage_of(usage) {
  return {
    input: usage.prompt_tokens, cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
    output: usage.completion_tokens,
  };
}
