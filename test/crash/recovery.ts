import { Folder } from './folder.js';
import { Life } from './life.js';

/** Compares the time from a SIGKILL in mid-call to the completed turn with a bare start of a worker. */
export async function recoverySpeed(rounds: number): Promise<string> {
  const bare: number[] = [];
  const recovered: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const folder = new Folder();
    const { dataDir } = folder;
    const first = new Life({ dataDir, role: 'worker', sends: [{ session_id: 's', text: 'hang s 1', key: 'k1' }] });
    await first.line('hanging');
    const killedAt = performance.now();
    first.kill();
    const second = new Life({ dataDir, role: 'worker', sends: [] });
    await second.ended;
    recovered.push(performance.now() - killedAt);
    const idle = new Life({ dataDir, role: 'worker', sends: [] });
    await idle.ended;
    bare.push(performance.now() - idle.startedAt);
    folder.remove();
  }
  const [slow, base] = [median(recovered), median(bare)];
  return `recovery: from SIGKILL in mid-call to the end of the turn ${slow.toFixed(0)} ms, bare start and end of a worker ${base.toFixed(0)} ms, ratio ${(slow / base).toFixed(2)}`;
}

const median = (values: number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
