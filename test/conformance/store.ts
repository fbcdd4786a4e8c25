import type { Bus } from '#libs/iii';
import type { Journal, StepQueue, Transcript, TurnEvent, Write } from '#libs/turn';

/** A class that implements a port. */
export type Implementation = abstract new (...parameters: never[]) => object;

/** One process that works on a store. */
export interface StoreProcess {
  journal: Journal;
  transcript: Transcript;
  queue: StepQueue;
  /** A bus with the session store on it. */
  bus: Bus;
  /** What went wrong in its background. */
  reports: readonly string[];
  /** Is told of the events of turns as a bound function is; an event whose delivery it refuses is not taken. */
  hear(listener: (event: TurnEvent) => void | Promise<void>): void;
}

/** The durable state of a test, with the processes that work on it. */
export interface TestedStore {
  /** Another process on the same state. */
  open(): Promise<StoreProcess>;
  /** Ends a process as SIGKILL does: nothing of it is written any more, nobody is told, and others can find that out. */
  kill(process: StoreProcess): Promise<void>;
  /** Ends all processes and removes the state. */
  dispose(): Promise<void>;
}

/** What differs among stores, and is stated by each; everything else is the same for all. */
export interface Abilities {
  /** How many processes may work on it at a time. */
  processes: 'one' | 'many';
  /** A queued step belongs to the process that queued it, until that is gone. Without it any process may run any step. */
  ownedSteps: boolean;
  /** What a window tells of its entries: all, or what a model needs of them, without revision and parent. */
  windowTells: 'entries' | 'messages';
}

/** What makes stores of one kind, for the suites of the ports that they implement. */
export interface StoreAdapter {
  /** What the store is, for the names of the tests. */
  name: string;
  /** Which implementations of ports its processes have. */
  covers: readonly Implementation[];
  abilities: Abilities;
  /** Makes an empty store. */
  make(): Promise<TestedStore>;
  /**
   * For a journal: cuts a commit off after each of its effects in turn. Each time `prepare` has been committed before; what is given is the store as it
   * is found after the cut, without a process, and it is the receiver's to dispose of. The last one holds the commit as a whole.
   */
  cutOff?(prepare: readonly Write[], commit: readonly Write[]): AsyncIterable<TestedStore>;
}
