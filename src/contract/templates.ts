/** Built templates: immutable root filesystems, named by their content, and how they come about. */
import * as z from 'zod'

/** How a template is made: data only, so that what it was made from can be compared and kept. */
export interface Recipe {
  readonly name: string
  /** One line for people. */
  readonly summary: string
  /** Debian's packages that are asked for; what they depend on comes with them. */
  readonly packages: readonly string[]
  /** Packages that those depend on and that are left out: what they are needed for is not done in a cell. */
  readonly without: readonly string[]
  /** Links that Debian's own scripts would make; `@triplet@` is the machine's, such as `x86_64-linux-gnu`. */
  readonly links: readonly { readonly path: string; readonly target: string }[]
  /** What every program in it starts with. */
  readonly env: Readonly<Record<string, string>>
  /** Programs that must run in it, and end with 0, before anybody gets it. */
  readonly checks: readonly (readonly [string, ...string[]])[]
  /** What it takes on the disk while it is built, roughly. */
  readonly diskBytes: number
}

export const templateIdSchema = z.string().regex(/^sha256:[0-9a-f]{64}$/, "must be a template's id: 'sha256:' and 64 hexadecimal digits")

export interface TemplatePackage {
  readonly name: string
  readonly version: string
}

/** Something of an archive that is not in the template, or not as it was there. */
export interface LeftOut {
  /** As the image has it. */
  readonly path: string
  readonly why: string
}

/** What a template that was made from an image, or by a Dockerfile, knows of that. */
export interface TemplateImage {
  /** As it was asked for: a reference, or the name of an archive or of a folder. */
  readonly source: string
  /** `sha256:…`: of the image's manifest; of an archive without one, of all its bytes; of a Dockerfile, of all that went into it. */
  readonly digest: string
  /** Whom the image means its programs to run as; empty where it does not say. */
  readonly user: string
  /** Where runs start; empty where it does not say, or where a cell has no such folder. */
  readonly workdir: string
  readonly entrypoint: readonly string[]
  readonly cmd: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  /** The first of what was left out, and how much it was. */
  readonly leftOut: readonly LeftOut[]
  readonly leftOutCount: number
}

/** A language that programs of a template can be written in. */
export interface TemplateLanguage {
  readonly name: string
  /** In the words of its interpreter or compiler; not given where that did not tell. */
  readonly version?: string
}

/** What is told of a template that is there. */
export interface TemplateInfo {
  readonly name: string
  /** `sha256:` and 64 hexadecimal digits, of every entry in it and of its defaults. */
  readonly id: string
  readonly recipe: string
  readonly summary: string
  readonly builtAt: string
  /** Of all its files together. */
  readonly bytes: number
  readonly entries: number
  readonly shell: string
  readonly env: Readonly<Record<string, string>>
  /** The system that its packages are of, such as `Debian GNU/Linux 12 (bookworm)`. */
  readonly system: string
  readonly arch: string
  /** Set where it has one. */
  readonly python?: string
  /** What was found in it when it was made; of templates that were built before this was looked for, nothing. */
  readonly languages?: readonly TemplateLanguage[]
  /** Not given: it is built from Debian's packages. */
  readonly image?: TemplateImage
  readonly packages: readonly TemplatePackage[]
  /** SHA-256 of the recipe and of every package that went into it: the same again makes the same template. */
  readonly inputs: string
}

/** A line of `template ls`. */
export interface TemplateListing extends TemplateInfo {
  /** Ids of the sandboxes that use it now. */
  readonly usedBy: readonly string[]
  /** Why it is not used any more, until it is built again. */
  readonly damaged?: string
}

/** What `template prune` removed, or would. */
export interface Pruned {
  readonly what: 'templates without a name' | 'layers' | 'steps' | 'packages'
  /** Templates, or files. */
  readonly count: number
  readonly bytes: number
}

/** A file that is not what it was, by its path in the template. */
export interface TemplateDifference {
  readonly path: string
  readonly what: string
}

export const buildPhases = ['waiting', 'lists', 'choosing', 'downloading', 'verifying', 'unpacking', 'finishing', 'hashing', 'checking', 'keeping'] as const
/** Of what is made from images. */
export const imagePhases = ['asking', 'reading', 'running', 'copying'] as const
export type BuildPhase = (typeof buildPhases)[number] | (typeof imagePhases)[number]

/** What happens while a template is built. `fraction` is of its phase. */
export type BuildEvent =
  | { readonly type: 'phase'; readonly phase: BuildPhase; readonly detail?: string }
  | { readonly type: 'progress'; readonly phase: BuildPhase; readonly fraction: number; readonly detail?: string }
  | { readonly type: 'note'; readonly text: string }
  /** What a program of a Dockerfile printed. */
  | { readonly type: 'output'; readonly text: string }

export interface BuildResult extends TemplateInfo {
  /** True when what there was is what would have been built. */
  readonly wasThere: boolean
  readonly tookMs: number
}

export interface BuildOptions {
  readonly onEvent?: (event: BuildEvent) => void
  /** Build it again although the same is there. */
  readonly again?: boolean
  readonly signal?: AbortSignal
}
