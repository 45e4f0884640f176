import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    globalSetup: 'test/own-key-folder.ts',
    include: ['test/**/*.test.ts'],
    // Patience for what hangs, not a measure: a machine that does other things beside may be ten times as slow as a quiet one.
    testTimeout: 120_000,
    hookTimeout: 240_000,
    expect: { poll: { timeout: 60_000, interval: 20 } },
    allowOnly: false,
    // Every file starts real programs; more workers than cores would only make their timings lie.
    maxWorkers: 2,
  },
})
