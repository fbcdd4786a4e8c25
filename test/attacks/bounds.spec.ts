import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { failure, longestBlock } from '../../libs/local/src/confine/test/app.js';
import { OutputBuffer } from '../../libs/local/src/shell/output.js';
import { type Arena, openArena } from './support/arena.js';
import { Site } from './support/site.js';

const MIB = 1_048_576;
let arena: Arena;
let site: Site;
beforeAll(async () => {
  [arena, site] = [await openArena(), await Site.open()];
});
afterAll(async () => {
  await arena.close();
  await site.close();
});
beforeEach(() => site.reset(true));

const call = <T = unknown>(fn: string, payload: object): Promise<T> => arena.app.call<T>(fn, payload);
/** Memory that this process holds more after `work`, in bytes. */
async function held(work: () => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage();
  await work();
  const after = process.memoryUsage();
  return after.heapUsed + after.external - before.heapUsed - before.external;
}

describe('a file', () => {
  it.each(['pipe', 'zero', 'socket'])('that is a %s hangs nothing', async (kind) => {
    const path = join(arena.root, kind);
    if (kind === 'pipe') execFileSync('/bin/sh', ['-c', 'mkfifo "$1"', 'sh', path]);
    else if (kind === 'zero') symlinkSync('/dev/zero', path);
    else {
      const bound = spawnSync(process.execPath, [
        '-e',
        `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 9))`,
        path,
      ]);
      expect(bound.signal).toBe('SIGKILL');
    }
    expect(await failure(call('coder::read-file', { path: kind }))).toMatch(/^C21[01]: /);
    expect(await call('coder::create-file', { files: [{ path: kind, content: 'x', overwrite: true }] })).toMatchObject({
      results: [{ success: false }],
    });
    await call('coder::search', { query: 'zzz' });
    await call('coder::tree', {});
  });

  it('that is larger than the memory takes none', async () => {
    writeFileSync(join(arena.root, 'sparse'), 'text\n'.repeat(4_000));
    truncateSync(join(arena.root, 'sparse'), 2 ** 40);
    const grown = await held(async () => {
      expect(await failure(call('coder::read-file', { path: 'sparse' }))).toMatch(/^C213: /);
      expect(await call('coder::read-file', { path: 'sparse', line_from: 2, line_to: 3 })).toMatchObject({ content: 'text\ntext\n' });
      expect(
        await call('coder::update-file', { files: [{ path: 'sparse', ops: [{ op: 'remove', from_line: 1, to_line: 1 }] }] }),
      ).toMatchObject({
        results: [{ success: false, error: { code: 'C213' } }],
      });
    });
    expect(grown).toBeLessThan(64 * MIB);
    truncateSync(join(arena.root, 'sparse'), 0);
  });
});

describe('a tree of folders', () => {
  it('that is deep uses up no file handles', async () => {
    const folder = join(arena.root, 'deep', ...Array<string>(300).fill('d'));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'needle.txt'), 'needle');
    const found = await call<{ content_matches: unknown[]; truncated_reason?: string }>('coder::search', { query: 'needle', path: 'deep' });
    expect(found.content_matches).toEqual([]);
    expect(found.truncated_reason).toContain('too deep');
  });

  it('with ignore rules without end does not hold up the process', async () => {
    mkdirSync(join(arena.root, 'rules'));
    writeFileSync(join(arena.root, 'rules', '.gitignore'), `${'*a*a*a*b\n'.repeat(6_000)}*\n`);
    for (let i = 0; i < 60; i++) writeFileSync(join(arena.root, 'rules', `${'a'.repeat(200)}${i}`), 'x');
    const blocked = await longestBlock(() => call('coder::search', { query: 'x', path: 'rules', respect_gitignore: true }));
    expect(blocked).toBeLessThan(1_000);
  });
});

describe('a command', () => {
  it('that writes byte by byte takes the memory of what is kept', async () => {
    const buffer = new OutputBuffer(MIB);
    const grown = await held(async () => {
      for (let i = 0; i < 1_200_000; i++) buffer.push(Buffer.from([0x78]));
    });
    expect(buffer.text()).toContain('bytes left out');
    expect(grown).toBeLessThan(64 * MIB);
  });
});

