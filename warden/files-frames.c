#include "files-frames.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "files-bytes.h"
#include "wire.h"

enum { FRAME_MOST = FILES_HEADER + FILES_PAYLOAD_MOST, DATA_FRAME_MOST = FILES_HEADER + FILES_DATA_MOST, OUT_ROOM = DATA_FRAME_MOST + FRAME_MOST };

bool files_open(struct files *files)
{
  files->in = malloc(FILES_IN_ROOM);
  files->out = malloc(OUT_ROOM);
  return files->in && files->out;
}

void files_close(struct files *files)
{
  free(files->in);
  free(files->out);
}

bool reply_flush(struct files *files)
{
  for (size_t done = 0; done < files->fill && !files->over;) {
    ssize_t written = write(files->output, files->out + done, files->fill - done);
    if (written >= 0) done += (size_t)written;
    else if (errno == EINTR) continue;
    else if (errno == EAGAIN && files_wait(files->output, POLLOUT)) continue;
    else files->over = true;
  }
  files->fill = files->frame = 0;
  return !files->over;
}

/* All of it, from pipe to pipe. False when that is refused; what is left is then still where it was. */
static bool move(struct files *files, int from, int to, size_t *left)
{
  while (*left && !files->over) {
    ssize_t moved = splice(from, NULL, to, NULL, *left, SPLICE_F_MOVE);
    if (moved > 0) *left -= (size_t)moved;
    else if (moved < 0 && errno == EINTR) continue;
    else if (moved < 0 && errno == EAGAIN && to == files->output && files_wait(to, POLLOUT)) continue;
    else if (moved < 0 && errno == EPIPE) files->over = true;
    else return false;
  }
  return true;
}

static void copy_from(struct files *files, int pipe, size_t left)
{
  while (left && !files->over) {
    ssize_t got = read(pipe, files->out + files->fill, OUT_ROOM - files->fill);
    if (got > 0) files->fill += (size_t)got, left -= (size_t)got;
    else if (got == 0 || errno != EINTR) files->over = true;
    if (files->fill == OUT_ROOM) reply_flush(files);
  }
}

bool reply_passed(struct files *files, const struct passed *passed)
{
  uint8_t header[FILES_HEADER] = { [4] = REPLY_DATA };
  wire_put_u32(header, (uint32_t)passed->length);
  size_t behind = passed->length, framed = sizeof header;
  if (!reply_flush(files)) return false;
  if (write(passed->into, header, sizeof header) != sizeof header) {
    reply_bytes(files, header, sizeof header);
    framed = 0;
  } else if (move(files, passed->content, passed->into, &behind)) {
    framed += passed->length;
    if (move(files, passed->out_of, files->output, &framed)) return true;
  } else {
    framed += passed->length - behind;
  }
  copy_from(files, passed->out_of, framed);
  copy_from(files, passed->content, behind);
  return false;
}

void reply_begin(struct files *files, uint8_t type)
{
  if (files->fill + (type == REPLY_DATA ? DATA_FRAME_MOST : FRAME_MOST) > OUT_ROOM) reply_flush(files);
  uint8_t *header = files->out + files->fill;
  files->frame = files->fill;
  files->fill += FILES_HEADER;
  memset(header, 0, FILES_HEADER);
  header[4] = type;
}

void reply_bytes(struct files *files, const void *bytes, size_t length)
{
  if (length) memcpy(files->out + files->fill, bytes, length);
  files->fill += length;
}

void reply_u32(struct files *files, uint32_t value)
{
  wire_put_u32(files->out + files->fill, value);
  files->fill += 4;
}

void reply_u64(struct files *files, uint64_t value)
{
  wire_put_u64(files->out + files->fill, value);
  files->fill += 8;
}

void reply_text(struct files *files, const char *text, size_t length)
{
  reply_u32(files, (uint32_t)length);
  reply_bytes(files, text, length);
}

uint8_t *reply_room(struct files *files)
{
  return files->out + files->fill;
}

