import type { JsonObject } from '#libs/contracts';
import { holds, same, shown } from '../expect.js';
import { asks, says } from '../generations.js';
import { type Scenario, TURN } from '../scenario.js';

const SCHEMA: JsonObject = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
const output = { type: 'json' as const, schema: SCHEMA };

/** Results that must meet a schema. */
export const outputs: readonly Scenario[] = [
  {
    id: 'json-native',
    title: 'asks a model that can for JSON by its own means, and gives the result as a value',
    needs: TURN,
    model: { supports_structured_output: true },
    run: async (trial) => {
      trial.model.plays(says('{"n": 7}'));
      const { report } = await trial.turn('How many?', { options: { output } });
      same(report.result, { n: 7 }, 'the result');
      same(trial.model.requests[0]?.response_format?.type, 'json', 'the type of response_format');
    },
  },
  {
    id: 'json-submitted',
    title: 'lets a model that cannot hand in its result by submit_result, which is no call of a function',
    needs: TURN,
    model: { supports_structured_output: false },
    run: async (trial) => {
      trial.model.plays(asks({ type: 'function_call', id: 'c1', function_id: 'submit_result', arguments: { n: 7 } }));
      const { report } = await trial.turn('How many?', { options: { output } });
      same(report.result, { n: 7 }, 'the result');
      const names = (trial.model.requests[0]?.tools ?? []).map(({ name }) => name);
      holds(names.includes('submit_result'), `the model is offered ${shown(names)}`);
    },
  },
  {
    id: 'json-nudge',
    title: 'tells a model what is wrong with its JSON, and takes what it makes of that',
    needs: TURN,
    model: { supports_structured_output: true },
    run: async (trial) => {
      trial.model.plays(says('{"n": "seven"}'), says('{"n": 7}'));
      const { report } = await trial.turn('How many?', { options: { output } });
      same([report.result, report.result_error ?? null], [{ n: 7 }, null], 'result and result_error');
      same(trial.model.requests.length, 2, 'the number of generations');
    },
  },
  {
    id: 'json-given-up',
    title: 'completes with result_error when the JSON never meets its schema',
    needs: TURN,
    model: { supports_structured_output: true },
    run: async (trial) => {
      for (let n = 0; n < 8; n += 1) trial.model.plays(says('{"n": "seven"}'));
      const { report } = await trial.turn('How many?', { options: { output } });
      holds(typeof report.result_error === 'string' && report.result_error !== '', `result_error is ${shown(report.result_error)}`);
    },
  },
];
