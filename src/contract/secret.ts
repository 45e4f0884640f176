import * as z from 'zod'
import { Secret, shownSecret } from './secret-value.js'

export { Secret }

const mostCharacters = 16_384

/** The value of a header, as a text or as what an earlier parse made of it. What is wrong with it is told without showing any of it. */
export const secretSchema = z
  .union([
    z
      .string()
      .min(1, 'must not be empty')
      .max(mostCharacters, `must have at most ${mostCharacters} characters`)
      .regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'must be one line that a header can carry')
      .refine((text) => text !== shownSecret, 'is what is shown instead of a secret, not the secret'),
    z.instanceof(Secret),
  ])
  .transform((given) => (typeof given === 'string' ? new Secret(given) : given))
