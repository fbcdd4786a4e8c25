import { Redis, type RedisOptions } from 'ioredis';
import { errorMessage, HarnessError } from '#libs/contracts';

/** How long Redis may take to be there when a process starts, in ms. */
const START_MS = 10_000;

/** A connection that comes back by itself, for ever. `patient`: commands wait for it meanwhile, otherwise they fail at once. */
export function connection(url: string, { patient }: { patient: boolean }): Redis {
  const options: RedisOptions = {
    maxRetriesPerRequest: null,
    enableOfflineQueue: patient,
    retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 6), 2_000),
    // A replica that was promoted while we were connected to it, or the other way round.
    reconnectOnError: (error) => (error.message.startsWith('READONLY') ? 2 : false),
  };
  const redis = new Redis(url, options);
  redis.on('error', () => undefined); // told by the commands that fail, and by the health check
  return redis;
}

/**
 * Checks that the Redis at an address can hold queues. Throws `queue/redis_unreachable`, and `queue/redis_eviction` where Redis may
 * throw away what it holds when it is full.
 */
export async function checkRedis(url: string): Promise<void> {
  if (!/^rediss?:\/\//.test(url)) throw new HarnessError('queue/redis_unreachable', 'REDIS_URL must begin with redis:// or rediss://');
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null, connectTimeout: START_MS });
  let told: unknown; // what a command that fails says is only that the connection is closed
  redis.on('error', (error) => {
    told = error;
  });
  try {
    await redis.connect();
    const policy = /maxmemory_policy:(\S+)/.exec(await redis.info('memory'))?.[1] ?? 'noeviction';
    if (policy !== 'noeviction') {
      const detail = `Redis has the eviction policy ${policy}, under which queued steps can be lost. Set maxmemory-policy to noeviction`;
      throw new HarnessError('queue/redis_eviction', detail);
    }
  } catch (error) {
    if (error instanceof HarnessError) throw error;
    throw new HarnessError('queue/redis_unreachable', `REDIS_URL leads to no Redis that answers: ${errorMessage(told ?? error)}`, {
      cause: error,
    });
  } finally {
    redis.disconnect();
  }
}
