#include "sha256.h"

#include <string.h>

static const uint32_t CONSTANTS[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
  0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
  0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
  0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
  0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t word, int bits)
{
  return word >> bits | word << (32 - bits);
}

static void expand(uint32_t words[64], const uint8_t *block)
{
  for (int i = 0; i < 16; i++)
    words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t low = turn(words[i - 15], 7) ^ turn(words[i - 15], 18) ^ words[i - 15] >> 3;
    uint32_t high = turn(words[i - 2], 17) ^ turn(words[i - 2], 19) ^ words[i - 2] >> 10;
    words[i] = words[i - 16] + low + words[i - 7] + high;
  }
}

static void mix(uint32_t state[8], const uint8_t *block)
{
  uint32_t words[64], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
  expand(words, block);
  for (int i = 0; i < 64; i++) {
    uint32_t one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + CONSTANTS[i] + words[i];
    uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + one, d = c, c = b, b = a, a = one + two;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void sha256_begin(struct sha256 *hash)
{
  static const uint32_t first[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
  memcpy(hash->state, first, sizeof first);
  hash->length = 0;
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
  const uint8_t *at = bytes;
  size_t held = hash->length % sizeof hash->block;
  hash->length += length;
  if (held && held + length >= sizeof hash->block) {
    size_t missing = sizeof hash->block - held;
    memcpy(hash->block + held, at, missing);
    mix(hash->state, hash->block);
    at += missing;
    length -= missing;
    held = 0;
  }
  for (; held == 0 && length >= sizeof hash->block; at += sizeof hash->block, length -= sizeof hash->block) mix(hash->state, at);
  memcpy(hash->block + held, at, length);
}

void sha256_end(struct sha256 *hash, uint8_t digest[32])
{
  static const uint8_t padding[72] = { 0x80 };
  uint64_t bits = hash->length * 8;
  uint8_t tail[8];
  for (int i = 0; i < 8; i++) tail[i] = (uint8_t)(bits >> (56 - 8 * i));
  size_t held = hash->length % sizeof hash->block;
  sha256_add(hash, padding, held < 56 ? 56 - held : 120 - held);
  sha256_add(hash, tail, sizeof tail);
  for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}
