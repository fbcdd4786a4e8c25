#!/usr/bin/env node
// Brings the checkout into a state in which it can run: packages installed, sources built. Does nothing when it is so already.
//
//   node scripts/ensure.mjs [install|build]      build (the default) includes install
//
// Prints one line per thing done, on stderr, so that the output of a command that follows stays its own.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withLock } from './lock.mjs';
import { vendor } from './vendor.mjs';

const NODE_MINIMUM = [20, 19];
const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const at = (...parts) => join(root, ...parts);
const say = (line) => process.stderr.write(`ensure: ${line}\n`);

class Failure extends Error {}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const [needMajor, needMinor] = NODE_MINIMUM;
  if (major > needMajor || (major === needMajor && minor >= needMinor)) return;
  throw new Failure(
    `Node ${NODE_MINIMUM.join('.')} or newer is needed, this is ${process.versions.node}. Install a newer one from https://nodejs.org.`,
  );
}

const readText = (path) => (existsSync(path) ? readFileSync(path, 'utf8') : null);
const sha256 = (text) => createHash('sha256').update(text).digest('hex');

/** Runs a command with its output on stderr; a failure ends the set-up. */
function run(title, command, args, env = process.env) {
  const started = Date.now();
  const { status, signal, error } = spawnSync(command, args, { cwd: root, env, stdio: ['ignore', 2, 2] });
  if (error) throw new Failure(`${title} could not start: ${error.message}`);
  if (status !== 0) throw new Failure(`${title} failed (${signal ?? `exit code ${status}`}), see above`);
  say(`${title} done in ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

const installStamp = () => at('node_modules', '.install-stamp');
/** Packages hold native code, so they also belong to one Node ABI and one kind of machine. */
const installKey = () => `${sha256(readFileSync(at('package-lock.json')))} ${process.versions.modules} ${process.platform} ${process.arch}`;

/** True when npm's own record of node_modules holds what the lock file asks for (someone ran npm by hand). */
function installedByHand() {
  const record = readText(at('node_modules', '.package-lock.json'));
  if (record === null) return false;
  const present = JSON.parse(record).packages ?? {};
  const wanted = JSON.parse(readFileSync(at('package-lock.json'), 'utf8')).packages ?? {};
  return Object.entries(wanted).every(
    ([path, entry]) => path === '' || (path in present ? present[path].integrity === entry.integrity : entry.optional === true),
  );
}

function isInstalled() {
  const stamp = readText(installStamp());
  if (stamp === installKey()) return true;
  const ofAnotherNode = stamp !== null && stamp.split(' ').slice(1).join(' ') !== installKey().split(' ').slice(1).join(' ');
  return !ofAnotherNode && installedByHand();
}

const onPath = (name) => (process.env.PATH ?? '').split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, name)));

/** Native code is compiled against the headers that came with this Node, where there are some, instead of a download. */
function ownHeaders() {
  const prefix = dirname(dirname(process.execPath));
  const given = Object.keys(process.env).some((name) => name.toLowerCase() === 'npm_config_nodedir');
  return !given && existsSync(join(prefix, 'include', 'node', 'node_api.h')) ? { npm_config_nodedir: prefix } : {};
}

function install() {
  if (!isInstalled()) {
    const cached = process.platform !== 'win32' && onPath('ccache');
    const compilers = cached ? { CC: process.env.CC ?? 'ccache gcc', CXX: process.env.CXX ?? 'ccache g++' } : {};
    say(`installing packages (npm ci${cached ? ', with ccache' : ''}); the first time takes a minute or two`);
    rmSync(installStamp(), { force: true });
    const npm = process.platform === 'win32' ? ['cmd.exe', ['/d', '/s', '/c', 'npm.cmd']] : ['npm', []];
    run('npm ci', npm[0], [...npm[1], 'ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], {
      ...process.env,
      ...compilers,
      ...ownHeaders(),
    });
  }
  if (readText(installStamp()) !== installKey()) writeFileSync(installStamp(), installKey());
}

const buildStamp = () => at('dist', '.build-stamp');
const SOURCES = ['apps', 'libs'];
const BUILD_FILES = ['package.json', 'package-lock.json', 'nest-cli.json', 'tsconfig.json', 'scripts/vendor.mjs'];
const isSource = (name) => /\.(ts|json)$/.test(name) && !name.endsWith('.spec.ts');

function filesUnder(folder, wanted) {
  if (!existsSync(at(folder))) return [];
  return readdirSync(at(folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : filesUnder(path, wanted);
      return wanted(entry.name) ? [path] : [];
    });
}

/** A hash of all that the build reads, so that neither a clone nor a switch of branches fools it. */
function buildKey() {
  const hash = createHash('sha256');
  for (const path of [...BUILD_FILES, ...SOURCES.flatMap((folder) => filesUnder(folder, isSource))]) {
    hash
      .update(`${path}\0`)
      .update(readFileSync(at(path)))
      .update('\0');
  }
  return hash.digest('hex');
}

const binaries = () => Object.values(JSON.parse(readFileSync(at('package.json'), 'utf8')).bin);
const isBuilt = (key) =>
  readText(buildStamp()) === key && existsSync(at('dist', 'node_modules')) && binaries().every((path) => existsSync(at(path)));

/** Removes what an earlier build left of sources that are gone. */
function prune() {
  for (const path of filesUnder('dist', (name) => /\.js(\.map)?$/.test(name))) {
    if (!existsSync(at(path.replace(/^dist\//, '').replace(/\.js(\.map)?$/, '.ts')))) rmSync(at(path));
  }
}

function build() {
  const key = buildKey();
  if (isBuilt(key)) return;
  rmSync(buildStamp(), { force: true });
  run('build', process.execPath, [at('node_modules', '@nestjs', 'cli', 'bin', 'nest.js'), 'build', 'harness', 'harness-cli']);
  prune();
  vendor(root);
  for (const path of binaries()) chmodSync(at(path), 0o755);
  writeFileSync(buildStamp(), key);
}

const isReady = (goal) => isInstalled() && readText(installStamp()) === installKey() && (goal === 'install' || isBuilt(buildKey()));

async function main() {
  const goal = process.argv[2] ?? 'build';
  if (goal !== 'install' && goal !== 'build') throw new Failure(`"${goal}" is not known; use install or build`);
  checkNode();
  if (isReady(goal)) return;
  await withLock(at('.ensure.lock'), say, () => {
    install();
    if (goal === 'build') build();
  });
}

main().catch((error) => {
  say(error instanceof Failure ? error.message : (error?.stack ?? String(error)));
  process.exitCode = 1;
});
