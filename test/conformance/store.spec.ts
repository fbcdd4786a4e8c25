import { describe } from 'vitest';
import { hasRedis } from '../support/redis-server.js';
import { journalConformance } from './journal.js';
import { queueConformance } from './queue.js';
import { bullmq, sqlite } from './sqlite.js';
import { transcriptConformance } from './transcript.js';

journalConformance(sqlite);
transcriptConformance(sqlite);
queueConformance(sqlite);

describe.skipIf(!hasRedis)('where there is a redis-server', () => {
  queueConformance(bullmq);
});
