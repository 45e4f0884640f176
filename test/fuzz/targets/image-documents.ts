import { parseConfig } from '../../../src/templates/images/image-config.js'
import { digestOf, openImage } from '../../../src/templates/images/image-manifest.js'
import { nameOfImage, parseReference, pinned } from '../../../src/templates/images/reference.js'
import { parseDockerfile } from '../../../src/templates/images/dockerfile.js'
import { parseIgnore } from '../../../src/templates/images/dockerignore.js'
import { type FuzzTarget, holds, isSame, laterIn, textIn, unlessRefused, unlessRefusedLater } from '../target.js'

const sha = `sha256:${'0'.repeat(64)}`
const config = JSON.stringify({
  architecture: 'amd64',
  os: 'linux',
  config: { Env: ['A=b'], User: 'u', WorkingDir: '/x', Entrypoint: ['sh'], Cmd: ['-c'], Labels: { a: 'b' } },
  rootfs: { type: 'layers', diff_ids: [sha] },
})
const manifest = JSON.stringify({
  schemaVersion: 2,
  config: { digest: digestOf(Buffer.from(config)), size: config.length },
  layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest: sha, size: 3 }],
})

/** Manifests, indexes, configs, references, Dockerfiles and lists of what is ignored. */
export const target: FuzzTarget = {
  name: 'image-documents',
  most: 3000,
  seeds: [
    manifest,
    config,
    JSON.stringify({ schemaVersion: 2, manifests: [{ digest: digestOf(Buffer.from(manifest)), size: 9, platform: { os: 'linux', architecture: 'amd64' } }] }),
    'registry.example:5000/team/image:1.2@' + sha,
    'debian:bookworm',
    'FROM debian:bookworm AS base\nARG A=1\nENV B="$A" C=d\nRUN ["sh", "-c", "true"]\nRUN <<EOF\necho hi\nEOF\nCOPY --from=base a b /c/\nWORKDIR /x\nUSER 1000\nCMD sh\n',
    '# comment\n**/*.o\n!keep.o\nnode_modules\n/build/\n',
  ],
  async run(bytes) {
    const text = textIn(bytes)
    const parsed = unlessRefused(() => parseConfig(bytes))
    if (parsed)
      holds(
        Object.keys(parsed.config.env).every((name) => name !== '' && !name.includes('=')) && !parsed.config.workdir.split('/').includes('..'),
        'a config names variables and a folder',
      )
    const documents: Uint8Array[] = [Buffer.from(config), Buffer.from(manifest), bytes]
    const source = {
      document: ({ digest }: { readonly digest: string }) => Promise.resolve(documents.find((each) => digestOf(each) === digest) ?? bytes),
      layer: () => laterIn([]),
    }
    const image = await unlessRefusedLater(() => openImage(bytes, source))
    if (image) holds(/^sha256:[0-9a-f]{64}$/.test(image.digest), 'an image is named by its content')
    const reference = unlessRefused(() => parseReference(text))
    if (reference) {
      isSame(
        unlessRefused(() => parseReference(pinned(reference, sha)))?.repository,
        reference.repository,
        'a reference that is pinned is of the same repository',
      )
      holds(!/[\s\p{Cc}]/u.test(nameOfImage(reference)), 'the name of an image can be written')
    }
    unlessRefused(() => parseDockerfile(text))
    const ignored = unlessRefused(() => parseIgnore(text))
    if (ignored) for (const path of ['a', 'a/b.o', 'node_modules/x', 'keep.o']) ignored(path)
  },
}
