// OpenAI's TypeScript SDK, Responses: plain, streamed, with tools, token counts, side by side. The history is the
// client's: `store` is off, reasoning comes encrypted and is sent back. (The SDK has no tool runner for Responses.)
import OpenAI from 'openai';
import { VERSION } from 'openai/version';
import { apiKey, baseURL, done, maxTokens, model, runTool, sideBySide, system, tools as TOOLS, turns } from './client.mjs';

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const tools = TOOLS.map((tool) => ({
  type: 'function',
  name: tool.name,
  description: tool.description,
  parameters: tool.schema,
  strict: true,
}));
const head = {
  model,
  max_output_tokens: maxTokens,
  tools,
  instructions: system,
  store: false,
  include: ['reasoning.encrypted_content'],
};
let epoch = 0;
const counted = [];

async function plain(input) {
  const { data, response } = await client.responses.create({ ...head, input }).withResponse();
  epoch = Math.max(epoch, Number(response.headers.get('x-throughline-epoch') ?? 0));
  return data;
}

const streamed = (input) => client.responses.stream({ ...head, input }).finalResponse();

async function events(input) {
  let last;
  for await (const event of await client.responses.create({ ...head, input, stream: true })) last = event;
  if (last.type !== 'response.completed') throw new Error(`the stream ended with ${last.type}`);
  return last.response;
}

async function answered(ask, input) {
  for (;;) {
    const response = await ask(input);
    for (const item of response.output) {
      const { parsed_arguments, ...kept } = item;
      if (kept.content) kept.content = kept.content.map(({ parsed, ...part }) => part);
      input.push(kept);
    }
    const calls = response.output.filter((item) => item.type === 'function_call');
    if (calls.length === 0) {
      const texts = response.output.flatMap((item) => (item.type === 'message' ? item.content : []));
      return texts.map((part) => part.text ?? '').join('');
    }
    for (const call of calls) {
      const output = runTool(call.name, JSON.parse(call.arguments || '{}'));
      input.push({ type: 'function_call_output', call_id: call.call_id, output });
    }
  }
}

async function countFirst(input) {
  // A refusal is told by the taps; the conversation goes on.
  const { input_tokens } = await client.responses.inputTokens
    .count({ model, input, tools, instructions: system })
    .catch(() => ({ input_tokens: null }));
  const first = [await plain(input)];
  counted.push([input_tokens, first[0].usage.input_tokens]);
  return answered(async (now) => first.pop() ?? plain(now), input);
}

const hows = {
  plain: (input) => answered(plain, input),
  stream: (input) => answered(streamed, input),
  events: (input) => answered(events, input),
  count: countFirst,
  parallel: (input) => sideBySide((branch) => answered(plain, branch), input),
};

const history = [];
let answer = '';
for (const turn of turns) {
  history.push({ role: 'user', content: turn.text });
  answer = await hows[turn.how](history);
}
done(answer, { epoch, counted, version: VERSION });
