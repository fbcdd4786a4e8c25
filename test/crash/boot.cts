/**
 * Runs the bundled worker with compiled code that an earlier process has kept, so that its start costs little.
 * Arguments: the bundle, `keep` to keep the code of this process or `use`, and the worker's own.
 */
import fs = require('node:fs');
import nodeModule = require('node:module');
import path = require('node:path');
import vm = require('node:vm');

const [, , bundle = '', mode] = process.argv;
const kept = `${bundle}.compiled`;
// The bundle is ASCII, which is read and compared fastest.
const script = new vm.Script(`(function (exports, require, module, __filename, __dirname) {${fs.readFileSync(bundle, 'latin1')}\n})`, {
  filename: bundle,
  ...(fs.existsSync(kept) ? { cachedData: fs.readFileSync(kept) } : {}),
  importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
});
if (mode === 'keep') process.on('exit', () => fs.writeFileSync(kept, script.createCachedData()));
const main = { exports: {} };
const run = script.runInThisContext() as (...parts: unknown[]) => void;
run(main.exports, nodeModule.createRequire(bundle), main, bundle, path.dirname(bundle));
