#!/usr/bin/env node
// Does what docker/Dockerfile says, without Docker: its build steps in a clean copy of HEAD, its COPY lines into an empty folder, its
// ENTRYPOINT as another user who may write to the data folder only, its HEALTHCHECK, a turn, and its STOPSIGNAL. Takes some minutes.
//
//   node scripts/docker-check.mjs
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const work = mkdtempSync(join(tmpdir(), 'harness-image-'));
const [source, image, data] = ['src', 'image', 'data'].map((name) => join(work, name));
/** Somebody who owns nothing here, as the image's own user does not own its files. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
const say = (line) => process.stderr.write(`docker-check: ${line}\n`);

/** The instructions of a Dockerfile, in stages. */
function stagesOf(text) {
  const lines = text.replace(/^#.*$/gm, '').replace(/\\\n/g, ' ').split('\n');
  const instructions = lines.map((line) => /^(\w+)\s+(.*)$/.exec(line.trim())).filter((found) => found !== null);
  const stages = [];
  for (const [, name, rest] of instructions) {
    if (name === 'FROM') stages.push([]);
    stages.at(-1)?.push({ name, rest: rest.trim().replace(/\s+/g, ' ') });
  }
  return stages;
}

function run(command, cwd, env = process.env) {
  say(command);
  const { status } = spawnSync('sh', ['-c', command], { cwd, env, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new Error(`it ended with ${status}: ${command}`);
}

function build([, ...steps]) {
  mkdirSync(source);
  run(`git -C '${root}' archive HEAD | tar -x -C '${source}'`, work);
  for (const { name, rest } of steps) if (name === 'RUN' && !rest.includes('apt-get')) run(rest, source);
}

function assemble(steps) {
  for (const { name, rest } of steps) {
    if (name !== 'COPY') continue;
    const [, ...paths] = rest.split(' ');
    const to = paths.pop();
    for (const path of paths) {
      const from = join(source, path.replace(/^\/src\//, ''));
      cpSync(from, to.endsWith('/') ? join(image, to, basename(from)) : join(image, to), { recursive: true, verbatimSymlinks: true });
    }
  }
  if (existsSync(join(image, 'node_modules', 'typescript'))) throw new Error('tools of the build are in the image');
  run(`chmod -R a-w,a+rX '${image}'`, work);
}

const freePort = () =>
  new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

async function use(steps) {
  const arg = (wanted) => steps.find(({ name }) => name === wanted)?.rest ?? '';
  const env = Object.fromEntries([...arg('ENV').matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]));
  const port = await freePort();
  mkdirSync(data);
  chmodSync(work, 0o755);
  if (NOBODY.uid !== undefined) chownSync(data, NOBODY.uid, NOBODY.gid);
  const own = {
    ...env,
    PATH: process.env.PATH,
    HOME: data,
    HARNESS_DATA_DIR: data,
    HARNESS_HTTP_PORT: String(port),
    HARNESS_GATEWAY_PORT: '0',
  };
  const [, ...entry] = JSON.parse(arg('ENTRYPOINT'));
  const worker = spawn(process.execPath, entry, { cwd: image, env: own, stdio: ['ignore', 2, 2], ...NOBODY });
  const ended = new Promise((done) => worker.once('exit', (code, signal) => done(signal ?? code)));
  try {
    const [, ...check] = JSON.parse(
      arg('HEALTHCHECK')
        .replace(/^.*?CMD /, '')
        .replaceAll(env.HARNESS_HTTP_PORT, String(port)),
    );
    const healthy = () => spawnSync(process.execPath, check, { timeout: 10_000 }).status === 0;
    for (let tries = 0; !healthy(); tries += 1) {
      if (tries > 60) throw new Error('the worker did not become healthy');
      await new Promise((done) => setTimeout(done, 500));
    }
    say('healthy');
    const send = ['dist/apps/harness-cli/src/main.js', 'send', '/say it runs', '--provider', 'demo'];
    const { status, stdout, stderr } = spawnSync(process.execPath, send, { cwd: image, env: own, encoding: 'utf8', ...NOBODY });
    if (status !== 0 || stdout !== 'it runs\n') throw new Error(`send ended with ${status}: ${stdout}${stderr}`);
    say('a turn completed');
    worker.kill(arg('STOPSIGNAL'));
    const end = await ended;
    if (end !== 0) throw new Error(`${arg('STOPSIGNAL')} ended the worker with ${end}`);
    say('ended with 0');
  } finally {
    worker.kill('SIGKILL');
  }
}

try {
  const [first, second] = stagesOf(readFileSync(join(root, 'docker', 'Dockerfile'), 'utf8'));
  build(first);
  assemble(second);
  await use(second);
  say('all steps of docker/Dockerfile work');
} finally {
  run(`chmod -R u+w '${work}'`, tmpdir());
  rmSync(work, { recursive: true, force: true });
}
