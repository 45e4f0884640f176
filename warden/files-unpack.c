/* UNPACK: a tar archive into a folder. Nothing lands outside, and set-id bits are dropped. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files-bytes.h"
#include "files-landing.h"
#include "files-operations.h"
#include "files-paths.h"
#include "files-remove.h"
#include "tar-read.h"

enum { MODE_KEPT = 01777 };

struct unpack {
  struct files *files;
  bool keep_owner, marks;
  struct tar_reader reader;
  struct frame_in piece; /* what is left of the latest DATA */
  bool ended;
  struct trail trail, links; /* where entries land, and where hard links are looked for */
  struct late_folders late;
  uint8_t *buffer; /* of FILES_PAYLOAD_MOST */
  uint64_t entries;
};

static size_t pull(void *from, uint8_t *into, size_t length)
{
  struct unpack *unpack = from;
  size_t got = 0;
  while (got < length && !unpack->ended) {
    if (!unpack->piece.length && !files_take_content(unpack->files, &unpack->piece)) {
      unpack->ended = true;
      unpack->piece.length = 0;
      break;
    }
    size_t part = length - got < unpack->piece.length ? length - got : unpack->piece.length;
    memcpy(into + got, unpack->piece.payload, part);
    unpack->piece.payload += part;
    unpack->piece.length -= part;
    got += part;
  }
  return got;
}

static bool fit_owner(const struct tar_entry *entry)
{
  errno = EINVAL;
  return entry->uid < UINT32_MAX && entry->gid < UINT32_MAX;
}

static bool finish_file(const struct unpack *unpack, const struct tar_entry *entry, int fd)
{
  struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, entry->mtime };
  if (unpack->keep_owner && (!fit_owner(entry) || fchown(fd, (uid_t)entry->uid, (gid_t)entry->gid) < 0)) return false;
  return fchmod(fd, entry->mode & MODE_KEPT) == 0 && futimens(fd, times) == 0;
}

static bool finish_other(const struct unpack *unpack, const struct tar_entry *entry, const char *name)
{
  struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, entry->mtime };
  int folder = trail_fd(&unpack->trail);
  if (unpack->keep_owner && (!fit_owner(entry) || fchownat(folder, name, (uid_t)entry->uid, (gid_t)entry->gid, AT_SYMLINK_NOFOLLOW) < 0)) return false;
  return utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool write_content(struct unpack *unpack, int fd)
{
  ssize_t got;
  while ((got = tar_content(&unpack->reader, unpack->buffer, FILES_PAYLOAD_MOST)) > 0)
    if (!write_bytes(fd, unpack->buffer, (size_t)got)) return false;
  errno = EINVAL;
  return got == 0;
}

static bool make_file(struct unpack *unpack, const struct tar_entry *entry, const char *name)
{
  int fd = openat(trail_fd(&unpack->trail), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  bool made = write_content(unpack, fd) && finish_file(unpack, entry, fd);
  int error = errno;
  bool closed = close(fd) == 0;
  if (!made) errno = error;
  return made && closed;
}

static bool make_hard_link(struct unpack *unpack, const struct tar_entry *entry, const char *name)
{
  struct place source;
  if (!place_of(&source, entry->link)) return false;
  errno = EPERM;
  bool linked = source.name[0] && landing_reach(&unpack->links, source.above, false)
    && linkat(trail_fd(&unpack->links), source.name, trail_fd(&unpack->trail), name, 0) == 0;
  int error = errno;
  free(source.above);
  errno = error;
  return linked;
}

/* Made so that it can be filled; its own mode and time come at the end. */
static bool make_folder(struct unpack *unpack, const struct tar_entry *entry, const struct place *place)
{
  int folder = trail_fd(&unpack->trail);
  const char *name = place->name[0] ? place->name : ".";
  bool was_there = mkdirat(folder, name, 0700) < 0;
  if (was_there && errno != EEXIST) return false;
  int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && !was_there) return false;
  if (fd >= 0) {
    bool owned = !unpack->keep_owner || (fit_owner(entry) && fchown(fd, (uid_t)entry->uid, (gid_t)entry->gid) == 0);
    int error = errno;
    if (owned && was_there && fchmod(fd, (entry->mode & MODE_KEPT) | 0700) < 0) error = errno;
    close(fd);
    errno = error;
    if (!owned) return false;
  }
  char path[place->above_length + strlen(place->name) + 2];
  snprintf(path, sizeof path, "%s%s%s", place->above, place->above[0] ? "/" : "", place->name);
  if (late_is_full(&unpack->late) && !late_apply(&unpack->late, &unpack->trail, path)) return false;
  return late_add(&unpack->late, &(struct late_folder){ .path = path, .mode = entry->mode & MODE_KEPT, .mtime = entry->mtime });
}

/* What is no folder goes where nothing is, and so does a folder that hides what was there. */
static bool clear_place(const struct unpack *unpack, const char *name)
{
  struct remains remains;
  int folder = trail_fd(&unpack->trail);
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return true;
  return errno == EISDIR && unpack->marks && remove_tree(folder, name, &remains);
}

