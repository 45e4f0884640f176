/** Imported before any schema is made. A command parses each but once or twice: compiling a parser for it would take longer than parsing does. */
import { config } from 'zod'

config({ jitless: true })
