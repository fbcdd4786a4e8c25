import { defineConfig } from 'vitest/config';

export default defineConfig({
  ssr: { resolve: { conditions: ['harness-src', 'node'] } },
  test: {
    environment: 'node',
    include: ['{apps,libs}/**/*.spec.ts', 'test/**/*.spec.ts'],
    isolate: false,
    // Many tests wait for child processes, so two files at once make use of even one core.
    maxWorkers: 2,
    setupFiles: ['./vitest.setup.ts'],
    testTimeout: 60_000, // of a test that starts processes, on a machine that is busy
    hookTimeout: 60_000,
  },
});
