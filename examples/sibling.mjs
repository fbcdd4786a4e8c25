// Takes the place of the built-in sibling `state`. Start the worker without its own:
//   HARNESS_SIBLINGS=-state npx harness-cli serve
import { connect, leaveOnSignal } from './connect.mjs';

const worker = connect('example-state');
const scopes = new Map();
const scopeOf = (name) => scopes.get(name) ?? scopes.set(name, new Map()).get(name);

const functions = {
  get: ({ scope, key }) => scopeOf(scope).get(key) ?? null,
  set: ({ scope, key, value }) => {
    const old_value = scopeOf(scope).get(key) ?? null;
    scopeOf(scope).set(key, value);
    return { old_value, new_value: value };
  },
  delete: ({ scope, key }) => {
    const old = scopeOf(scope).get(key) ?? null;
    scopeOf(scope).delete(key);
    return old;
  },
  list: ({ scope }) => [...scopeOf(scope).values()],
};

for (const [name, answer] of Object.entries(functions)) {
  worker.registerFunction(`state::${name}`, async (request) => answer(request), { description: `${name}, in memory` });
}

leaveOnSignal(worker);
console.error('state::* is ours');
