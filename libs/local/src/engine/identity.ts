import { HarnessError, harnessFunctions } from '#libs/contracts';
import type { SdkBus } from '#libs/iii';
import { type Registered, registered } from './directory.js';
import { type Patience, waitUntil } from './reach.js';

/** How long the functions of a worker that has gone may still be there, in ms. */
const LEAVE_MS = 15_000;
/** How long an engine may take to know the name of a worker that it has functions of, in ms. */
const NAMED_MS = 5_000;
const IDS = Object.keys(harnessFunctions);

const otherOf = (found: ReadonlyMap<string, Registered>, bus: SdkBus): Registered | undefined =>
  [...found.values()].find(({ worker_name }) => worker_name !== bus.name);

/** The first of our functions that the engine does not have. Throws `harness/duplicate` when another worker has one. */
function missingOf(found: ReadonlyMap<string, Registered>, bus: SdkBus): string | undefined {
  const other = otherOf(found, bus);
  if (other !== undefined) throw duplicate(other.worker_name);
  return IDS.find((id) => !found.has(id));
}

const duplicate = (other: string): HarnessError =>
  new HarnessError(
    'harness/duplicate',
    `the engine has a harness already: the worker ${other} has registered harness::*. An engine calls one worker for each function, so a ` +
      `second one would never be asked; stop the other one first`,
  );

/** Waits, for a while, until no other worker has our functions: one that was killed leaves a moment later. Throws `harness/duplicate`. */
export async function refuseSecond(bus: SdkBus, patience: Patience): Promise<void> {
  const until = Date.now() + LEAVE_MS;
  await waitUntil(async () => {
    const other = otherOf(await registered(bus, IDS), bus);
    if (other === undefined) return null;
    if (Date.now() >= until) throw duplicate(other.worker_name);
    return `the worker ${other.worker_name}, which has registered harness::*, to leave`;
  }, patience);
}

/**
 * Waits until the engine has taken our functions. Throws `harness/duplicate` when another worker has them and keeps them: right after it is back, an
 * engine does not know yet what the worker is called that has registered them.
 */
export async function becomeOurs(bus: SdkBus, patience: Patience): Promise<void> {
  const until = Date.now() + NAMED_MS;
  await waitUntil(async () => {
    const found = await registered(bus, IDS);
    if (otherOf(found, bus) !== undefined && Date.now() < until) return 'the engine to know this worker by its name';
    const missing = missingOf(found, bus);
    return missing === undefined ? null : `the engine to take ${missing} of this worker`;
  }, patience);
}

/** Makes sure that the functions of a harness are ours. Throws `harness/duplicate` when another worker came first, and as `Bus.trigger`. */
export async function checkOurs(bus: SdkBus): Promise<void> {
  const missing = missingOf(await registered(bus, IDS), bus);
  if (missing !== undefined) throw new HarnessError('harness/not_registered', `the engine does not have ${missing} of this worker`);
}
