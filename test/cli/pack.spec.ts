import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureBuilt, folder, ROOT } from './harness-cli.js';

beforeAll(ensureBuilt, 180_000);

const run = promisify(execFile);
interface Manifest {
  version: string;
  bin: { [name: string]: string };
  dependencies: { [name: string]: string };
}
const manifestOf = (folderOfPackage: string): Manifest =>
  JSON.parse(readFileSync(join(folderOfPackage, 'package.json'), 'utf8')) as Manifest;

/** Packs the checkout, and gives the path of the tarball. The build is fresh already, so no script has to run. */
async function pack(): Promise<string> {
  const target = folder();
  await run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', target], { cwd: ROOT });
  return join(target, readdirSync(target)[0] as string);
}

/** Unpacks a tarball as an installation does, among the packages that it names and no others. */
async function install(tarball: string): Promise<string> {
  const modules = join(folder(), 'node_modules');
  const own = join(modules, 'harness');
  mkdirSync(own, { recursive: true });
  await run('tar', ['xzf', tarball, '-C', own, '--strip-components=1']);
  for (const path of neededBy(own)) {
    const at = join(modules, path);
    mkdirSync(join(at, '..'), { recursive: true });
    symlinkSync(join(ROOT, 'node_modules', path), at);
  }
  return own;
}

interface Locked {
  packages: { [path: string]: { version?: string; dev?: boolean; peerDependencies?: { [name: string]: string } } };
}

const locked = (): Locked => JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Locked;

/** The packages at the top that an installation without development packages has, by the lock file. */
function neededBy(own: string): string[] {
  const { packages } = locked();
  const top = Object.entries(packages).flatMap(([path, { dev }]) => {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1];
    return name === undefined || dev === true || !existsSync(join(ROOT, path)) ? [] : name;
  });
  for (const name of Object.keys(manifestOf(own).dependencies)) expect(top).toContain(name);
  return top;
}

describe('the package', () => {
  it('has what it needs, and nothing else', async () => {
    const { stdout } = await run('tar', ['tzf', await pack()]);
    const files = stdout.trim().split('\n');
    const odd = files.filter((name) => !/^package\/(dist\/(apps|libs|node_modules)|libs\/prompts\/text|docs)\//.test(name));
    expect(odd.toSorted()).toEqual(['package/CHANGELOG.md', 'package/LICENSE', 'package/README.md', 'package/package.json']);
    expect(files.filter((name) => /\.(spec\.js|map|ts|tsbuildinfo)$|\/test\/|\/\.build-stamp$/.test(name))).toEqual([]);
    for (const [folderOfTexts, kind] of [
      ['libs/prompts/text', /\.md$/],
      ['docs', /\.md$/],
    ] as const) {
      for (const name of readdirSync(join(ROOT, folderOfTexts)).filter((file) => kind.test(file)))
        expect(files).toContain(`package/${folderOfTexts}/${name}`);
    }
    for (const path of Object.values(manifestOf(ROOT).bin)) expect(files).toContain(`package/${path.replace(/^\.\//, '')}`);
  });

  // `overrides` settle that in a checkout only; where a package is installed, npm looks for a tree without end.
  it('brings no package that wants another major version of Nest than its own', () => {
    const { packages } = locked();
    const wrong = Object.entries(packages).flatMap(([path, { dev, peerDependencies = {} }]) =>
      Object.entries(peerDependencies).flatMap(([name, range]) => {
        const major = packages[`node_modules/${name}`]?.version?.split('.')[0];
        if (dev === true || !name.startsWith('@nestjs/') || major === undefined) return [];
        return range === '*' || new RegExp(`(^|[^.\\d])${major}(\\.|$|\\s)`).test(range) ? [] : `${path}: ${name} ${range}`;
      }),
    );
    expect(wrong).toEqual([]);
  });

  it('gives both programs, which run far from the checkout', async () => {
    const own = await install(await pack());
    const { bin, version } = manifestOf(own);
    const [home, work] = [folder(), folder()];
    const start = (name: string, argv: string[]): Promise<{ stdout: string; stderr: string }> =>
      run(join(own, bin[name] as string), argv, { cwd: work, env: { PATH: process.env['PATH'], HOME: home } });

    expect((await start('harness', ['--version'])).stdout).toBe(`${version}\n`);
    expect((await start('harness', ['--help'])).stdout).toMatch(/Run the worker in the foreground/);
    expect((await start('harness-cli', ['--help'])).stdout).toMatch(/send[\s\S]*serve[\s\S]*doctor/);
    expect(readdirSync(home)).toEqual([]);

    writeFileSync(join(work, 'README.md'), '# Sundial\n\nA clock that needs no power.\n');
    const globs = ['--allow', 'coder::*', 'engine::functions::*', 'shell::exec'];
    const sent = await start('harness-cli', [
      'send',
      '--provider',
      'demo',
      ...globs,
      '--',
      'read README.md and tell me what this project is',
    ]);
    expect(sent.stdout).toMatch(/Sundial[\s\S]*A clock that needs no power/);
    expect(sent.stderr).toMatch(/\ncompleted · \d+ steps · [2-9] calls · .* · session s_\w+\n$/);
    const script = ['/call coder::search {"query":"power"}', '/call shell::exec {"command":"echo","args":["from the shell"]}'].join('\n');
    const called = await start('harness-cli', ['send', '--provider', 'demo', '--json', ...globs, '--', script]);
    expect(called.stdout.match(/"type":"call_finished".*?"outcome":"ok"/g)).toHaveLength(2);
    expect(existsSync(join(home, '.local/share/harness/harness.db'))).toBe(true);
  }, 120_000);
});
