/* PACK: a folder as a tar archive. Entries come in the order of their names, and say nothing but what the tree says: equal trees give equal bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "files-links.h"
#include "files-operations.h"
#include "files-paths.h"
#include "files-walk.h"
#include "tar-write.h"

struct pack {
  struct files *files;
  bool in_layers;
  bool one_filesystem;
  struct walk walk;
  struct tar_sink sink;
  struct links links;
  size_t filled; /* of the DATA that is being filled */
  bool is_filling;
  char *name; /* room for a name and what is put around it */
  uint64_t entries;
};

static void flush_frame(struct pack *pack)
{
  if (pack->is_filling && pack->filled) reply_end(pack->files);
  else if (pack->is_filling) reply_drop(pack->files);
  pack->is_filling = false;
  pack->filled = 0;
}

static size_t room_in_frame(struct pack *pack)
{
  if (pack->filled == FILES_PAYLOAD_MOST) flush_frame(pack);
  if (!pack->is_filling) reply_begin(pack->files, REPLY_DATA);
  pack->is_filling = true;
  return FILES_PAYLOAD_MOST - pack->filled;
}

static void count_in_frame(struct pack *pack, size_t length)
{
  reply_filled(pack->files, length);
  pack->filled += length;
}

static void put(void *into, const void *bytes, size_t length)
{
  struct pack *pack = into;
  while (length) {
    size_t room = room_in_frame(pack), piece = length < room ? length : room;
    memcpy(reply_room(pack->files), bytes, piece);
    count_in_frame(pack, piece);
    bytes = (const uint8_t *)bytes + piece;
    length -= piece;
  }
}

/* A file that shrinks meanwhile is filled up with zeros, one that grows is cut: its header is said already. */
static bool put_content(struct pack *pack, int fd, uint64_t size)
{
  for (uint64_t left = size; left && !pack->files->over;) {
    size_t room = room_in_frame(pack), wanted = left < room ? (size_t)left : room;
    ssize_t got = read(fd, reply_room(pack->files), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) memset(reply_room(pack->files), 0, (size_t)(got = (ssize_t)wanted));
    count_in_frame(pack, (size_t)got);
    left -= (uint64_t)got;
  }
  tar_put_padding(&pack->sink, size);
  return true;
}

static bool put_header(struct pack *pack, const struct tar_entry *entry)
{
  errno = ENOMEM;
  pack->entries++;
  return tar_put_header(&pack->sink, entry);
}

static struct tar_entry entry_of(struct pack *pack, const struct walk_entry *entry, const struct stat *stat)
{
  memcpy(pack->name, entry->path, entry->path_length + 1);
  return (struct tar_entry){
    .name = pack->name, .name_length = entry->path_length, .link = "", .mode = stat->st_mode & FILES_MODE_MOST, .uid = stat->st_uid, .gid = stat->st_gid,
    .mtime = stat->st_mtim,
  };
}

static bool pack_open_file(struct pack *pack, const struct walk_entry *entry, int fd)
{
  struct stat stat;
  errno = ESTALE;
  if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode)) return false;
  struct tar_entry header = entry_of(pack, entry, &stat);
  size_t length = entry->path_length;
  const char *first = stat.st_nlink > 1 ? links_note(&pack->links, &stat, entry->path, &length) : NULL;
  header.type = first ? TAR_HARD_LINK : TAR_FILE;
  if (first) header.link = first, header.link_length = length;
  else header.size = (uint64_t)stat.st_size;
  return put_header(pack, &header) && (first || put_content(pack, fd, header.size));
}