void reply_filled(struct files *files, size_t length)
{
  files->fill += length;
}

void reply_end(struct files *files)
{
  wire_put_u32(files->out + files->frame, (uint32_t)(files->fill - files->frame - FILES_HEADER));
}

void reply_drop(struct files *files)
{
  files->fill = files->frame;
}

void reply_done(struct files *files, uint64_t count)
{
  reply_begin(files, REPLY_DONE);
  reply_u64(files, count);
  reply_end(files);
}

/* What has run out where `path` was to be, as far as its file system tells. */
static const char *lacking(const char *path)
{
  enum { BYTES_NEARLY_NONE = 65536 };
  char above[FILES_PATH_MOST + 1] = "";
  struct statfs counts;
  if (path[0] == '/') strncpy(above, path, FILES_PATH_MOST);
  while (statfs(above, &counts) < 0) {
    char *slash = strrchr(above, '/');
    if (!slash || slash == above) return "";
    *slash = 0;
  }
  if (counts.f_files > 0 && counts.f_ffree == 0) return ": no inodes are left";
  return counts.f_bavail * (uint64_t)counts.f_bsize < BYTES_NEARLY_NONE ? ": no bytes are left" : "";
}

void reply_error(struct files *files, const char *verb, const char *object)
{
  uint32_t error = (uint32_t)errno;
  const char *more = error == ENOSPC ? lacking(object) : "";
  size_t verb_length = strlen(verb), length = strnlen(object, FILES_ERROR_OBJECT_MOST);
  reply_begin(files, REPLY_ERROR);
  reply_u32(files, error);
  reply_u32(files, (uint32_t)(verb_length + 1 + length + strlen(more)));
  reply_bytes(files, verb, verb_length);
  reply_bytes(files, " ", 1);
  reply_bytes(files, object, length);
  reply_bytes(files, more, strlen(more));
  reply_end(files);
}

static uint8_t type_of(mode_t mode)
{
  enum { TYPE_FILE, TYPE_FOLDER, TYPE_LINK, TYPE_FIFO, TYPE_SOCKET, TYPE_DEVICE };
  if (S_ISREG(mode)) return TYPE_FILE;
  if (S_ISDIR(mode)) return TYPE_FOLDER;
  if (S_ISLNK(mode)) return TYPE_LINK;
  if (S_ISFIFO(mode)) return TYPE_FIFO;
  return S_ISSOCK(mode) ? TYPE_SOCKET : TYPE_DEVICE;
}

/* A time that does not fit is the nearest that does. */
static void reply_time(struct files *files, const struct timespec *time)
{
  int64_t ns;
  if (__builtin_mul_overflow((int64_t)time->tv_sec, INT64_C(1000000000), &ns) || __builtin_add_overflow(ns, (int64_t)time->tv_nsec, &ns))
    ns = time->tv_sec < 0 ? INT64_MIN : INT64_MAX;
  reply_u64(files, (uint64_t)ns);
}

void reply_entry(struct files *files, const struct told *told)
{
  static const uint8_t no_hash[FILES_HASH_LENGTH];
  const struct stat *stat = told->stat;
  const char *target = told->target ? told->target : "";
  reply_begin(files, REPLY_ENTRY);
  reply_u32(files, type_of(stat->st_mode));
  reply_u32(files, stat->st_mode & FILES_MODE_MOST);
  reply_u32(files, stat->st_uid);
  reply_u32(files, stat->st_gid);
  reply_u64(files, (uint64_t)stat->st_size);
  reply_time(files, &stat->st_mtim);
  reply_time(files, &stat->st_atim);
  reply_time(files, &stat->st_ctim);
  reply_u64(files, stat->st_dev);
  reply_u64(files, stat->st_ino);
  reply_u64(files, stat->st_rdev);
  reply_bytes(files, told->hash ? told->hash : no_hash, FILES_HASH_LENGTH);
  reply_text(files, told->name ? told->name : "", told->name_length);
  reply_text(files, target, strlen(target));
  reply_end(files);
}
