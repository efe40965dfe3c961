// What the client programs have in common: what is to be said, what the tools answer, how the end is told.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export const baseURL = process.env.BASE_URL;
export const model = process.env.MODEL;
export const apiKey = 'any-key';
export const maxTokens = 1500;
export const system =
  'You are a careful assistant of a team that moves a billing service. ' +
  'Answer briefly and name what you saw. '.repeat(8);
export const turns = JSON.parse(readFileSync(process.env.TURNS, 'utf8'));

const TOOLS = {
  read_file: ['Read a file of the repository.', { path: 'Path from the root of the repository.' }],
  search: ['Search the repository for words.', { query: 'Words to look for.', where: 'Folder to look in.' }],
};

// Each tool as name, description and JSON Schema.
export const tools = Object.entries(TOOLS).map(([name, [description, fields]]) => ({
  name,
  description,
  schema: {
    type: 'object',
    properties: Object.fromEntries(
      Object.entries(fields).map(([field, text]) => [field, { type: 'string', description: text }]),
    ),
    required: Object.keys(fields),
    additionalProperties: false,
  },
}));

const PEOPLE = ['Ines', 'Tomas', 'Priya', 'Jonas', 'Mei', 'Olu'];
const THINGS = ['a long queue', 'a full buffer', 'two open connections', 'an idle worker', 'a slow query', 'a large batch'];

// What a tool answers: some lines that hang on what it was asked.
export function runTool(name, input) {
  const digest = createHash('sha256').update(name + JSON.stringify(input)).digest();
  const lines = [`${name}: 8 lines, digest ${digest.toString('hex', 0, 6)}`];
  for (let at = 0; at < 8; at++) {
    const [who, what, ms] = [digest[at], digest[at + 8], digest[at + 16]];
    lines.push(`${PEOPLE[who % 6]} looked at part ${at} and found ${THINGS[what % 6]} in request ${1000 + who * what}; it took ${ms} ms.`);
  }
  return lines.join('\n');
}

// Three questions behind the same history at the same time; the conversation goes on with the first.
export async function sideBySide(answered, messages) {
  const last = messages.at(-1);
  const branches = [0, 1, 2].map((at) => [...messages.slice(0, -1), { ...last, content: `${last.content} (variant ${at})` }]);
  const answers = await Promise.all(branches.map((branch) => answered(branch)));
  messages.splice(0, messages.length, ...branches[0]);
  return answers[0];
}

export function done(answer, observed) {
  console.log(JSON.stringify({ answer, ...observed }));
}
