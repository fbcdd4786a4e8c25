// A function that a model may call, when the policy of its turn allows it.
import { connect, leaveOnSignal } from './connect.mjs';

const worker = connect('example-function');

worker.registerFunction('example::add', async ({ a, b }) => ({ sum: a + b }), {
  description: 'Adds two numbers.',
  // What the model is told of the arguments, and what a call is checked against.
  request_format: {
    type: 'object',
    required: ['a', 'b'],
    properties: { a: { type: 'number' }, b: { type: 'number' } },
  },
  response_format: { type: 'object', required: ['sum'], properties: { sum: { type: 'number' } } },
});

leaveOnSignal(worker);
console.error('example::add is there');