describe('a server', () => {
  it.each([
    ['gzip', gzipSync(Buffer.alloc(200 * MIB))],
    ['br', brotliCompressSync(Buffer.alloc(200 * MIB), { params: { 1: 4 } })],
    ['deflate', deflateSync(Buffer.alloc(200 * MIB))],
    ['gzip, gzip', gzipSync(gzipSync(Buffer.alloc(200 * MIB)))],
  ])('with a body that unpacks to 200 MiB (%s) fills no memory', async (coding, bomb) => {
    site.respond = (_request, response) => response.writeHead(200, { 'content-encoding': coding }).end(bomb);
    const grown = await held(async () =>
      expect(await site.get({ url: site.base, max_bytes: MIB })).toMatchObject({ ok: true, bytes_truncated: true }),
    );
    expect(grown).toBeLessThan(48 * MIB);
  });

  it('that packs a hundred times is refused', async () => {
    site.respond = (_request, response) => response.writeHead(200, { 'content-encoding': Array(100).fill('gzip').join(',') }).end('x');
    expect(await site.get({ url: site.base })).toMatchObject({ ok: false, error: 'transport_error' });
  });

  it.each([
    ['headers without end', (): string => `x-${Math.random()}: ${'y'.repeat(1_000)}\r\n`, 'HTTP/1.1 200 OK\r\n'],
    ['a header without end', (): string => 'y'.repeat(10_000), 'HTTP/1.1 200 OK\r\nx: '],
    ['hints without end', (): string => 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n', ''],
    ['trailers without end', (): string => `x: ${'y'.repeat(1_000)}\r\n`, 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n'],
    ['a chunk extension without end', (): string => 'y'.repeat(10_000), 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;'],
  ])('with %s is given up, and fills no memory', async (_what, piece, begin) => {
    site.respond = (request) => {
      const { socket } = request;
      socket.write(begin);
      const more = (): unknown => socket.destroyed || socket.write(piece(), () => setImmediate(more));
      socket.on('error', () => undefined);
      more();
    };
    const grown = await held(async () => expect(await site.get({ url: site.base, timeout_ms: 700 })).toMatchObject({ ok: false }));
    expect(grown).toBeLessThan(64 * MIB);
  });

  it('that drips does not outlast the time limit', async () => {
    site.respond = (_request, response) => {
      const timer = setInterval(() => response.write('x'), 20);
      response.on('close', () => clearInterval(timer));
    };
    expect(await site.get({ url: site.base, timeout_ms: 500 })).toMatchObject({ ok: false, error: 'timeout' });
  });

  it('that sends a body in chunks of one byte takes the memory of what is kept, and lets others work', async () => {
    site.respond = (request) => {
      const { socket } = request;
      socket.on('error', () => undefined);
      socket.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(300_000)}0\r\n\r\n`);
    };
    let grown = 0;
    const blocked = await longestBlock(async () => {
      grown = await held(async () => expect((await site.get({ url: site.base })).body).toHaveLength(300_000));
    });
    expect(grown).toBeLessThan(64 * MIB);
    expect(blocked).toBeLessThan(3_000);
  });

  it('with JSON that is nested without end gives a result that can be stored', async () => {
    for (const body of [`${'['.repeat(500_000)}${']'.repeat(500_000)}`, `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`]) {
      site.respond = (_request, response) => response.end(body);
      const answer = await site.get({ url: site.base, response_format: 'json' });
      expect(answer).toMatchObject({ ok: true, parse_error: expect.stringContaining('nested') as string });
      expect(() => JSON.stringify(answer)).not.toThrow();
    }
  });

  it.each([
    ['links', { format: 'text', include_links: true }],
    ['markdown', { format: 'markdown' }],
  ])('with a page that grows when it is read (%s) gives a bounded answer', async (_what, options) => {
    const base = `http://example.org/${'x'.repeat(4_000)}/`;
    site.respond = (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(`<base href="${base}">${Array.from({ length: 2_000 }, (_, i) => `<a href=${i}>x</a>`).join('')}`);
    expect(JSON.stringify(await site.get({ url: site.base, ...options })).length).toBeLessThan(3 * MIB);
  });
});
