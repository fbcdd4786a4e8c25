#!/usr/bin/env node
// Prints the totals of a run of vitest as its last word: `N passed, N failed`.
//
//   node scripts/test-totals.mjs <report of vitest's json reporter> <exit code of the run>
//
// Exits with 1 when a test failed, a file could not be loaded, the run itself failed, or nothing ran.
import { readFileSync } from 'node:fs';

const [, , path, exitCode = '0'] = process.argv;

function read() {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    process.stderr.write(`test-totals: no report to read (${error.message})\n`);
    return { numPassedTests: 0, numFailedTests: 0, testResults: [] };
  }
}

const report = read();
const passed = report.numPassedTests;
const unloaded = report.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length;
const known = report.numFailedTests + unloaded;
// A run can also fail outside every test: an unhandled error, a hook of a whole file.
const failed = known === 0 && (exitCode !== '0' || passed === 0) ? 1 : known;

process.stdout.write(`${passed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
