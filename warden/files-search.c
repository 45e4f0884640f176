/* SEARCH: lines of files that hold a text or match a POSIX extended regular expression, the first match of each line. */
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files-operations.h"
#include "files-paths.h"
#include "files-walk.h"

enum {
  FILE_BYTES_MOST = 64 * 1024 * 1024,
  LINE_MOST = 1024 * 1024, /* a longer line is looked through in pieces of this size */
  TEXT_MOST = 1000,
  BINARY_LOOK = 8192,
};
static const uint64_t BYTES_MOST = UINT64_C(16) << 30;

struct search {
  struct files *files;
  const struct request *request;
  bool by_regex;
  regex_t regex;
  char *buffer; /* of LINE_MOST */
  uint64_t matches, skipped, read_bytes;
  bool truncated;
  const char *path;
  size_t path_length;
};

/* A text whose case does not matter is searched for as the expression that means it. */
static char *escape(const char *text)
{
  char *escaped = malloc(2 * strlen(text) + 1), *at = escaped;
  for (; escaped && *text; *at++ = *text++)
    if (strchr("\\^$.[]|()*+?{}", *text)) *at++ = '\\';
  if (escaped) *at = 0;
  return escaped;
}

static int compile(struct search *search)
{
  uint32_t flags = search->request->flags;
  search->by_regex = flags & (SEARCH_REGEX | SEARCH_IGNORE_CASE);
  if (!search->by_regex) return 0;
  char *pattern = flags & SEARCH_REGEX ? strdup(search->request->other) : escape(search->request->other);
  int result = pattern ? regcomp(&search->regex, pattern, REG_EXTENDED | (flags & SEARCH_IGNORE_CASE ? REG_ICASE : 0)) : REG_ESPACE;
  free(pattern);
  return result;
}

static bool find(const struct search *search, const char *line, size_t length, size_t *start)
{
  if (!search->by_regex) {
    const char *at = memmem(line, length, search->request->other, strlen(search->request->other));
    *start = at ? (size_t)(at - line) : 0;
    return at;
  }
  regmatch_t match = { .rm_so = 0, .rm_eo = (regoff_t)length };
  if (regexec(&search->regex, line, 1, &match, REG_STARTEND) != 0) return false;
  *start = (size_t)match.rm_so;
  return true;
}

static void tell(struct search *search, const char *line, size_t length, const size_t place[2])
{
  struct files *files = search->files;
  size_t start = place[1], first = 0;
  if (length > TEXT_MOST && start > TEXT_MOST / 2) first = start - TEXT_MOST / 2;
  if (first && length - first < TEXT_MOST) first = length - TEXT_MOST;
  size_t shown = length - first < TEXT_MOST ? length - first : TEXT_MOST;
  reply_begin(files, REPLY_MATCH);
  reply_u64(files, place[0]);
  reply_u32(files, (uint32_t)(start + 1));
  reply_text(files, search->path, search->path_length);
  reply_text(files, line + first, shown);
  reply_end(files);
}

/* False when no more are wanted. */
static bool look_at_line(struct search *search, const char *line, size_t length, size_t number)
{
  size_t start;
  if (!find(search, line, length, &start)) return true;
  if (search->matches == search->request->number) {
    search->truncated = true;
    return false;
  }
  search->matches++;
  tell(search, line, length, (const size_t[]){ number, start });
  return !search->files->over;
}

/* Every whole line in the buffer, and the rest of it when it is all that comes. How many bytes are done with. */
static size_t look_at_lines(struct search *search, size_t held, bool all, size_t *number)
{
  size_t done = 0;
  while (done < held) {
    const char *line = search->buffer + done, *end = memchr(line, '\n', held - done);
    bool whole = end;
    if (!whole && !all && (done > 0 || held < LINE_MOST)) break;
    size_t length = whole ? (size_t)(end - line) : held - done;
    if (!look_at_line(search, line, length, *number)) return SIZE_MAX;
    *number += whole;
    done += length + whole;
  }
  return done;
}

/* False when the search is over. A file that cannot be read is skipped. */
static bool look_through(struct search *search, int fd)
{
  size_t held = 0, number = 1, total = 0;
  for (;;) {
    ssize_t got = read(fd, search->buffer + held, LINE_MOST - held);
    if (got < 0 && errno == EINTR) continue;
    bool is_binary = got > 0 && total == 0 && memchr(search->buffer, 0, (size_t)got < BINARY_LOOK ? (size_t)got : BINARY_LOOK);
    if (got < 0 || is_binary || total > FILE_BYTES_MOST) {
      search->skipped++;
      return true;
    }
    held += (size_t)got;
    total += (size_t)got;
    search->read_bytes += (uint64_t)got;
    size_t done = look_at_lines(search, held, got == 0, &number);
    if (done == SIZE_MAX) return false;
    if (got == 0) return true;
    held -= done;
    memmove(search->buffer, search->buffer + done, held);
    if (search->read_bytes > BYTES_MOST) {
      search->truncated = true;
      return false;
    }
  }
}

static bool look_at_file(struct search *search, int folder, const char *name)
{
  struct stat stat;
  int fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
  bool fit = fd >= 0 && fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size <= FILE_BYTES_MOST && search->path_length <= FILES_NAME_MOST;
  bool goes_on = true;
  if (fit) goes_on = look_through(search, fd);
  else search->skipped++;
  if (fd >= 0) close(fd);
  return goes_on;
}

static void look_beneath(struct search *search, int fd)
{
  struct walk walk;
  struct walk_entry entry;
  enum walk_step step = walk_begin(&walk, fd) ? WALK_ENTRY : WALK_FAILED;
  if (step == WALK_FAILED) search->skipped++;
  walk.skip_hidden = !(search->request->flags & SEARCH_HIDDEN);
  while (step != WALK_FAILED && step != WALK_OVER && !search->files->over) {
    step = walk_next(&walk, &entry);
    if (step == WALK_FAILED || step == WALK_MISSED) search->skipped++;
    if (step != WALK_ENTRY) continue;
    search->path = entry.path;
    search->path_length = entry.path_length;
    if (S_ISDIR(entry.stat.st_mode) && !walk_enter(&walk)) search->skipped++;
    if (S_ISREG(entry.stat.st_mode) && !look_at_file(search, entry.folder, entry.name)) break;
  }
  walk_end(&walk);
}

static void start(struct search *search)
{
  const char *path = search->request->path;
  struct stat stat;
  char landing[FILES_PATH_MOST + 1];
  search->path = "";
  if (fstatat(AT_FDCWD, path, &stat, 0) < 0 || !paths_follow(path, landing)) return reply_error(search->files, "search", path);
  if (S_ISDIR(stat.st_mode)) {
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return reply_error(search->files, "search", path);
    look_beneath(search, fd);
  } else {
    const char *unfit = paths_unfit(stat.st_mode);
    if (unfit) return reply_error(search->files, unfit, path);
    look_at_file(search, AT_FDCWD, landing);
  }
  reply_done(search->files, search->skipped | (search->truncated ? FILES_INCOMPLETE : 0));
}

void files_search(struct files *files, const struct request *request)
{
  struct search search = { .files = files, .request = request, .buffer = malloc(LINE_MOST) };
  int wrong = search.buffer ? compile(&search) : REG_ESPACE;
  if (wrong) {
    errno = wrong == REG_ESPACE ? ENOMEM : EINVAL;
    reply_error(files, "understand the expression", request->other);
  } else {
    start(&search);
    if (search.by_regex) regfree(&search.regex);
  }
  free(search.buffer);
}
