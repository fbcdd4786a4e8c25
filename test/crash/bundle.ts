import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'vite';
import { Life } from './life.js';

/** Compiled code, and the SDKs of vendors, which no test uses: these stay outside of the bundle. */
const OUTSIDE = ['better-sqlite3', '@anthropic-ai/sdk', 'openai', 'undici', 'linkedom', 'turndown', 'iii-sdk', 'ws', 'bullmq', 'ioredis'];

const NOT_ASCII = /[\u0080-\uffff]/g;
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;

/**
 * Puts the worker and all that it loads into one file, and keeps its compiled code: most of a start is the loading of 1,800
 * modules, and thousands of processes are started. Nothing else about them differs from those of the product.
 */
export async function bundleWorker(): Promise<void> {
  await build({
    configFile: false,
    logLevel: 'silent',
    root: import.meta.dirname,
    ssr: { noExternal: true, external: OUTSIDE },
    build: {
      ssr: join(import.meta.dirname, 'worker.js'),
      outDir: join(import.meta.dirname, 'bundle'),
      emptyOutDir: true,
      target: 'node20',
      minify: false,

      rolldownOptions: { output: { format: 'cjs', entryFileNames: 'worker.cjs', codeSplitting: false } },
    },
  });
  writeFileSync(Life.bundle, readFileSync(Life.bundle, 'utf8').replace(NOT_ASCII, escaped));
  const dataDir = mkdtempSync(join(tmpdir(), 'harness-crash-first-'));
  const sends = ['tools', 'spawn', 'text'].map((kind) => ({ session_id: kind, text: `${kind} ${kind} 1`, key: kind }));
  const first = new Life({ dataDir, role: 'worker', sends }, { keep: true });
  const { code } = await first.ended;
  rmSync(dataDir, { recursive: true });
  if (code !== 0) throw new Error(`the bundled worker does not work: ${first.stderr}`);
}
