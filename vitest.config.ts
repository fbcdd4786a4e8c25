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
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
});
