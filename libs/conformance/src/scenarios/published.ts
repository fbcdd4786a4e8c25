import { harnessFunctions, harnessTriggerTypes, type Schema } from '#libs/contracts';
import { holds } from '../expect.js';
import type { Scenario } from '../scenario.js';
import { schemaDifference } from '../shapes.js';

interface FunctionInfo {
  function_id: string;
  error?: string;
  request_schema?: Schema | null;
  response_schema?: Schema | null;
}

/** What a harness tells the engine of itself. */
export const published: readonly Scenario[] = [
  {
    id: 'functions-published',
    title: 'publishes the nine functions with the schemas of the contract',
    run: async (trial) => {
      const function_ids = Object.keys(harnessFunctions);
      const { functions } = await trial.call<{ functions: FunctionInfo[] }>('engine::functions::info', { function_ids });
      const faults = Object.entries(harnessFunctions).flatMap(([id, contract]) => {
        const info = functions.find(({ function_id }) => function_id === id);
        if (info === undefined || info.error !== undefined) return [`${id} is not there`];
        const request = schemaDifference(info.request_schema, contract.request);
        const response = schemaDifference(info.response_schema, contract.response);
        return [...(request === null ? [] : [`${id} request: ${request}`]), ...(response === null ? [] : [`${id} response: ${response}`])];
      });
      holds(faults.length === 0, faults.join('; '));
    },
  },
  {
    id: 'trigger-types-published',
    title: 'publishes the seven trigger types with the binding configuration of the contract',
    needs: ['engine::triggers::info'],
    run: async (trial) => {
      const faults: string[] = [];
      for (const [id, contract] of Object.entries(harnessTriggerTypes)) {
        const info = await trial.call<{ configuration_schema?: Schema | null }>('engine::triggers::info', { id }).catch(() => null);
        const found = info === null ? 'is not there' : schemaDifference(info.configuration_schema, contract.config);
        if (found !== null) faults.push(`${id} ${found}`);
      }
      holds(faults.length === 0, faults.join('; '));
    },
  },
];
