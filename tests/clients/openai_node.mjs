// openai-node against the server at $SLUICE_URL.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: `${process.env.SLUICE_URL}/v1`, apiKey: 'any', maxRetries: 0,
});
const messages = [{role: 'user', content: 'What is the capital of France?'}];
const fields = {model: 'smol', messages, temperature: 0, max_completion_tokens: 24};

const models = await client.models.list();
assert.deepEqual(models.data.map((model) => model.id), ['smol']);

const answer = await client.chat.completions.create(fields);
const text = answer.choices[0].message.content;
assert.ok(text);
assert.equal(answer.usage.total_tokens,
             answer.usage.prompt_tokens + answer.usage.completion_tokens);

let streamed = '';
let usage = null;
for await (const chunk of await client.chat.completions.create(
    {...fields, stream: true, stream_options: {include_usage: true}})) {
  streamed += chunk.choices[0]?.delta.content ?? '';
  usage = chunk.usage ?? usage;
}
assert.equal(streamed, text);
assert.ok(usage.completion_tokens > 0);

const runner = client.chat.completions.stream(fields);
assert.equal(await runner.finalContent(), text);

await assert.rejects(client.chat.completions.create({...fields, model: 'gpt'}),
                     (error) => error.status === 404 && error.code === 'model_not_found');
await assert.rejects(client.chat.completions.create({...fields, temperature: 9}),
                     (error) => error.status === 400 && error.param === 'temperature');

const controller = new AbortController();
const cut = await client.chat.completions.create(
    {...fields, stream: true, max_completion_tokens: 2000, ignore_eos: true},
    {signal: controller.signal});
for await (const chunk of cut) {
  assert.ok(chunk.id);
  controller.abort();
}
