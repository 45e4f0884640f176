import { createMeters } from '../../src/watch/meters.js'
import { Registry } from '../../src/watch/registry.js'
import { watchedPlatform } from '../../src/watch/watched-platform.js'
import { hold, isEnginesOwn } from './hold.js'

// Whoever measures changes nothing: a platform that is watched behaves as one that is not.
hold('fake', 'engine', { isDeep: isEnginesOwn, platform: (platform) => watchedPlatform(platform, { meters: createMeters(new Registry()) }) })
