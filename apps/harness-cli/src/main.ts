#!/usr/bin/env node
import 'reflect-metadata';
import { runCli } from './cli/run.js';
import { processIo } from './cli/process-io.js';

process.exit(await runCli(process.argv.slice(2), processIo()));
