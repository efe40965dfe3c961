// OpenAI's TypeScript SDK, Chat Completions: plain, streamed, with tools, the tool runner, side by side.
import OpenAI from 'openai';
import { VERSION } from 'openai/version';
import { apiKey, baseURL, done, maxTokens, model, runTool, sideBySide, system, tools as TOOLS, turns } from './client.mjs';

const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const tools = TOOLS.map((tool) => ({
  type: 'function',
  function: { name: tool.name, description: tool.description, parameters: tool.schema, strict: true },
}));
const head = { model, max_completion_tokens: maxTokens };
let epoch = 0;

async function plain(messages) {
  const { data, response } = await client.chat.completions.create({ ...head, tools, messages }).withResponse();
  epoch = Math.max(epoch, Number(response.headers.get('x-throughline-epoch') ?? 0));
  return data.choices[0].message;
}

const streamed = (messages) =>
  client.chat.completions.stream({ ...head, tools, messages, stream_options: { include_usage: true } }).finalMessage();

async function answered(ask, messages) {
  for (;;) {
    const message = await ask(messages);
    const { parsed, ...kept } = message;
    messages.push(kept);
    if (!message.tool_calls?.length) return message.content ?? '';
    for (const call of message.tool_calls) {
      delete call.function.parsed_arguments;
      const content = runTool(call.function.name, JSON.parse(call.function.arguments || '{}'));
      messages.push({ role: 'tool', tool_call_id: call.id, content });
    }
  }
}

async function byTheRunner(messages) {
  const runnable = TOOLS.map((tool) => ({
    type: 'function',
    function: {
      name: tool.name,
      description: tool.description,
      parameters: tool.schema,
      strict: true,
      parse: JSON.parse,
      function: (input) => runTool(tool.name, input),
    },
  }));
  const runner = client.chat.completions.runTools({ ...head, tools: runnable, messages: [...messages] }, { maxChatCompletions: 20 });
  const text = await runner.finalContent();
  messages.splice(0, messages.length, ...runner.messages);
  return text ?? '';
}

const hows = {
  plain: (messages) => answered(plain, messages),
  stream: (messages) => answered(streamed, messages),
  runner: byTheRunner,
  parallel: (messages) => sideBySide((branch) => answered(plain, branch), messages),
};

const history = [{ role: 'system', content: system }];
let answer = '';
for (const turn of turns) {
  history.push({ role: 'user', content: turn.text });
  answer = await hows[turn.how](history);
}
done(answer, { epoch, version: VERSION });
