import { describe } from 'vitest';
import { hasRedis } from '../support/redis-server.js';
import { documentsInState, documentsOnDisk, engineQueue } from './engine.js';
import { journalConformance } from './journal.js';
import { queueConformance } from './queue.js';
import { bullmq, sqlite } from './sqlite.js';
import { transcriptConformance } from './transcript.js';

journalConformance(sqlite);
transcriptConformance(sqlite);
queueConformance(sqlite);

journalConformance(documentsOnDisk);
transcriptConformance(documentsOnDisk);
queueConformance(documentsOnDisk);

journalConformance(documentsInState);
queueConformance(documentsInState);

queueConformance(engineQueue);

describe.skipIf(!hasRedis)('where there is a redis-server', () => {
  queueConformance(bullmq);
});
