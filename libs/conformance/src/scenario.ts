import type { Model } from '#libs/contracts';
import type { Trial } from './trial.js';

/** One rule of the contract that can be seen from outside, with what shows whether a harness keeps it. */
export interface Scenario {
  /** Stable, in kebab-case; also the id of the model that the scenario scripts. */
  readonly id: string;
  /** The rule, as a sentence without its subject, the harness. */
  readonly title: string;
  /** Functions of other workers that it takes; where one is not there the scenario is skipped. */
  readonly needs?: readonly string[];
  /** What the catalog says of the scenario's model beside the usual. */
  readonly model?: Partial<Model>;
  /** Throws where the rule is broken. */
  run(trial: Trial): Promise<void>;
}

/** What came of a scenario. `why` tells of a failure, or why it was skipped. */
export interface ScenarioResult {
  id: string;
  title: string;
  result: 'passed' | 'failed' | 'skipped';
  ms: number;
  why?: string;
}

/** What every scenario with a turn takes: a router to offer a model to, and a session store to read. */
export const TURN = ['router::provider::register', 'session::messages'] as const;
