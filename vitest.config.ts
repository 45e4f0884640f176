import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    globalSetup: 'test/own-key-folder.ts',
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    allowOnly: false,
    // Every file starts real programs; more workers than cores would only make their timings lie.
    maxWorkers: 2,
  },
})
