// Forced calls by openai-node, against the server at $SLUICE_URL.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: `${process.env.SLUICE_URL}/v1`, apiKey: 'any', maxRetries: 0,
});
const messages = [{role: 'user', content: 'How is the weather in Oslo?'}];
const fields = {model: 'smol', messages, temperature: 0};

const tool = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object', additionalProperties: false, required: ['city'],
      properties: {city: {type: 'string', maxLength: 20}},
    },
  },
};
const calling = client.chat.completions.stream(
    {...fields, tools: [tool], tool_choice: 'required', max_completion_tokens: 60});
const {tool_calls: calls} = await calling.finalMessage();
assert.equal(calls[0].function.name, 'get_weather');
assert.deepEqual(Object.keys(JSON.parse(calls[0].function.arguments)), ['city']);
