#!/usr/bin/env node
// The soak from any clone: sets up what it uses, then runs it with the same arguments.
import { setUp } from './setup/steps.mjs'

const ready = await setUp({ everything: false })
if (ready === 0) await import(new URL('../bench/soak.mjs', import.meta.url).href)
else process.exitCode = ready
