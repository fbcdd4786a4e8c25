import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Vitals } from '#libs/local';
import type { FeedEvent, LiveFeed } from '#libs/turn';

/** Buckets of durations, in seconds. */
const COMMIT_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];
const CALL_SECONDS = [0.005, 0.02, 0.1, 0.5, 1, 5, 15, 60, 300];
const TURN_SECONDS = [0.05, 0.2, 1, 5, 15, 60, 300, 1800];

/** Functions that have a label of their own, and what the others have. */
const MAX_FUNCTIONS = 200;
const MAX_ID = 100;
const ID = /^[\w:.-]+$/;
const OTHER = 'other';

/** The metrics of one worker, in Prometheus's words. Labels hold ids of functions, providers and models, never of sessions. */
export class Metrics {
  readonly registry = new Registry();
  private readonly functions = new Set<string>();
  private readonly steps = this.counter('harness_steps_total', 'Generations that were begun');
  private readonly calls = this.counter('harness_calls_total', 'Calls of functions that ended', ['function_id', 'outcome']);
  private readonly turns = this.counter('harness_turns_total', 'Turns that ended', ['status']);
  private readonly tokens = this.counter('harness_tokens_total', 'Tokens of generations', ['provider', 'model', 'kind']);
  private readonly cost = this.counter('harness_cost_usd_total', 'Cost of generations in US dollars, as far as it is known', [
    'provider',
    'model',
  ]);
  private readonly callTime = this.histogram('harness_call_seconds', 'How long calls took', CALL_SECONDS);
  private readonly turnTime = this.histogram('harness_turn_seconds', 'How long turns took, waiting included', TURN_SECONDS);
  private readonly commitTime = this.histogram('harness_commit_seconds', 'How long a durable commit took', COMMIT_SECONDS);

  constructor(vitals: Vitals) {
    const { registry } = this;
    collectDefaultMetrics({ register: registry, prefix: 'harness_' });
    this.gauge('harness_queue_running', 'Steps that run in this process', () => vitals.queue.running);
    this.gauge('harness_queue_depth', 'Steps that wait in this process', () => vitals.queue.waiting);
    this.gauge('harness_queue_age_seconds', 'How long the step that waits longest has waited', () => vitals.queue.longest_wait_ms / 1000);
    this.gauge('harness_parked_turns', 'Turns of the data folder that wait for calls', () => vitals.parkedTurns());
    this.gauge('harness_configuration_faults', 'Faults in the configuration files', () => vitals.configurationFaults().length);
    vitals.onCommit((ms) => this.commitTime.observe(ms / 1000));
  }

  /** Counts what happens from now on; returns how to stop. */
  follow(feed: LiveFeed): () => void {
    return feed.subscribe((event) => this.count(event));
  }

  private count(event: FeedEvent): void {
    switch (event.type) {
      case 'step_started':
        this.steps.inc();
        return;
      case 'message_finished': {
        const { provider, model, usage } = event;
        if (usage === null) return;
        for (const kind of ['input', 'output', 'cache_read', 'cache_write', 'reasoning'] as const)
          if (usage[kind]) this.tokens.inc({ provider, model, kind }, usage[kind]);
        if (usage.cost_usd) this.cost.inc({ provider, model }, usage.cost_usd);
        return;
      }
      case 'call_finished':
        this.calls.inc({ function_id: this.named(event), outcome: event.outcome });
        this.callTime.observe(event.duration_ms / 1000);
        return;
      case 'turn_finished':
        this.turns.inc({ status: event.status });
        this.turnTime.observe(event.duration_ms / 1000);
        return;
      default:
    }
  }

  /** The function of a call as a label. What a model may write there is not let in: refused ids, long ones, and ever new ones. */
  private named({ function_id, outcome }: Extract<FeedEvent, { type: 'call_finished' }>): string {
    if (outcome === 'denied' || function_id.length > MAX_ID || !ID.test(function_id)) return OTHER;
    if (this.functions.size < MAX_FUNCTIONS) this.functions.add(function_id);
    return this.functions.has(function_id) ? function_id : OTHER;
  }

  private counter(name: string, help: string, labelNames: string[] = []): Counter {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  private gauge(name: string, help: string, read: () => number): Gauge {
    return new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(read());
      },
    });
  }

  private histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name, help, buckets, registers: [this.registry] });
  }
}
