import { describe, expect, it } from 'vitest';
import { load } from '../confine/index.js';
import { longestBlock } from '../confine/test/app.js';
import { makePageReader, type PageOptions, readPage } from './page.js';

const reader = makePageReader(load);
const page = (html: string, options: Partial<PageOptions> = {}): ReturnType<typeof reader> =>
  reader({
    html,
    url: 'https://example.org/a/page',
    format: 'markdown',
    targetElements: [],
    excludedTags: [],
    filter: null,
    links: false,
    media: false,
    ...options,
  });

describe('readPage', () => {
  it('makes markdown of what a reader sees', () => {
    const { body } =
      page(`<html><head><title>T</title><style>p{}</style></head><body><nav><a href="/x">Menu</a></nav><script>alert(1)</script>
      <main><h1>Head</h1><p>Text with <a href="../b?q=1">a link</a>, <b>bold</b> and <code>code</code>.</p><ul><li>one</li><li>two</li></ul>
      <pre><code>x  =  1
y</code></pre><table><tr><th>A</th><th>B|C</th></tr><tr><td>1</td><td>2</td></tr></table><a href="javascript:alert(1)">bad</a>
      <img src="data:image/png;base64,AAAA" alt="dot"></main><footer>Foot</footer></body></html>`);
    expect(body).toContain('# Head');
    expect(body).toContain('Text with [a link](https://example.org/b?q=1), **bold** and `code`.');
    expect(body).toMatch(/- {3}one\n- {3}two/);
    expect(body).toContain('```\nx  =  1\ny\n```');
    expect(body).toContain('| A | B\\|C |\n| --- | --- |\n| 1 | 2 |');
    for (const noise of ['Menu', 'alert', 'Foot', 'p{}', 'javascript', 'base64']) expect(body).not.toContain(noise);
  });

  it('makes text with lines where a reader sees them', () => {
    expect(page('<div>a  b<br>c</div><p>d</p><pre>  e\n  f</pre><noscript>no</noscript>', { format: 'text' }).body).toBe(
      'a b\nc\n\nd\n\n  e\n  f',
    );
  });

  it('shows a page that is nothing but its furniture', () => {
    expect(page('<nav><a href="/x">Only</a></nav>').body).toBe('[Only](https://example.org/x)');
  });

  it('keeps the parts that are asked for', () => {
    const html = '<div class="a">first</div><div id="b">second <em>part</em></div><p>third</p>';
    expect(page(html, { targetElements: ['#b', '.a'] }).body).toMatch(/^first\n\nsecond _part_$/);
    expect(page(html, { excludedTags: ['#b'] }).body).not.toContain('second');
    expect(page(html, { targetElements: ['.none'] }).body).toBe('');
  });

  it('lists links and media with whole addresses', () => {
    const { links, media } = page(
      '<base href="https://cdn.example.org/"><a href="/in">In</a><a href="https://example.org/home">Home</a><a href="https://example.org/home">Again</a><a href="mailto:a@b.c">M</a><img src="i.png" alt="I"><video src="https://v.example/v.mp4"></video>',
      { links: true, media: true },
    );
    expect(links?.internal).toEqual([{ href: 'https://example.org/home', text: 'Home' }]);
    expect(links?.external.map((l) => l.href)).toEqual(['https://cdn.example.org/in', 'mailto:a@b.c']);
    expect(media).toEqual({
      images: [{ src: 'https://cdn.example.org/i.png', alt: 'I' }],
      videos: [{ src: 'https://v.example/v.mp4', alt: '' }],
      audios: [],
    });
  });

  it('filters by density and by words', () => {
    const words = 'The quick brown fox jumps over the lazy dog while nobody looks at what it does all day long in the field. ';
    const html = `<h1>Foxes</h1><p>${words}</p><ul><li><a href="/1">One</a></li><li><a href="/2">Two</a></li></ul><p>Cats sleep.</p>`;
    const pruned = page(html, { filter: { type: 'pruning' } }).body;
    expect(pruned).toContain('quick brown fox');
    expect(pruned).not.toContain('One');
    const ranked = page(html, { filter: { type: 'bm25', query: 'cats', threshold: 0.5 } }).body;
    expect(ranked).toBe('Cats sleep.');
  });

  it('reads odd pages', () => {
    expect(page('').body).toBe('');
    expect(page('plain text').body).toBe('plain text');
    expect(page('<p>unclosed <b>bold').body).toBe('unclosed **bold**');
    expect(page('<HTML><BODY><P>Upper</P></BODY></HTML>').body).toBe('Upper');
  });

  it('neither blocks this thread nor kills it on hostile pages', async () => {
    const options = (html: string): PageOptions => ({
      html,
      url: 'https://example.org/',
      format: 'markdown',
      targetElements: [],
      excludedTags: [],
      filter: null,
      links: false,
      media: false,
    });
    const blocked = await longestBlock(async () => {
      await Promise.allSettled([
        readPage(options('<div>'.repeat(3_000)), new AbortController().signal, 800),
        readPage(options('<table><tr><td>'.repeat(3_000)), new AbortController().signal, 800),
      ]);
      const big = await readPage(options('<p>word <b>bold</b></p>'.repeat(15_000)), new AbortController().signal, 15_000);
      expect(big.body.length).toBeGreaterThan(200_000);
    });
    expect(blocked).toBeLessThan(100);
  });
});
