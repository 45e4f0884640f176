#include "used-ids.h"

#include <stdlib.h>
#include <string.h>

/* The first range that ends at the id or after it. */
static size_t place_of(const struct used_ids *ids, uint32_t id)
{
  size_t low = 0, high = ids->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (ids->ranges[middle].last < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

bool used_ids_has(const struct used_ids *ids, uint32_t id)
{
  size_t place = place_of(ids, id);
  return place < ids->count && ids->ranges[place].first <= id;
}

static bool make_room(struct used_ids *ids)
{
  if (ids->count < ids->room) return true;
  size_t room = ids->room ? ids->room * 2 : 16;
  struct id_range *ranges = realloc(ids->ranges, room * sizeof *ranges);
  if (!ranges) return false;
  ids->ranges = ranges;
  ids->room = room;
  return true;
}

static void remove_range(struct used_ids *ids, size_t place)
{
  ids->count--;
  memmove(ids->ranges + place, ids->ranges + place + 1, (ids->count - place) * sizeof *ids->ranges);
}

bool used_ids_add(struct used_ids *ids, uint32_t id)
{
  if (used_ids_has(ids, id)) return true;
  size_t place = place_of(ids, id);
  struct id_range *after = place < ids->count ? &ids->ranges[place] : NULL;
  struct id_range *before = place > 0 ? &ids->ranges[place - 1] : NULL;
  bool joins_after = after && after->first - 1 == id;
  if (before && before->last + 1 == id) {
    before->last = joins_after ? after->last : id;
    if (joins_after) remove_range(ids, place);
    return true;
  }
  if (joins_after) {
    after->first = id;
    return true;
  }
  if (!make_room(ids)) return false;
  memmove(ids->ranges + place + 1, ids->ranges + place, (ids->count - place) * sizeof *ids->ranges);
  ids->ranges[place] = (struct id_range){ id, id };
  ids->count++;
  return true;
}
