import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { CoderModule } from '../../../libs/local/src/coder/index.js';
import { startApp, type TestApp } from '../../../libs/local/src/confine/test/app.js';

/** How often a race is run; a longer run sets it through the environment. */
export const ROUNDS = Number(process.env['ATTACK_ROUNDS'] ?? 20);
/** What no answer may ever hold. */
export const SECRET = 'BYTES-FROM-OUTSIDE';

/** A root with a folder that is closed, and a folder outside, each with `a.txt`; what is not to be had holds `SECRET`. */
export interface Arena {
  readonly app: TestApp;
  readonly root: string;
  readonly outside: string;
  readonly closed: string;
  close(): Promise<void>;
}

/** Starts the file functions over a fresh arena. */
export async function openArena(): Promise<Arena> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'arena-')));
  const [root, outside] = [join(base, 'root'), join(base, 'root-outside')];
  const closed = join(root, 'data');
  for (const folder of [root, outside, closed, join(root, 'flip')]) mkdirSync(folder);
  for (const folder of [outside, closed]) writeFileSync(join(folder, 'a.txt'), `${SECRET}\n`);
  writeFileSync(join(root, 'flip', 'a.txt'), 'inside\n');
  const app = await startApp(CoderModule);
  Object.assign(app.values, { root, closed_folders: [closed] });
  return {
    app,
    root,
    outside,
    closed,
    close: async () => {
      await app.close();
      rmSync(base, { recursive: true, force: true });
    },
  };
}

const SWAPPER = `
const { renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } = require('node:fs');
const [root, target] = process.argv.slice(1);
process.chdir(root);
let swaps = 0, ending = false;
process.stdin.on('data', () => (ending = true)).on('end', () => process.exit());
const swap = () => {
  renameSync('flip', 'kept'); symlinkSync(target, 'flip'); unlinkSync('flip'); renameSync('kept', 'flip');
  symlinkSync(target + '/a.txt', 'link'); renameSync('link', 'a.txt');
  writeFileSync('plain', 'inside\\n'); renameSync('plain', 'a.txt');
};
// The other side may have made the folder anew while it was away.
const repair = () => { try { rmSync('flip', { recursive: true, force: true }); renameSync('kept', 'flip'); } catch {} };
const turn = () => {
  for (let i = 0; i < 20; i++, swaps++) try { swap(); } catch { repair(); }
  if (!ending) return setImmediate(turn);
  process.stdout.write(String(swaps), () => process.exit());
};
process.stdout.write('ready', turn);
`;

/** A process that swaps the folder `flip` and the file `a.txt` of the root for links to `target` as fast as it can. */
export class Swapper {
  private constructor(private readonly child: ChildProcessByStdio<Writable, Readable, null>) {}

  static async start(root: string, target: string): Promise<Swapper> {
    const child = spawn(process.execPath, ['-e', SWAPPER, root, target], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    return new Swapper(child);
  }

  /** Ends it; gives how often it swapped. */
  async stop(): Promise<number> {
    const said = once(this.child.stdout, 'data');
    this.child.stdin.write('end');
    return Number(String((await said)[0]));
  }
}
