#!/usr/bin/env node
import 'reflect-metadata';
import { processIo } from '../../harness-cli/src/cli/process-io.js';
import { runCli } from '../../harness-cli/src/cli/run.js';

// The worker: the same as `harness-cli serve`, with its options.
process.exit(await runCli(['serve', ...process.argv.slice(2)], processIo(), 'harness'));
