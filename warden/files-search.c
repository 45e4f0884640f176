/*
 * SEARCH: lines of files that hold a text or match a POSIX extended regular expression, the first match of each line. A line that is longer than the
 * buffer goes through it in pieces: a text is found wherever it lies, because the pieces overlap; an expression means the whole line, so that such a line
 * is left out and its file counted among those that were not looked through.
 */
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
  LINE_MOST = 1024 * 1024,
  TEXT_MOST = 1000,
  BINARY_LOOK = 8192,
};
static const uint64_t BYTES_MOST = UINT64_C(16) << 30;

struct search {
  struct files *files;
  const struct request *request;
  bool by_regex;
  regex_t regex;
  char *text;   /* what is looked for, small where case does not matter */
  size_t text_length;
  char *buffer; /* of LINE_MOST, and a NUL */
  char *small;  /* a line in small letters, where case does not matter */
  uint64_t matches, skipped, read_bytes;
  bool truncated;
  const char *path;
  size_t path_length;
};

/* Where in a file the buffer stands. */
struct reading {
  size_t held;      /* in the buffer */
  size_t line;      /* number of the line it begins with */
  size_t before;    /* bytes of that line that have left the buffer */
  bool over;        /* with that line: what is left of it is passed over */
  bool passed_over; /* some line was too long for the expression */
};

/* Of ASCII, as the expressions know it. */
static void make_small(char *to, const char *from, size_t length)
{
  for (size_t i = 0; i < length; i++) to[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] + 'a' - 'A') : from[i];
}

static int compile(struct search *search)
{
  uint32_t flags = search->request->flags;
  const char *wanted = search->request->other;
  search->by_regex = flags & SEARCH_REGEX;
  search->text_length = strlen(wanted);
  search->buffer = calloc(1, LINE_MOST + 1);
  if (!search->buffer) return REG_ESPACE;
  if (search->by_regex) {
    int wrong = regcomp(&search->regex, wanted, REG_EXTENDED | (flags & SEARCH_IGNORE_CASE ? REG_ICASE : 0));
    search->by_regex = !wrong;
    return wrong;
  }
  search->text = strdup(wanted);
  if (!search->text) return REG_ESPACE;
  if (!(flags & SEARCH_IGNORE_CASE)) return 0;
  make_small(search->text, wanted, search->text_length);
  search->small = malloc(LINE_MOST);
  return search->small ? 0 : REG_ESPACE;
}

static bool find(const struct search *search, const char *line, size_t length, size_t *start)
{
  if (!search->by_regex) {
    if (search->small) make_small(search->small, line, length);
    const char *in = search->small ? search->small : line, *at = memmem(in, length, search->text, search->text_length);
    *start = at ? (size_t)(at - in) : 0;
    return at;
  }
  regmatch_t match = { .rm_so = 0, .rm_eo = (regoff_t)length };
  if (regexec(&search->regex, line, 1, &match, REG_STARTEND) != 0) return false;
  *start = (size_t)match.rm_so;
  return true;
}

struct piece {
  const char *bytes;
  size_t length;
};

static void tell(struct search *search, const struct reading *reading, const struct piece *piece, size_t start)
{
  struct files *files = search->files;
  size_t first = 0;
  if (piece->length > TEXT_MOST && start > TEXT_MOST / 2) first = start - TEXT_MOST / 2;
  if (first && piece->length - first < TEXT_MOST) first = piece->length - TEXT_MOST;
  size_t shown = piece->length - first < TEXT_MOST ? piece->length - first : TEXT_MOST;
  reply_begin(files, REPLY_MATCH);
  reply_u64(files, reading->line);
  reply_u32(files, (uint32_t)(reading->before + start + 1));
  reply_text(files, search->path, search->path_length);
  reply_text(files, piece->bytes + first, shown);
  reply_end(files);
}

/* False when no more are wanted. A line has one match. */
static bool look_at_piece(struct search *search, struct reading *reading, const struct piece *piece)
{
  size_t start;
  if (reading->over || !find(search, piece->bytes, piece->length, &start)) return true;
  if (search->matches == search->request->number) {
    search->truncated = true;
    return false;
  }
  search->matches++;
  tell(search, reading, piece, start);
  reading->over = true;
  return !search->files->over;
}

static void drop(struct search *search, struct reading *reading, size_t bytes)
{
  reading->held -= bytes;
  memmove(search->buffer, search->buffer + bytes, reading->held);
}

/* The buffer is full of one line. What stays of it is what a match across its end may begin with, and something to show before it. */
static bool look_at_long_line(struct search *search, struct reading *reading)
{
  const struct piece piece = { .bytes = search->buffer, .length = reading->held };
  if (search->by_regex) reading->over = reading->passed_over = true;
  if (!look_at_piece(search, reading, &piece)) return false;
  size_t kept = reading->over ? 0 : search->text_length + TEXT_MOST / 2;
  reading->before += reading->held - kept;
  drop(search, reading, reading->held - kept);
  return true;
}

/* Every whole line in the buffer, and the rest of it when it is all that comes. */
static bool look_at_lines(struct search *search, struct reading *reading, bool all)
{
  size_t done = 0;
  while (done < reading->held) {
    const char *line = search->buffer + done, *end = memchr(line, '\n', reading->held - done);
    if (!end && !all) break;
    const struct piece piece = { .bytes = line, .length = end ? (size_t)(end - line) : reading->held - done };
    if (!look_at_piece(search, reading, &piece)) return false;
    reading->line++;
    reading->before = 0;
    reading->over = false;
    done += piece.length + (end ? 1 : 0);
  }
  drop(search, reading, done);
  return reading->held < LINE_MOST || look_at_long_line(search, reading);
}

/* False when the search is over. A file that cannot be read is skipped. */
static bool look_through(struct search *search, int fd)
{
  struct reading reading = { .line = 1 };
  size_t total = 0;
  for (;;) {
    ssize_t got = read(fd, search->buffer + reading.held, LINE_MOST - reading.held);
    if (got < 0 && errno == EINTR) continue;
    bool is_binary = got > 0 && total == 0 && memchr(search->buffer, 0, (size_t)got < BINARY_LOOK ? (size_t)got : BINARY_LOOK);
    if (got < 0 || is_binary || total > FILE_BYTES_MOST) {
      search->skipped++;
      return true;
    }
    reading.held += (size_t)got;
    total += (size_t)got;
    search->read_bytes += (uint64_t)got;
    bool goes_on = look_at_lines(search, &reading, got == 0);
    if (!goes_on || got == 0) {
      search->skipped += reading.passed_over;
      return goes_on;
    }
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
  struct search search = { .files = files, .request = request };
  int wrong = compile(&search);
  if (wrong) {
    errno = wrong == REG_ESPACE ? ENOMEM : EINVAL;
    reply_error(files, "understand the expression", request->other);
  } else {
    start(&search);
  }
  if (search.by_regex) regfree(&search.regex);
  free(search.buffer);
  free(search.text);
  free(search.small);
}
