import { Isolate, type Load } from '../confine/index.js';

/** How to read a page. */
export interface PageOptions {
  html: string;
  url: string;
  format: 'markdown' | 'text';
  targetElements: readonly string[];
  excludedTags: readonly string[];
  filter: { type: 'pruning' | 'bm25'; query?: string; threshold?: number; minWords?: number } | null;
  links: boolean;
  media: boolean;
}
export interface PageLink {
  href: string;
  text: string;
}
export interface PageMedia {
  src: string;
  alt: string;
}
export interface Page {
  body: string;
  links?: { internal: PageLink[]; external: PageLink[] };
  media?: { images: PageMedia[]; videos: PageMedia[]; audios: PageMedia[] };
  /** True when any of it was cut: a page can hold much more than its size, where links repeat a long base. */
  page_truncated?: boolean;
}

const PAGE_MS = 5_000;

/** Turns a page into text for a reader, on a thread of its own and for a bounded time. @throws IsolateError */
export async function readPage(options: PageOptions, signal: AbortSignal, timeoutMs = PAGE_MS): Promise<Page> {
  const isolate = new Isolate(makePageReader, null);
  try {
    return await isolate.run(options, { timeoutMs, signal });
  } finally {
    await isolate.close();
  }
}

/** Self-contained: runs in an isolate. */
export function makePageReader(load: Load): (options: PageOptions) => Page {
  /** The little of the DOM that is used here. */
  interface Dom {
    readonly nodeType: number;
    readonly nodeName: string;
    textContent: string | null;
    readonly childNodes: Iterable<Dom>;
    readonly parentNode: Dom | null;
    querySelectorAll(selector: string): Iterable<Dom>;
    getAttribute(name: string): string | null;
    setAttribute(name: string, value: string): void;
    removeAttribute(name: string): void;
    appendChild(child: Dom): void;
    createElement(name: string): Dom;
    remove(): void;
  }
  const { parseHTML } = load('linkedom') as typeof import('linkedom');
  const Turndown = load('turndown') as typeof import('turndown');

  const NOISE = 'script,style,noscript,template,svg,canvas,iframe,object,embed,link,meta,dialog,button,select,input,textarea';
  const FURNITURE = 'nav,footer,aside,[role=navigation],[role=banner],[role=contentinfo],[aria-hidden=true],[hidden]';
  const BLOCKS = 'p,li,pre,blockquote,h1,h2,h3,h4,h5,h6,tr,dd,dt,figcaption';
  const BREAKS = new Set([
    'P',
    'DIV',
    'SECTION',
    'ARTICLE',
    'MAIN',
    'HEADER',
    'UL',
    'OL',
    'LI',
    'TABLE',
    'TR',
    'HR',
    'PRE',
    'BLOCKQUOTE',
    'H1',
    'H2',
    'H3',
    'H4',
    'H5',
    'H6',
    'DL',
    'DT',
    'DD',
    'FIGURE',
    'FORM',
  ]);

  /** Characters of a text, and of all links and media together. */
  const MAX_TEXT = 1_048_576;
  const MAX_PARTS = 262_144;

  const textIn = (node: Dom): string => (node.textContent ?? '').replace(/\s+/g, ' ').trim();
  const words = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  const absolute = (value: string, base: string): string | null => {
    try {
      const url = new URL(value, base);
      return url.protocol === 'http:' || url.protocol === 'https:' || url.protocol === 'mailto:' ? url.href : null;
    } catch {
      return null;
    }
  };

  const tableToMarkdown = (table: Dom): string => {
    const rows = [...table.querySelectorAll('tr')].map((row) =>
      [...row.querySelectorAll('th,td')].map((cell) => textIn(cell).replaceAll('|', '\\|')),
    );
    const width = Math.max(0, ...rows.map((row) => row.length));
    if (width === 0) return '';
    const line = (cells: string[]): string => `| ${Array.from({ length: width }, (_, i) => cells[i] ?? '').join(' | ')} |`;
    const [head = [], ...rest] = rows;
    return `\n\n${[line(head), line(Array<string>(width).fill('---')), ...rest.map(line)].join('\n')}\n\n`;
  };
  const toMarkdown = (root: Dom): string => {
    const turndown = new Turndown({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', hr: '---' });
    turndown.addRule('table', { filter: 'table', replacement: (_content, node) => tableToMarkdown(node as unknown as Dom) });
    turndown.addRule('empty link', {
      filter: (node) => node.nodeName === 'A' && node.getAttribute('href') === null,
      replacement: (content) => content,
    });
    return turndown.turndown(root as unknown as Parameters<InstanceType<typeof Turndown>['turndown']>[0]);
  };

  const toText = (root: Dom): string => {
    const out: string[] = [];
    const visit = (node: Dom, keep: boolean): void => {
      if (node.nodeType === 3) {
        out.push(keep ? (node.textContent ?? '') : (node.textContent ?? '').replace(/\s+/g, ' '));
        return;
      }
      if (node.nodeType !== 1) return;
      if (node.nodeName === 'BR') {
        out.push('\n');
        return;
      }
      const breaks = BREAKS.has(node.nodeName);
      if (breaks) out.push('\n');
      if (node.nodeName === 'TD' || node.nodeName === 'TH') out.push('\t');
      for (const child of node.childNodes) visit(child, keep || node.nodeName === 'PRE');
      if (breaks) out.push('\n');
    };
    visit(root, false);
    return out.join('');
  };

  const prune = (root: Dom, threshold: number, minWords: number): void => {
    const weights: { [tag: string]: number } = {
      ARTICLE: 1,
      MAIN: 1,
      P: 1,
      PRE: 1,
      BLOCKQUOTE: 1,
      TABLE: 1,
      SECTION: 0.7,
      UL: 0.6,
      OL: 0.7,
      DIV: 0.5,
      FORM: 0,
      HEADER: 0.4,
    };
    for (const block of [...root.querySelectorAll('article,main,p,pre,blockquote,table,section,ul,ol,div,form,header')]) {
      if (block.parentNode === null) continue;
      const text = textIn(block);
      const linked = [...block.querySelectorAll('a')].reduce((sum, link) => sum + textIn(link).length, 0);
      const count = words(text).length;
      const score =
        0.5 * (1 - Math.min(1, linked / Math.max(1, text.length))) + 0.3 * (weights[block.nodeName] ?? 0.5) + 0.2 * Math.min(1, count / 20);
      if (score < threshold || count < minWords) block.remove();
    }
  };

  const rank = (root: Dom, document: Dom, query: string, threshold: number): void => {
    const blocks = [...root.querySelectorAll(BLOCKS)]
      .map((node) => ({ node, terms: words(textIn(node)) }))
      .filter(({ terms }) => terms.length > 0);
    const wanted = [...new Set(words(query !== '' ? query : [...document.querySelectorAll('title,h1')].map(textIn).join(' ')))];
    const average = blocks.reduce((sum, block) => sum + block.terms.length, 0) / Math.max(1, blocks.length);
    const inBlocks = new Map(wanted.map((term) => [term, blocks.filter((block) => block.terms.includes(term)).length]));
    for (const { node, terms } of blocks) {
      let score = 0;
      for (const term of wanted) {
        const times = terms.filter((one) => one === term).length;
        const rarity = Math.log(1 + (blocks.length - (inBlocks.get(term) ?? 0) + 0.5) / ((inBlocks.get(term) ?? 0) + 0.5));
        score += (rarity * times * 2.2) / (times + 1.2 * (0.25 + (0.75 * terms.length) / Math.max(1, average)));
      }
      if (score < threshold) node.remove();
    }
  };

  return (options) => {
    const whole = /<html[\s>]/i.test(options.html) ? options.html : `<!doctype html><html><body>${options.html}</body></html>`;
    const document = parseHTML(whole).document as unknown as Dom & { body: Dom };
    const base = [...document.querySelectorAll('base[href]')][0]?.getAttribute('href') ?? '';
    const from = absolute(base, options.url) ?? options.url;
    const result: Page = { body: '' };
    let room = MAX_PARTS;
    const fits = (part: { href?: string; src?: string; text?: string; alt?: string }): boolean => {
      room -= Object.values(part).join('').length;
      if (room < 0) result.page_truncated = true;
      return room >= 0;
    };
    const hrefs = [...document.querySelectorAll('a[href]')];
    for (const link of hrefs) {
      const href = absolute(link.getAttribute('href') ?? '', from);
      if (href === null) link.removeAttribute('href');
      else link.setAttribute('href', href);
    }
    const sources = [...document.querySelectorAll('img,video,audio,source')];
    for (const one of sources) {
      const src = absolute(one.getAttribute('src') ?? '', from);
      if (src === null || one.getAttribute('src') === null) one.removeAttribute('src');
      else one.setAttribute('src', src);
    }
    if (options.links) {
      const host = new URL(options.url).host;
      const seen = new Set<string>();
      result.links = { internal: [], external: [] };
      for (const link of hrefs) {
        const href = link.getAttribute('href');
        if (href === null || href === '' || seen.has(href)) continue;
        seen.add(href);
        const part = { href, text: textIn(link).slice(0, 200) };
        if (!fits(part)) break;
        (new URL(href).host === host ? result.links.internal : result.links.external).push(part);
      }
    }
    if (options.media) {
      const all = (selector: string): PageMedia[] =>
        [...document.querySelectorAll(selector)]
          .filter((one) => one.getAttribute('src') !== null)
          .map((one) => ({ src: one.getAttribute('src') ?? '', alt: one.getAttribute('alt') ?? '' }))
          .filter(fits);
      result.media = { images: all('img[src]'), videos: all('video[src],video source[src]'), audios: all('audio[src],audio source[src]') };
    }
    for (const node of [...document.querySelectorAll(NOISE)]) node.remove();
    for (const selector of options.excludedTags) for (const node of [...document.querySelectorAll(selector)]) node.remove();
    let root: Dom = document.body;
    if (options.targetElements.length > 0) {
      const holder = document.createElement('div');
      for (const node of [...document.querySelectorAll(options.targetElements.join(','))])
        if (node.parentNode !== null) holder.appendChild(node);
      root = holder;
    } else {
      const all = textIn(root).length;
      const furniture = [...root.querySelectorAll(FURNITURE)];
      // A page that is nothing but its furniture is shown as it is.
      if (furniture.reduce((sum, node) => sum + textIn(node).length, 0) < all) for (const node of furniture) node.remove();
    }
    if (options.filter?.type === 'pruning') prune(root, options.filter.threshold ?? 0.48, options.filter.minWords ?? 0);
    if (options.filter?.type === 'bm25') rank(root, document, options.filter.query ?? '', options.filter.threshold ?? 1);
    const text = options.format === 'markdown' ? toMarkdown(root) : toText(root);
    result.body = text
      .replace(/[ \t]+\n/g, '\n')
      .replace(/\n[ \t]+(?=\n)/g, '\n')
      .replace(/\n{3,}/g, '\n\n')
      .trim();
    if (result.body.length > MAX_TEXT) {
      result.body = result.body.slice(0, MAX_TEXT).replace(/[\ud800-\udbff]$/, '');
      result.page_truncated = true;
    }
    return result;
  };
}
