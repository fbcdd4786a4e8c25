import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
/** A build of its own, so that no test depends on when `dist` was built, and none changes it under another one. */
const OUT = join(root, 'node_modules', '.cache', 'harness-tools');

/** Builds the programs that tests start as processes, unless the last build is of the same sources; returns its folder. */
export async function buildTools(): Promise<string> {
  const { withLock } = (await import('../../scripts/lock.mjs' as string)) as {
    withLock: (folder: string, say: () => void, work: () => Promise<void>) => Promise<void>;
  };
  mkdirSync(dirname(OUT), { recursive: true });
  await withLock(`${OUT}.lock`, () => undefined, build);
  return OUT;
}

async function build(): Promise<void> {
  const stamp = join(OUT, '.stamp');
  const key = sourceKey();
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === key) return;
  rmSync(stamp, { force: true });
  mkdirSync(OUT, { recursive: true });
  const tsc = join(root, 'node_modules', 'typescript-7', 'bin', 'tsc');
  await promisify(execFile)(process.execPath, [tsc, '-p', 'tsconfig.tools.json', '--outDir', OUT, '--sourceMap', 'false'], { cwd: root });
  writeFileSync(join(OUT, 'package.json'), JSON.stringify({ type: 'module', imports: { '#libs/*': './libs/*/src/index.js' } }));
  writeFileSync(stamp, key);
}

function sourceKey(): string {
  const hash = createHash('sha256');
  for (const folder of ['libs', 'test', 'bench']) {
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).sort()) {
      if (/\.c?ts$/.test(name) && !name.endsWith('.spec.ts')) hash.update(name).update(readFileSync(join(root, folder, name)));
    }
  }
  return hash
    .update(readFileSync(join(root, 'tsconfig.tools.json')))
    .update(readFileSync(join(root, 'tsconfig.json')))
    .digest('hex');
}
