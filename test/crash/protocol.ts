/** A send that a worker is told to do; the key makes it safe to tell it twice. */
export interface PlannedSend {
  session_id: string;
  text: string;
  key: string;
}

/** What a worker does in its life. */
export interface WorkerPlan {
  dataDir: string;
  /** `worker` finishes every turn of the data folder, `client` only those of its sends. */
  role: 'worker' | 'client';
  sends: PlannedSend[];
  /** Sends messages to several sessions until the process is killed. */
  load?: { sessions: number; life: number; seed: number };
}

/** What a worker tells its parent, one JSON line each. */
export type WorkerLine =
  /** The runtime is open; `since_start_ms` counts from the start of the process. */
  | { type: 'ready'; since_start_ms: number }
  | { type: 'sending'; send: PlannedSend }
  | { type: 'acked'; key: string; turn_id: string; merged: boolean }
  | { type: 'stop-acked'; session_id: string; stopping: boolean }
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

export const countsFile = (dataDir: string): string => `${dataDir}/counts.jsonl`;
export const eventsFile = (dataDir: string): string => `${dataDir}/events.jsonl`;

/**
 * What a message makes the model do; the text of a message is `<kind> <session id> <anything>`.
 * `text` an answer. `slow` an answer that streams for a while. `tools` two calls. `refused` a call that the policy denies, then one that
 * it allows. `throws` a call that fails. `broken` the model fails for good. `flaky` it fails once, after some text.
 * `steer` a call that sends a second message meanwhile. `halt` the stream is stopped. `stop` a call that stops the turn and never
 * ends. `hang` a call that never ends. `leave` a call during which the process closes the runtime.
 * `drop` a call that sends a second message and then stops the turn. `held` a call that a hook holds until it is released. `spawn` a
 * call that starts a sub-agent.
 */
export type Kind =
  | 'text'
  | 'slow'
  | 'tools'
  | 'refused'
  | 'throws'
  | 'broken'
  | 'flaky'
  | 'steer'
  | 'halt'
  | 'stop'
  | 'hang'
  | 'leave'
  | 'drop'
  | 'held'
  | 'spawn';
