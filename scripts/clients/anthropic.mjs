// Anthropic's TypeScript SDK: plain, streamed, with tools, the tool runner, token counts, requests side by side.
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { VERSION } from '@anthropic-ai/sdk/version';
import { apiKey, baseURL, done, maxTokens, model, runTool, sideBySide, system, tools as TOOLS, turns } from './client.mjs';

const client = new Anthropic({ baseURL, apiKey, maxRetries: 0 });
const tools = TOOLS.map((tool) => ({ name: tool.name, description: tool.description, input_schema: tool.schema }));
const runnable = TOOLS.map((tool) =>
  betaTool({
    name: tool.name,
    description: tool.description,
    inputSchema: tool.schema,
    run: (input) => runTool(tool.name, input),
  }),
);
// Markers as they are set by hand: behind the system prompt, and behind the last message.
const head = {
  model,
  max_tokens: maxTokens,
  system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }],
};
let epoch = 0;
const counted = [];

function marked(messages) {
  const last = messages.at(-1);
  const blocks = typeof last.content === 'string' ? [{ type: 'text', text: last.content }] : last.content;
  const content = [...blocks.slice(0, -1), { ...blocks.at(-1), cache_control: { type: 'ephemeral' } }];
  return [...messages.slice(0, -1), { ...last, content }];
}

async function plain(messages) {
  const { data, response } = await client.messages.create({ ...head, tools, messages: marked(messages) }).withResponse();
  epoch = Math.max(epoch, Number(response.headers.get('x-throughline-epoch') ?? 0));
  return data;
}

const streamed = (messages) => client.messages.stream({ ...head, tools, messages: marked(messages) }).finalMessage();

async function events(messages) {
  const stream = await client.messages.create({ ...head, tools, messages: marked(messages), stream: true });
  const kinds = [];
  for await (const event of stream) kinds.push(event.type);
  if (kinds[0] !== 'message_start' || kinds.at(-1) !== 'message_stop') throw new Error(`events: ${kinds}`);
  return streamed(messages);
}

const textOf = (message) => message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');

async function answered(ask, messages) {
  for (;;) {
    const message = await ask(messages);
    messages.push({ role: 'assistant', content: message.content });
    const calls = message.content.filter((block) => block.type === 'tool_use');
    if (calls.length === 0) return textOf(message);
    messages.push({
      role: 'user',
      content: calls.map((call) => ({ type: 'tool_result', tool_use_id: call.id, content: runTool(call.name, call.input) })),
    });
  }
}

async function byTheRunner(messages) {
  const runner = client.beta.messages.toolRunner({ ...head, tools: runnable, messages: marked(messages), max_iterations: 20 });
  let text = '';
  for await (const message of runner) {
    messages.push({ role: 'assistant', content: message.content });
    const results = await runner.generateToolResponse();
    if (results) messages.push(results);
    text = textOf(message);
  }
  return text;
}

async function countFirst(messages) {
  const { input_tokens } = await client.messages.countTokens({ model, system: head.system, tools, messages: marked(messages) });
  const first = [await plain(messages)];
  const { usage } = first[0];
  counted.push([input_tokens, usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0)]);
  return answered(async (now) => first.pop() ?? plain(now), messages);
}

const hows = {
  plain: (messages) => answered(plain, messages),
  stream: (messages) => answered(streamed, messages),
  events: (messages) => answered(events, messages),
  runner: byTheRunner,
  count: countFirst,
  parallel: (messages) => sideBySide((branch) => answered(plain, branch), messages),
};

const history = [];
let answer = '';
for (const turn of turns) {
  history.push({ role: 'user', content: turn.text });
  answer = await hows[turn.how](history);
}
done(answer, { epoch, counted, version: VERSION });
