#include "files-links.h"

#include <stdlib.h>
#include <string.h>

static struct link_place *place_of(const struct links *links, const struct stat *stat)
{
  uint64_t mixed = ((uint64_t)stat->st_ino ^ (uint64_t)stat->st_dev << 32) * UINT64_C(0x9e3779b97f4a7c15);
  for (size_t slot = mixed >> 47;; slot++) {
    struct link_place *place = &links->slots[slot % LINKS_SLOTS];
    if (!place->length || (place->dev == stat->st_dev && place->ino == stat->st_ino)) return place;
  }
}

static int keep_text(struct links *links, const char *name, size_t length)
{
  if (links->used + length > LINKS_TEXT_MOST) return -1;
  if (links->used + length > links->room) {
    size_t room = 2 * links->room + length + 4096;
    char *text = realloc(links->text, room);
    if (!text) return -1;
    links->text = text;
    links->room = room;
  }
  memcpy(links->text + links->used, name, length);
  links->used += length;
  return 0;
}

const char *links_note(struct links *links, const struct stat *stat, const char *name, size_t *length)
{
  if (!links->slots) links->slots = calloc(LINKS_SLOTS, sizeof *links->slots);
  if (!links->slots) return NULL;
  struct link_place *place = place_of(links, stat);
  if (place->length) {
    *length = place->length;
    return links->text + place->text;
  }
  if (links->count == LINKS_MOST || keep_text(links, name, *length) < 0) return NULL;
  *place = (struct link_place){ .dev = stat->st_dev, .ino = stat->st_ino, .text = (uint32_t)(links->used - *length), .length = (uint32_t)*length };
  links->count++;
  return NULL;
}

void links_free(struct links *links)
{
  free(links->slots);
  free(links->text);
}
