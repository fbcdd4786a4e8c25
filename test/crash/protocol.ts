/** A send that a worker is told to do; the key makes it safe to tell it twice. */
export interface PlannedSend {
  session_id: string;
  text: string;
  key: string;
  /** The answer has to be JSON of this contract: `{"answer": <integer>}`. */
  contract?: true;
  /** The key is for our own books only: the loop is not told of it, so this send is not made again. */
  keyless?: true;
}

/** Sends messages to several sessions until the process is killed. */
export interface Load {
  sessions: number;
  life: number;
  seed: number;
  /** Sends of earlier lives that are made again, with the same keys. */
  repeats: PlannedSend[];
  /** Jobs are put into a named queue meanwhile. */
  jobs?: true;
}

/** What a worker does in its life. */
export interface WorkerPlan {
  dataDir: string;
  /** `worker` finishes every turn of the data folder, `client` only those of its sends. */
  role: 'worker' | 'client';
  sends: PlannedSend[];
  load?: Load;
  /** How long this process may go without a sign of life, in ms; 30000 by default. */
  leaseMs?: number;
  /** The Redis by which it shares the folder with other workers. */
  redisUrl?: string;
}

/** What a worker tells its parent, one JSON line each. */
export type WorkerLine =
  /** The store is open; from here on steps of earlier lives go on. */
  | { type: 'opened' }
  /** The runtime is open; `since_start_ms` counts from the start of the process. */
  | { type: 'ready'; since_start_ms: number }
  | { type: 'sending'; send: PlannedSend }
  | { type: 'acked'; key: string; turn_id: string; merged: boolean }
  | { type: 'stop-acked'; session_id: string; stopping: boolean }
  /** A job is queued. */
  | { type: 'enqueued'; job: JobLine }
  /** A call has begun that never ends by itself. */
  | { type: 'hanging'; session_id: string }
  /** Every turn of the data folder is over, and the runtime is closed. */
  | { type: 'idle' };

/** A line of the file that the probes write: one for each time that a target was really invoked. */
export interface CountLine {
  call: string;
  session_id: string;
  turn_id: string;
  pid: number;
}

/** A line of the file of delivered events. */
export interface EventLine {
  type: string;
  session_id: string;
  turn_id: string;
  status?: string;
}

/** A job of the named queue; those of one series are put in one after the other. Also a line of the file of the jobs that ran. */
export interface JobLine {
  group: string;
  series: string;
  n: number;
}

export const countsFile = (dataDir: string): string => `${dataDir}/counts.jsonl`;
export const eventsFile = (dataDir: string): string => `${dataDir}/events.jsonl`;
export const jobsFile = (dataDir: string): string => `${dataDir}/jobs.jsonl`;

/** What a message makes happen; the text of a message is `<kind> <session id> <anything>`. */
export const KINDS = {
  text: 'an answer',
  slow: 'an answer that streams for a while',
  tools: 'two calls',
  refused: 'a call that the policy denies, then one that it allows',
  throws: 'a call that fails',
  broken: 'the model fails for good',
  flaky: 'the model fails once, after some text',
  steer: 'a call that sends a second message meanwhile',
  halt: 'the stream is stopped',
  stop: 'a call that stops the turn and never ends',
  hang: 'a call that never ends',
  lasting: 'a call that outlasts a short lease',
  leave: 'a call during which the process closes the runtime',
  drop: 'a call that sends a second message and then stops the turn',
  held: 'a call that a hook holds until it is released',
  lapse: 'a call that a hook holds until its time is over',
  spawn: 'a call that starts a sub-agent and waits for it',
  detach: 'a call whose function starts a sub-agent that nobody waits for',
  vetoed: 'a hook denies the turn',
  barred: 'a hook denies the generation',
  lost: 'a call after which the step cannot be built, for once',
  note: 'a message that is not for the model: there is nothing to reply to',
  chase: 'the same, with messages for the model right behind it',
} as const;
export type Kind = keyof typeof KINDS;

/** The kind of a message, by its text; `text` for one that names none. */
export function kindOf(text: string): Kind {
  const word = text.split(' ', 1)[0] ?? '';
  return Object.hasOwn(KINDS, word) ? (word as Kind) : 'text';
}

/** False for messages that are sent without a key, for speed, and so may not be sent again. */
export const isKeyed = (text: string): boolean => kindOf(text) !== 'chase';
