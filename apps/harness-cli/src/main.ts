#!/usr/bin/env node
import 'reflect-metadata';
import { processIo } from './cli/process-io.js';
import { runCli } from './cli/run.js';

process.exit(await runCli(process.argv.slice(2), processIo()));
