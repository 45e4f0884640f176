/** All shapes together. Loaded by servers and tests; a client of ours only uses their types. */
import type * as z from 'zod'
import { codeShapes } from './code.js'
import { fileShapes } from './files.js'
import { houseShapes } from './house.js'
import type { Shape } from './pieces.js'
import { placeShapes } from './places.js'
import { processShapes } from './processes.js'
import type { RouteName } from './routes.js'
import { sandboxShapes } from './sandboxes.js'

export const shapes = {
  ...sandboxShapes,
  ...processShapes,
  ...fileShapes,
  ...codeShapes,
  ...placeShapes,
  ...houseShapes,
} satisfies Record<RouteName, Shape>

type Shapes = typeof shapes
type Part<Name extends RouteName, Key extends keyof Shape> = Shapes[Name] extends Readonly<Record<Key, infer Schema extends z.ZodType>> ? Schema : never

export type QueryOf<Name extends RouteName> = Part<Name, 'query'> extends never ? undefined : z.output<Part<Name, 'query'>>
export type ParsedBody<Name extends RouteName> = Part<Name, 'body'> extends never ? undefined : z.output<Part<Name, 'body'>>
export type ReplyOf<Name extends RouteName> = Part<Name, 'reply'> extends never ? undefined : z.output<Part<Name, 'reply'>>
