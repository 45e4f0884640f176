/* Little-endian numbers in byte arrays, whatever the machine's own order and alignment. */
#ifndef GLOVEBOX_WIRE_H
#define GLOVEBOX_WIRE_H

#include <stdint.h>

static inline uint16_t wire_u16(const uint8_t *at)
{
  return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t wire_u32(const uint8_t *at)
{
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t wire_u64(const uint8_t *at)
{
  return (uint64_t)wire_u32(at) | (uint64_t)wire_u32(at + 4) << 32;
}

static inline void wire_put_u32(uint8_t *at, uint32_t value)
{
  for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> (8 * i));
}

static inline void wire_put_u64(uint8_t *at, uint64_t value)
{
  wire_put_u32(at, (uint32_t)value);
  wire_put_u32(at + 4, (uint32_t)(value >> 32));
}

#endif