static bool make(struct unpack *unpack, const struct tar_entry *entry, const struct place *place)
{
  int folder = trail_fd(&unpack->trail);
  struct stat stat;
  if (entry->type == TAR_FOLDER) {
    bool in_the_way = place->name[0] && fstatat(folder, place->name, &stat, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(stat.st_mode);
    if (in_the_way && unlinkat(folder, place->name, 0) < 0) return false;
    if (unpack->marks && entry->mark == TAR_HIDES && place->name[0] && !clear_place(unpack, place->name)) return false;
    return make_folder(unpack, entry, place);
  }
  errno = EISDIR;
  if (!place->name[0]) return false;
  if (!clear_place(unpack, place->name)) return false;
  if (entry->type == TAR_FILE) return make_file(unpack, entry, place->name);
  if (entry->type == TAR_HARD_LINK) return make_hard_link(unpack, entry, place->name);
  bool made = entry->type == TAR_LINK ? symlinkat(entry->link, folder, place->name) == 0 : mkfifoat(folder, place->name, entry->mode & 0777) == 0;
  return made && finish_other(unpack, entry, place->name);
}

static bool land(struct unpack *unpack, const struct tar_entry *entry)
{
  struct place place;
  if (!place_of(&place, entry->name)) return false;
  bool removes = unpack->marks && entry->mark == TAR_REMOVED && place.name[0];
  bool landed = landing_reach(&unpack->trail, place.above, true);
  if (landed) landed = removes ? clear_place(unpack, place.name) : make(unpack, entry, &place);
  int error = errno;
  free(place.above);
  errno = error;
  return landed;
}

static void tell_wrong(struct unpack *unpack)
{
  char object[FILES_ERROR_OBJECT_MOST + 64];
  const struct tar_reader *reader = &unpack->reader;
  const char *name = reader->name.bytes ? reader->name.bytes : "";
  if (reader->odd_type) snprintf(object, sizeof object, "an entry of type 0x%02x: %.*s", (uint8_t)reader->odd_type, FILES_ERROR_OBJECT_MOST, name);
  else snprintf(object, sizeof object, "%s, after %.*s", reader->why, FILES_ERROR_OBJECT_MOST, *name ? name : "nothing");
  errno = reader->odd_type ? EOPNOTSUPP : EINVAL;
  reply_error(unpack->files, "read the archive:", object);
}

/* True when all was unpacked; otherwise the failure was told. */
static bool unpack_all(struct unpack *unpack)
{
  struct tar_entry entry;
  for (;;) {
    enum tar_result result = tar_next(&unpack->reader, &entry);
    if (unpack->files->over) return false;
    if (result == TAR_WRONG) {
      tell_wrong(unpack);
      return false;
    }
    if (result == TAR_END) break;
    if (!land(unpack, &entry)) {
      if (unpack->reader.why) tell_wrong(unpack);
      else reply_error(unpack->files, "unpack", entry.name);
      return false;
    }
    unpack->entries++;
  }
  if (late_apply(&unpack->late, &unpack->trail, NULL)) return true;
  reply_error(unpack->files, "set the mode of", unpack->trail.path);
  return false;
}

static int open_root(const char *path)
{
  bool is_made = mkdir(path, 0755) == 0 || (errno == ENOENT && paths_make_above(path) && mkdir(path, 0755) == 0);
  int why = is_made ? 0 : errno;
  int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  /* Why it could not be made says more than that it is not there. */
  if (fd < 0 && errno == ENOENT && why && why != EEXIST) errno = why;
  return fd;
}

static bool begin(struct unpack *unpack, const char *path)
{
  int fd = open_root(path);
  int again = fd < 0 ? -1 : openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < TRAIL_FDS; i++) unpack->trail.fds[i] = unpack->links.fds[i] = -1;
  unpack->buffer = malloc(FILES_PAYLOAD_MOST);
  if (again >= 0 && unpack->buffer) return trail_begin(&unpack->trail, fd) && trail_begin(&unpack->links, again);
  int error = errno;
  if (fd >= 0) close(fd);
  if (again >= 0) close(again);
  errno = error;
  return false;
}

void files_unpack(struct files *files, const struct request *request)
{
  struct unpack unpack = { .files = files, .keep_owner = request->flags & UNPACK_OWNER, .marks = request->flags & UNPACK_MARKS };
  unpack.reader = (struct tar_reader){ .pull = pull, .from = &unpack };
  bool begun = begin(&unpack, request->path);
  if (!begun) reply_error(files, "open", request->path);
  bool unpacked = begun && unpack_all(&unpack);
  if (!unpack.ended) files_skip_content(files);
  if (unpacked && !files->over) reply_done(files, unpack.entries);
  trail_end(&unpack.trail);
  trail_end(&unpack.links);
  late_free(&unpack.late);
  tar_reader_free(&unpack.reader);
  free(unpack.buffer);
}
