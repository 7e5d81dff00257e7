// Schemas and forced calls by the Vercel AI SDK against the server at $SLUICE_URL, by its generic and
// its OpenAI provider.
import {createOpenAI} from '@ai-sdk/openai';
import {createOpenAICompatible} from '@ai-sdk/openai-compatible';
import {generateText, jsonSchema, Output, tool} from 'ai';
import assert from 'node:assert/strict';

const baseURL = `${process.env.SLUICE_URL}/v1`;
const compatible = createOpenAICompatible({
  name: 'sluice', baseURL, apiKey: 'any', supportsStructuredOutputs: true, includeUsage: true,
});
const openai = createOpenAI({baseURL, apiKey: 'any'});
const limits = {temperature: 0, maxOutputTokens: 60, maxRetries: 0};
const city = jsonSchema({
  type: 'object', additionalProperties: false, required: ['city'],
  properties: {city: {type: 'string', maxLength: 20}},
});

for (const model of [compatible('smol'), openai.chat('smol')]) {
  const {output} = await generateText({
    model, prompt: 'Name a city.', ...limits,
    output: Output.object({schema: city}),
  });
  assert.deepEqual(Object.keys(output), ['city']);

  const {toolCalls} = await generateText({
    model, prompt: 'How is the weather in Oslo?', ...limits,
    tools: {get_weather: tool({description: 'The weather', inputSchema: city})},
    toolChoice: 'required',
  });
  assert.equal(toolCalls[0].toolName, 'get_weather');
  assert.deepEqual(Object.keys(toolCalls[0].input), ['city']);
}
