import { type Disk, isDisk, jsonLines, readDisk } from '../support/disk.js';
import { crashFaults, sessionFaults } from '../support/invariants.js';
import {
  answerFaults,
  childFaults,
  contractFaults,
  countFaults,
  detachFaults,
  endFaults,
  eventFaults,
  jobFaults,
  repeatFaults,
  sendFaults,
  stopFaults,
} from './faults.js';
import { type CountLine, countsFile, type EventLine, eventsFile, type JobLine, jobsFile, type PlannedSend } from './protocol.js';

/** What the parent knows: every send that was tried, and what was answered. */
export interface Known {
  tried: readonly PlannedSend[];
  /** The turns that each key was answered with. */
  acked: ReadonlyMap<string, ReadonlySet<string>>;
  /** Jobs that were acknowledged, each series in its order. */
  enqueued: readonly JobLine[];
  /** Sessions whose stop was acknowledged, and whose turn at that time is their last. */
  stopped: ReadonlySet<string>;
}

/** Checks a data folder at rest, when every turn is over, from what is on disk alone; says what is broken. */
export function checkAtRest(dataDir: string, known: Known): string[] {
  const { disk, counts, events } = read(dataDir);
  return [
    ...(disk.integrity === 'ok' ? [] : [`the integrity check says ${disk.integrity}`]),
    ...disk.sessions.flatMap(sessionFaults),
    ...disk.sessions.flatMap(answerFaults),
    ...disk.sessions.flatMap(contractFaults),
    ...sendFaults(disk, known),
    ...repeatFaults(known),
    ...countFaults(disk, counts),
    ...eventFaults(disk, events),
    ...stopFaults(disk, known.stopped),
    ...childFaults(disk),
    ...detachFaults(disk),
    ...jobFaults(jsonLines<JobLine>(jobsFile(dataDir)), known.enqueued),
  ];
}

/** Checks what a death has left, before anything mends it: all that may never be otherwise, not even for a moment. */
export function checkAfterDeath(dataDir: string, known: Known): string[] {
  if (!isDisk(dataDir)) return known.acked.size === 0 ? [] : ['messages were acknowledged, but there is no database'];
  const { disk, counts, events } = read(dataDir);
  return [
    ...disk.sessions.flatMap(crashFaults),
    ...sendFaults(disk, known),
    ...repeatFaults(known),
    ...countFaults(disk, counts, 'open'),
    ...endFaults(disk, events),
  ];
}

const read = (dataDir: string): { disk: Disk; counts: CountLine[]; events: EventLine[] } => ({
  // What the probes and watchers wrote comes first: the disk must know of it, but may know more.
  counts: jsonLines<CountLine>(countsFile(dataDir)),
  events: jsonLines<EventLine>(eventsFile(dataDir)),
  disk: readDisk(dataDir),
});
