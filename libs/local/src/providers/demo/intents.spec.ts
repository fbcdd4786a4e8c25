import { describe, expect, it } from 'vitest';
import { intentsOf } from './intents.js';

const plan = (request: string): string[] =>
  intentsOf(request).map(({ calls }) => calls.map((call) => `${call.function_id} ${JSON.stringify(call.arguments)}`).join(' & '));
const file = (path: string): string => `coder::read-file {"path":"${path}"}`;

describe('what a request asks for', () => {
  it.each([
    ['read README.md and tell me what this project is', [file('README.md')]],
    ['Read the README', [file('README.md')]],
    ['What is this project about?', [file('README.md')]],
    ["what's in src/main.ts?", [file('src/main.ts')]],
    ['package.json', [file('package.json')]],
    ['summarize docs/a.md, docs/b.md and c.txt', [`${file('docs/a.md')} & ${file('docs/b.md')} & ${file('c.txt')}`]],
    ['list files', ['coder::list-folder {"path":"."}']],
    ['ls', ['coder::list-folder {"path":"."}']],
    ['list the files in src/app', ['coder::list-folder {"path":"src/app"}']],
    ['Which files are in this folder?', ['coder::list-folder {"path":"."}']],
    ['show the tree', ['coder::tree {"path":"."}']],
    ['show me the structure of libs', ['coder::tree {"path":"libs"}']],
    ['search for TODO', ['coder::search {"query":"TODO"}']],
    ['find all uses of "a and b" in the code.', ['coder::search {"query":"a and b"}']],
    ['grep `x.y()` in src/lib', ['coder::search {"query":"x.y()","path":"src/lib"}']],
    ['fetch https://example.com/x?a=1.', ['web::fetch {"url":"https://example.com/x?a=1"}']],
    ['run `npm test`', ['shell::exec {"command":"npm","args":["test"]}']],
    ['run the command: date -u', ['shell::exec {"command":"date","args":["-u"]}']],
    ['execute "ls | wc -l"', ['shell::exec {"command":"sh","args":["-c","ls | wc -l"]}']],
    ['write notes.txt with "hello there"', ['coder::create-file {"files":[{"path":"notes.txt","content":"hello there\\n"}]}']],
    ['write hello to notes.txt', ['coder::create-file {"files":[{"path":"notes.txt","content":"hello\\n"}]}']],
    ['delegate to a sub-agent: read a.md', ['harness::spawn {"task":"read a.md"}']],
    ['delegate: read a.md and list the files', ['harness::spawn {"task":"read a.md and list the files"}']],
    ['ask a sub-agent to read a.md', ['harness::spawn {"task":"read a.md"}']],
    ['what can you do?', ['engine::functions::list {}']],
    ['list the files, then read a.md; then list the files', ['coder::list-folder {"path":"."}', file('a.md')]],
    ['hello', []],
    ['thanks, that was great.', []],
    ['what is 2 + 2?', []],
    ['', []],
  ] as [string, string[]][])('%s', (request, expected) => {
    expect(plan(request)).toEqual(expected);
  });

  it('reads a long text in no time', () => {
    const from = performance.now();
    intentsOf(`read ${'a/'.repeat(20_000)} and find ${'.x'.repeat(20_000)} ${'word '.repeat(20_000)}`);
    expect(performance.now() - from).toBeLessThan(1_000);
  });
});
