import { defineConfig } from 'vitest/config';

export default defineConfig({
  ssr: { resolve: { conditions: ['harness-src', 'node'] } },
  test: {
    environment: 'node',
    include: ['{apps,libs}/**/*.spec.ts', 'test/**/*.spec.ts'],
    isolate: false,
    setupFiles: ['./vitest.setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
});
