import { parseArgs } from 'node:util';
import { campaign } from './campaign.js';
import { ENGINE_BIN, EngineServer } from './engine-server.js';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    'engine-kills': { type: 'string', default: '50' },
    'both-kills': { type: 'string', default: '0' },
    store: { type: 'string', default: 'sqlite' },
    'sessions-elsewhere': { type: 'boolean', default: false },
    seed: { type: 'string', default: '1' },
  },
});

if (ENGINE_BIN === undefined) process.stdout.write('skipped: no engine binary (III_ENGINE_BIN)\n');
else {
  const { store } = values;
  if (store !== 'sqlite' && store !== 'engine') throw new Error('--store must be sqlite or engine');
  process.stdout.write(`iii ${EngineServer.version()}, store ${store}${values['sessions-elsewhere'] ? ', sessions elsewhere' : ''}\n`);
  const startedAt = Date.now();
  const { violations, ...report } = await campaign({
    kills: Number(values.kills),
    engineKills: Number(values['engine-kills']),
    bothKills: Number(values['both-kills']),
    store,
    sessionsElsewhere: values['sessions-elsewhere'],
    seed: Number(values.seed),
    say: (line) => process.stdout.write(`${line}\n`),
  });
  const figures = [
    `${report.kills} deaths of the worker`,
    `${report.engineKills} of the engine`,
    `${values['both-kills']} of both`,
    `${report.turns} turns`,
    `${report.effects} effects`,
    `${report.closed} closed with a notice`,
    `all turns ended ${report.longestEndMs} ms after the last start`,
    `${violations.length} violations`,
    `${Math.round((Date.now() - startedAt) / 1000)} s`,
  ];
  process.stdout.write(`${figures.join(', ')}\n`);
  for (const violation of violations) process.stdout.write(`  ${violation}\n`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
