import { Controller, Get, Inject } from '@nestjs/common';
import {
  HealthCheck,
  type HealthCheckResult,
  HealthCheckService,
  type HealthIndicatorFunction,
  type HealthIndicatorResult,
  HealthIndicatorService,
} from '@nestjs/terminus';
import { errorMessage } from '#libs/contracts';
import type { Vitals } from '#libs/local';
import { VITALS } from './vitals.js';

/** How long a write, or an answer, may take before what it is asked of counts as down, in ms. */
const SOON_MS = 3_000;
/** How long a step may wait for its turn before the queue counts as down, in ms. */
const LAG_MS = 60_000;
/** Free bytes below which the disk counts as down, and as degraded. */
const DISK_DOWN = 50 * 1024 * 1024;
const DISK_DEGRADED = 500 * 1024 * 1024;

/** `/health/live`: the process answers. `/health/ready`: it can take work, 503 when it cannot. */
@Controller('health')
export class HealthController {
  constructor(
    @Inject(HealthCheckService) private readonly health: HealthCheckService,
    @Inject(HealthIndicatorService) private readonly indicators: HealthIndicatorService,
    @Inject(VITALS) private readonly vitals: Vitals,
  ) {}

  @Get('live')
  @HealthCheck()
  live(): Promise<HealthCheckResult> {
    return this.health.check([]);
  }

  @Get('ready')
  @HealthCheck()
  ready(): Promise<HealthCheckResult> {
    const checks: HealthIndicatorFunction[] = [() => this.store(), () => this.queue(), () => this.disk(), () => this.configuration()];
    for (const { name, ping } of this.vitals.dependencies) checks.push(() => this.reach(name, ping));
    return this.health.check(checks);
  }

  private async store(): Promise<HealthIndicatorResult> {
    const store = this.indicators.check('store');
    try {
      return store.up({ write_ms: Math.round(await soon(this.vitals.write(), 'a write')) });
    } catch (error) {
      return store.down({ message: errorMessage(error) });
    }
  }

  private async reach(name: string, ping: () => Promise<void>): Promise<HealthIndicatorResult> {
    const indicator = this.indicators.check(name);
    try {
      await soon(ping(), 'an answer');
      return indicator.up();
    } catch (error) {
      return indicator.down({ message: errorMessage(error) });
    }
  }

  private queue(): HealthIndicatorResult {
    const queue = this.indicators.check('queue');
    const load = this.vitals.queue;
    if (load.longest_wait_ms <= LAG_MS) return queue.up(load);
    return queue.down({ ...load, message: `a step has waited for ${Math.round(load.longest_wait_ms / 1000)} s` });
  }

  private async disk(): Promise<HealthIndicatorResult> {
    const disk = this.indicators.check('disk');
    const free_bytes = await this.vitals.freeBytes();
    if (free_bytes < DISK_DOWN) return disk.down({ free_bytes, message: 'the disk is nearly full: sends are refused once it is' });
    return free_bytes < DISK_DEGRADED ? disk.degraded({ free_bytes }) : disk.up({ free_bytes });
  }

  /** A fault in a file leaves the last good values in force, so work goes on: degraded, never down. */
  private configuration(): HealthIndicatorResult {
    const configuration = this.indicators.check('configuration');
    const faults = this.vitals.configurationFaults();
    return faults.length === 0 ? configuration.up() : configuration.degraded({ faults });
  }
}

async function soon<T>(result: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} takes longer than ${SOON_MS} ms`)), SOON_MS);
  });
  try {
    return await Promise.race([result, limit]);
  } finally {
    clearTimeout(timer);
  }
}
