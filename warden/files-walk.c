#include "files-walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_BYTES_MOST = 8 * 1024 * 1024 };

static struct walk_level *deepest(struct walk *walk)
{
  return &walk->levels[walk->trail.depth];
}

static void forget(struct walk *walk, struct walk_level *level)
{
  if (!level->names) return;
  walk->kept_bytes -= names_size(level->names);
  names_free(level->names);
  level->names = NULL;
}

/* The names of the folders furthest up are forgotten first: they are needed again last. */
static void keep_within_bounds(struct walk *walk)
{
  while (walk->kept_bytes > KEPT_BYTES_MOST && walk->kept_from < walk->trail.depth) forget(walk, &walk->levels[walk->kept_from++]);
}

static bool read_names(struct walk *walk, const char *after)
{
  struct walk_level *level = deepest(walk);
  forget(walk, level);
  level->names = names_read(trail_fd(&walk->trail), after);
  level->next = 0;
  if (!level->names) return false;
  walk->kept_bytes += names_size(level->names);
  if (walk->kept_from > walk->trail.depth) walk->kept_from = walk->trail.depth;
  keep_within_bounds(walk);
  return true;
}

static bool open_level(struct walk *walk)
{
  if (walk->trail.depth >= walk->levels_room) {
    size_t room = walk->levels_room ? walk->levels_room * 2 : 64;
    struct walk_level *levels = realloc(walk->levels, room * sizeof *levels);
    if (!levels) return false;
    walk->levels = levels;
    walk->levels_room = room;
  }
  *deepest(walk) = (struct walk_level){ 0 };
  return read_names(walk, "");
}

bool walk_begin(struct walk *walk, int fd)
{
  *walk = (struct walk){ 0 };
  return trail_begin(&walk->trail, fd) && open_level(walk);
}

size_t walk_depth(const struct walk *walk)
{
  return walk->trail.depth + 1;
}

bool walk_enter(struct walk *walk)
{
  struct walk_level *above = deepest(walk);
  if (above->names && above->next == above->names->count && !above->names->more) {
    above->over = true;
    forget(walk, above);
  }
  char name[NAMES_NAME_ROOM];
  strcpy(name, walk->last);
  if (!trail_enter(&walk->trail, name)) return false;
  if (open_level(walk)) return true;
  int error = errno;
  /* What cannot be entered is still the entry that is spoken of. */
  if (trail_leave(&walk->trail)) trail_name(&walk->trail, name);
  errno = error;
  return false;
}

/* The next name of the deepest folder: 1, 0 at its end, -1 when it cannot be read. */
static int next_name(struct walk *walk)
{
  struct walk_level *level = deepest(walk);
  for (;;) {
    if (level->over) return 0;
    if (!level->names && !read_names(walk, walk->last)) {
      level->over = true;
      return -1;
    }
    if (level->next < level->names->count) {
      strcpy(walk->last, names_at(level->names, level->next++));
      if (!walk->skip_hidden || walk->last[0] != '.') return 1;
    } else if (level->names->more) {
      /* Up to the limit everything was visited, also when the last of it vanished meanwhile. */
      strcpy(walk->last, level->names->limit);
      forget(walk, level);
    } else {
      level->over = true;
      forget(walk, level);
    }
  }
}

static void describe(struct walk *walk, struct walk_entry *entry)
{
  entry->folder = trail_fd(&walk->trail);
  entry->name = walk->last;
  entry->path = walk->trail.path;
  entry->path_length = walk->trail.path_length;
}

static enum walk_step leave(struct walk *walk, struct walk_entry *entry)
{
  if (walk->trail.depth == 0) return WALK_OVER;
  size_t above = walk->trail.levels[walk->trail.depth - 1].path_length;
  strcpy(walk->last, walk->trail.path + above + (above ? 1 : 0));
  if (!trail_leave(&walk->trail)) {
    describe(walk, entry);
    return WALK_FAILED;
  }
  if (!trail_name(&walk->trail, walk->last)) return WALK_FAILED;
  describe(walk, entry);
  return WALK_LEFT;
}

enum walk_step walk_next(struct walk *walk, struct walk_entry *entry)
{
  trail_unname(&walk->trail);
  for (;;) {
    int found = next_name(walk);
    if (found == 0) return leave(walk, entry);
    bool named = found > 0 && trail_name(&walk->trail, walk->last);
    describe(walk, entry);
    if (!named) return WALK_MISSED;
    if (fstatat(entry->folder, entry->name, &entry->stat, AT_SYMLINK_NOFOLLOW) == 0) return WALK_ENTRY;
    if (errno != ENOENT) return WALK_MISSED;
    trail_unname(&walk->trail);
  }
}

void walk_end(struct walk *walk)
{
  /* Deeper levels than the deepest have forgotten theirs. */
  if (walk->levels)
    for (size_t level = 0; level <= walk->trail.depth; level++) names_free(walk->levels[level].names);
  free(walk->levels);
  trail_end(&walk->trail);
}
