/* Which run ids were ever used, as sorted ranges: one range for an engine that counts upward, however many runs there were. */
#ifndef GLOVEBOX_USED_IDS_H
#define GLOVEBOX_USED_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_range {
  uint32_t first, last;
};

struct used_ids {
  struct id_range *ranges;
  size_t count, room;
};

bool used_ids_has(const struct used_ids *ids, uint32_t id);
/* False when there is no memory to remember it. */
bool used_ids_add(struct used_ids *ids, uint32_t id);

#endif
