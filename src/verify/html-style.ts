/** Light and dark by what the reader's system says; one column that a telephone shows, and tables that scroll by themselves. */
export const htmlStyle = `
:root { --ink: #1c2024; --paper: #fff; --faint: #60646c; --line: #d9dce1; --held: #18794e; --failed: #c62a2f; --panel: #f6f7f9 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --paper: #131517; --faint: #9ba1a6; --line: #313538; --held: #4cc38a; --failed: #ff6369; --panel: #1b1d1f }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif }
main { max-width: 70rem; margin: 0 auto; padding: 1rem }
h1 { margin: 0; font-size: 1.6rem }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; text-transform: capitalize }
header { border-left: .4rem solid var(--held); padding: .2rem 0 .2rem 1rem; margin-bottom: 1.5rem }
header.failed { border-color: var(--failed) }
header p { margin: .3rem 0 0; color: var(--faint) }
.counts b { color: var(--ink); margin-left: .6rem }
.counts b:first-child { margin-left: 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse }
.matrix th, .matrix td { padding: .25rem .6rem; border: 1px solid var(--line); text-align: left; white-space: nowrap; font-weight: normal }
.matrix thead th { color: var(--faint) }
.held td:nth-child(2), td.held, .held > summary .mark, header.held h1 { color: var(--held) }
.failed td:nth-child(2), td.failed, .failed > summary .mark, header.failed h1 { color: var(--failed) }
td.skipped, .skipped, .ms { color: var(--faint) }
a { color: inherit }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .3rem 0; padding: .35rem .7rem; background: var(--panel) }
summary { cursor: pointer; overflow-wrap: anywhere }
summary code { color: var(--faint); font-size: .85em }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .6rem 0 }
dt { color: var(--faint) }
dd { margin: 0 }
.checks { width: 100%; font-size: .85rem }
.checks th, .checks td { padding: .2rem .5rem; border-top: 1px solid var(--line); text-align: left; vertical-align: top; font-weight: normal }
.checks th { white-space: nowrap }
.said { width: 100%; font-family: ui-monospace, monospace; overflow-wrap: anywhere; white-space: pre-wrap }
.ms { white-space: nowrap }
@media (max-width: 40rem) {
  dl { grid-template-columns: 1fr }
  dd { margin-bottom: .4rem }
  .checks, .checks tbody, .checks tr, .checks th, .checks td { display: block; border: 0; padding: 0 }
  .checks tr { border-top: 1px solid var(--line); padding: .3rem 0 }
}
`
