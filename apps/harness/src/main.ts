#!/usr/bin/env node
import 'reflect-metadata';

// The worker is `harness-cli serve` under a name of its own. Apps share no code, so this starts that program in this process.
process.argv.splice(1, 1, 'harness', 'serve');
await import(new URL('../../harness-cli/src/main.js', import.meta.url).href);
