import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import picomatch from 'picomatch';
import { describe, expect, it } from 'vitest';
import { scenarios } from '#libs/conformance';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const FOLDERS = 'apps|libs|docs|test|scripts|bench|docker|\\.ci';

/** What a page claims of the repository: paths (relative to the root), linked files (relative to the page), npm scripts. */
interface Claims {
  paths: string[];
  links: string[];
  scripts: string[];
}

const all = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map((found) => found[1] ?? '');

function claimsOf(markdown: string): Claims {
  const withoutFences = markdown.replace(/^(```|~~~)[\s\S]*?^\1/gm, '');
  const spans = all(withoutFences, /`([^`\n]+)`/g);
  // A place-holder such as <name> or NAME in a path stands for many files, so only what comes before it is a claim.
  const paths = spans.flatMap((span) => all(span, new RegExp(`(?:^|\\s)((?:${FOLDERS})/[^\\s:,;]*)`, 'g'))).map(upToPlaceholder);
  const links = all(withoutFences, /\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)/g);
  const named = all(markdown, /npm run (?:--?[a-z]+ )*([a-z][\w:-]*)/g);
  const short = /\bnpm (?:test|t)\b/.test(markdown) ? ['test'] : [];
  return { paths: [...new Set(paths)], links: [...new Set(links)], scripts: [...new Set([...named, ...short])] };
}

const upToPlaceholder = (path: string): string => {
  const parts = path.replace(/\.$/, '').split('/');
  const first = parts.findIndex((part) => /[<>{}[\]…]|\.\.\.|^[A-Z_]+$/.test(part));
  return (first < 0 ? parts : parts.slice(0, first)).join('/');
};

/** All files of a folder of the repository, relative to the root. */
const filesOf = (folder: string): string[] =>
  existsSync(join(root, folder))
    ? readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${String(name).replaceAll('\\', '/')}`)
    : [];

function exists(path: string): boolean {
  if (/[*?]/.test(path)) {
    const matches = picomatch(path, { dot: true });
    return filesOf(path.split('/')[0] ?? '').some((file) => matches(file));
  }
  return existsSync(join(root, path)); // a file with a slash after it is not there
}

const scripts = Object.keys((JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object }).scripts);
const pages = ['README.md', 'CONTRIBUTING.md', 'AGENTS.md', ...filesOf('docs').filter((file) => file.endsWith('.md'))].filter(exists);

describe('what the pages claim of the repository', () => {
  it('has pages to look at', () => expect(pages).toContain('CONTRIBUTING.md'));

  it.each(pages)('%s names only paths, files and npm scripts that are there', (page) => {
    const claims = claimsOf(readFileSync(join(root, page), 'utf8'));
    expect({
      paths: claims.paths.filter((path) => !exists(path)),
      links: claims.links.filter((link) => !existsSync(join(root, dirname(page), decodeURIComponent(link)))),
      scripts: claims.scripts.filter((script) => !scripts.includes(script)),
    }).toEqual({ paths: [], links: [], scripts: [] });
  });
});

describe('what docs/RUNTIMES.md says of conformance', () => {
  const page = readFileSync(join(root, 'docs/RUNTIMES.md'), 'utf8');

  it('lists the scenarios as they are', () => {
    expect(all(page, /^(\| `[a-z-]+` \| .+ \|)$/gm).filter((row) => !row.includes('.ts'))).toEqual(
      scenarios.map(({ id, title }) => `| \`${id}\` | ${title} |`),
    );
  });
});

describe('claimsOf', () => {
  it('finds paths in code spans, also after a command and before a place-holder', () => {
    const text =
      'See `libs/iii/src/bus.ts`, `node scripts/ensure.mjs build`, `libs/local/src/<name>/x.ts`, `test/**/*.spec.ts` and `docs/`.';
    expect(claimsOf(text).paths).toEqual(['libs/iii/src/bus.ts', 'scripts/ensure.mjs', 'libs/local/src', 'test/**/*.spec.ts', 'docs/']);
  });

  it('takes no path from a fence, from prose or from the middle of another path', () => {
    expect(claimsOf('libs/a is prose\n```\n`libs/b`\n```\n`dist/libs/c` `coder::libs/d`').paths).toEqual([]);
  });

  it('finds relative links and leaves others', () => {
    expect(claimsOf('[a](docs/a.md#part) [b](https://x.y/z) [c](#c) ![d](d.png)').links).toEqual(['docs/a.md', 'd.png']);
  });

  it('finds npm scripts everywhere, with and without flags', () => {
    expect(claimsOf('`npm run check` npm test\n```sh\nnpm run --silent test:crash\n```').scripts).toEqual(['check', 'test:crash', 'test']);
  });

  it('knows a path that is not there', () => {
    expect(exists('libs/nothing')).toBe(false);
    expect(exists('libs/*/nothing.ts')).toBe(false);
    expect(exists('libs/iii/src/bus.ts/')).toBe(false);
    expect(exists('libs/*/src/index.ts')).toBe(true);
  });
});