static bool pack_file(struct pack *pack, const struct walk_entry *entry)
{
  int fd = openat(entry->folder, entry->name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  bool packed = pack_open_file(pack, entry, fd);
  int error = errno;
  close(fd);
  errno = error;
  return packed;
}

static bool pack_link(struct pack *pack, const struct walk_entry *entry)
{
  char target[FILES_PATH_MOST + 1];
  if (!paths_target(entry->folder, entry->name, target)) return errno == ENOENT;
  struct tar_entry header = entry_of(pack, entry, &entry->stat);
  header.type = TAR_LINK;
  header.mode = 0777;
  header.link = target;
  header.link_length = strlen(target);
  return put_header(pack, &header);
}

/* Stands for something that an overlay hides. */
static bool pack_removed(struct pack *pack, const struct walk_entry *entry)
{
  const struct tar_entry header = { .type = TAR_FILE, .name = entry->path, .name_length = entry->path_length, .link = "", .mark = TAR_REMOVED };
  return put_header(pack, &header);
}

static bool is_opaque(const struct walk_entry *entry)
{
  char value = 0;
  int fd = openat(entry->folder, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  bool found = fgetxattr(fd, "user.overlay.opaque", &value, 1) == 1 || fgetxattr(fd, "trusted.overlay.opaque", &value, 1) == 1;
  close(fd);
  return found && value == 'y';
}

static bool pack_folder(struct pack *pack, const struct walk_entry *entry)
{
  struct tar_entry header = entry_of(pack, entry, &entry->stat);
  header.type = TAR_FOLDER;
  pack->name[header.name_length++] = '/';
  pack->name[header.name_length] = 0;
  if (pack->in_layers && is_opaque(entry)) header.mark = TAR_HIDES;
  if (!put_header(pack, &header)) return false;
  if (pack->one_filesystem && entry->stat.st_dev != trail_dev(&pack->walk.trail)) return true;
  return walk_enter(&pack->walk) || errno == ENOENT;
}

static bool pack_entry(struct pack *pack, const struct walk_entry *entry)
{
  mode_t mode = entry->stat.st_mode;
  errno = ENAMETOOLONG;
  if (entry->path_length > FILES_NAME_MOST) return false;
  if (S_ISDIR(mode)) return pack_folder(pack, entry);
  if (S_ISREG(mode)) return pack_file(pack, entry);
  if (S_ISLNK(mode)) return pack_link(pack, entry);
  if (S_ISCHR(mode) && pack->in_layers && entry->stat.st_rdev == makedev(0, 0)) return pack_removed(pack, entry);
  if (!S_ISFIFO(mode)) return true;
  struct tar_entry header = entry_of(pack, entry, &entry->stat);
  header.type = TAR_FIFO;
  return put_header(pack, &header);
}

static bool pack_root(struct pack *pack)
{
  struct stat stat;
  const struct walk_entry root = { .name = "", .path = "./", .path_length = 2 };
  if (fstat(trail_fd(&pack->walk.trail), &stat) < 0) return false;
  struct tar_entry header = entry_of(pack, &root, &stat);
  header.type = TAR_FOLDER;
  return put_header(pack, &header);
}

static void pack_all(struct pack *pack)
{
  struct walk_entry entry = { .path = "" };
  enum walk_step step = WALK_ENTRY;
  bool packed = pack_root(pack);
  while (packed && step != WALK_OVER && !pack->files->over) {
    step = walk_next(&pack->walk, &entry);
    if (step == WALK_ENTRY) packed = pack_entry(pack, &entry);
    if (step == WALK_MISSED || step == WALK_FAILED) packed = false;
  }
  int error = errno;
  if (packed) tar_put_end(&pack->sink);
  flush_frame(pack);
  errno = error;
  if (packed) reply_done(pack->files, pack->entries);
  else reply_error(pack->files, "pack", entry.path);
}

void files_pack(struct files *files, const struct request *request)
{
  struct pack pack = { .files = files, .in_layers = request->flags & IN_LAYERS, .one_filesystem = request->flags & PACK_ONE_FILESYSTEM };
  pack.sink = (struct tar_sink){ .put = put, .into = &pack };
  int fd = paths_open_folder(files, request);
  if (fd < 0) return reply_error(files, "open", request->path);
  pack.name = malloc(FILES_NAME_MOST + 32);
  bool begun = walk_begin(&pack.walk, fd);
  if (begun && pack.name) pack_all(&pack);
  else reply_error(files, "pack", request->path);
  walk_end(&pack.walk);
  links_free(&pack.links);
  free(pack.name);
}
