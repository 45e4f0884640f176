import { readPolicyText } from '../../../src/sys/policy-text.js'

process.stdout.write(readPolicyText(process.argv[2] ?? ''))
