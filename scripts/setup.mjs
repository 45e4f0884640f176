#!/usr/bin/env node
// Makes a clone able to run: what is there and current is left alone, what is missing is done, step by step, on stderr. Ends with 0, with 3 when only the
// native programs are missing because this account may not install a compiler, or with 1. Plain Node: it runs before anything is installed.
import { parseArgs } from 'node:util'
import { setUp } from './setup/steps.mjs'

const { values } = parseArgs({ options: { everything: { type: 'boolean', default: false } } })
process.exitCode = await setUp({ everything: values.everything })
