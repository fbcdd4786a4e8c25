// Copies what the CLI uses of its command framework into dist/node_modules, where Node finds it before any other.
//
// An installed package cannot bring it as a dependency: one of its own packages asks for an older Nest than ours, "overrides" count
// in a checkout only, and npm, left to itself, exchanges the two for ever.
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The framework and what it loads, each with the folder of its code. */
const PACKAGES = [
  { name: 'nest-commander', code: 'src' },
  { name: '@golevelup/nestjs-discovery', code: 'lib' },
  { name: 'commander', code: 'lib' },
];
const FRAMEWORK = 'nest-commander';
const KEPT = /(\.m?js|^LICENSE|^package\.json)$/;

function folderOf(name, from) {
  for (let folder = dirname(from.resolve(name)); ; folder = dirname(folder)) {
    const found = readName(join(folder, 'package.json'));
    if (found === name) return folder;
    if (folder === dirname(folder)) throw new Error(`${name} has no package.json above its code`);
  }
}

function readName(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).name;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Makes `<root>/dist/node_modules` anew. */
export function vendor(root) {
  const own = createRequire(join(root, 'package.json'));
  const framework = createRequire(own.resolve(FRAMEWORK));
  const [target, draft] = [join(root, 'dist', 'node_modules'), join(root, 'dist', '.node_modules')];
  rmSync(draft, { recursive: true, force: true });
  for (const { name, code } of PACKAGES) {
    const source = folderOf(name, name === FRAMEWORK ? own : framework);
    mkdirSync(join(draft, name), { recursive: true });
    cpSync(source, join(draft, name), {
      recursive: true,
      filter: (path) => {
        const [top = ''] = path.slice(source.length + 1).split(/[\\/]/);
        if (statSync(path).isDirectory()) return top === '' || top === code;
        return KEPT.test(path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1));
      },
    });
  }
  rmSync(target, { recursive: true, force: true });
  renameSync(draft, target);
}
