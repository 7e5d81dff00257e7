// The Vercel AI SDK against the server at $SLUICE_URL, by its generic and its OpenAI provider.
import {createOpenAI} from '@ai-sdk/openai';
import {createOpenAICompatible} from '@ai-sdk/openai-compatible';
import {generateText, streamText} from 'ai';
import assert from 'node:assert/strict';

const baseURL = `${process.env.SLUICE_URL}/v1`;
const compatible = createOpenAICompatible({
  name: 'sluice', baseURL, apiKey: 'any', includeUsage: true,
});
const openai = createOpenAI({baseURL, apiKey: 'any'});
const prompt = 'What is the capital of France?';
const limits = {temperature: 0, maxOutputTokens: 24, maxRetries: 0};

for (const model of [compatible('smol'), openai.chat('smol')]) {
  const {text, usage} = await generateText({model, prompt, ...limits});
  assert.ok(text);
  assert.ok(usage.outputTokens > 0);

  const stream = streamText({model, prompt, ...limits});
  let streamed = '';
  for await (const part of stream.textStream) streamed += part;
  assert.equal(streamed, text);
  assert.ok((await stream.usage).inputTokens > 0);
}

await assert.rejects(generateText({model: compatible('gpt'), prompt, ...limits}),
                     (error) => error.statusCode === 404);
