#include "arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"

struct reader {
  char **next;
  const char *option;
};

static _Noreturn void refuse(const char *object)
{
  errno = EINVAL;
  die("understand", object);
}

static const char *value(struct reader *reader)
{
  if (!*reader->next) refuse(reader->option);
  return *reader->next++;
}

static unsigned long number(struct reader *reader, int base)
{
  const char *text = value(reader);
  char *end;
  errno = 0;
  unsigned long result = strtoul(text, &end, base);
  if (errno || end == text || *end || *text == '-') refuse(text);
  return result;
}

static void add_path(struct paths *paths, const char *path)
{
  if (paths->count == ARGUMENTS_PATHS_MOST) refuse(path);
  paths->list[paths->count++] = path;
}

static size_t next_index(size_t *count, const struct reader *reader)
{
  if (*count == ARGUMENTS_PATHS_MOST) refuse(reader->option);
  return (*count)++;
}

static void read_writable(struct writable *writable, struct reader *reader)
{
  writable->path = value(reader);
  writable->uid = (uid_t)number(reader, 10);
  writable->gid = (gid_t)number(reader, 10);
  writable->mode = (mode_t)number(reader, 8);
}

static void read_recognition(struct recognition *recognition, struct reader *reader)
{
  unsigned long fd = number(reader, 10);
  if (fd < 3 || fd > 65535) refuse(reader->option);
  *recognition = (struct recognition){ .fd = (int)fd, .path = value(reader) };
}

static void read_overlay(struct overlay *overlay, struct reader *reader)
{
  overlay->from = value(reader);
  unsigned long index = number(reader, 10);
  if (index > ARGUMENTS_INDEX_MOST) refuse(reader->option);
  overlay->index = (unsigned)index;
}

static void read_place(struct place *place, struct reader *reader)
{
  place->from = value(reader);
  place->to = value(reader);
  const char *mode = value(reader), *rest = mode + 2;
  place->readonly = !strncmp(mode, "ro", 2);
  if (!place->readonly && strncmp(mode, "rw", 2)) refuse(mode);
  place->noexec = !strcmp(rest, ",noexec");
  if (*rest && !place->noexec) refuse(mode);
}

static void read_binding(struct binding *binding, struct reader *reader)
{
  binding->from = value(reader);
  binding->to = value(reader);
}

static void add_disk(struct arguments *arguments, struct reader *reader)
{
  char **first = reader->next;
  number(reader, 10);
  number(reader, 10);
  arguments->disk_bytes = first[0];
  arguments->disk_inodes = first[1];
}

static void add_guests(struct arguments *arguments, struct reader *reader)
{
  char **first = reader->next;
  if (!number(reader, 10)) refuse(reader->option);
  arguments->guests_most = first[0];
}

static void add_own_ids(struct arguments *arguments, struct reader *reader)
{
  arguments->becomes = true;
  arguments->own_uid = (uid_t)number(reader, 10);
  arguments->own_gid = (gid_t)number(reader, 10);
}

static void add_join(struct arguments *arguments, struct reader *reader)
{
  unsigned long fd = number(reader, 10);
  if (fd < 3 || fd > 65535 || arguments->join_count == WARDEN_JOINS_MOST) refuse(reader->option);
  arguments->joins[arguments->join_count++] = (struct join_argument){ .fd = (int)fd };
}

static void add_join_below(struct arguments *arguments, struct reader *reader)
{
  add_join(arguments, reader);
  const char *file = value(reader);
  if (!*file || strlen(file) > WARDEN_JOIN_NAME_MOST || strchr(file, '/') || !strcmp(file, ".") || !strcmp(file, "..")) refuse(reader->option);
  arguments->joins[arguments->join_count - 1].file = file;
}

static void add_enter(struct arguments *arguments, struct reader *reader)
{
  unsigned long fd = number(reader, 10);
  if (fd < 3 || fd > 65535 || arguments->enter_count == WARDEN_JOINS_MOST) refuse(reader->option);
  arguments->enters[arguments->enter_count++] = (int)fd;
}

static void add_cradle(struct arguments *arguments, struct reader *reader)
{
  arguments->cradle = true;
  arguments->cradle_uid = (uid_t)number(reader, 10);
  arguments->cradle_gid = (gid_t)number(reader, 10);
}

static void add_egress(struct arguments *arguments, struct reader *reader)
{
  unsigned long port = number(reader, 10);
  if (!port || port > UINT16_MAX) refuse(reader->option);
  arguments->doors.proxy = (uint16_t)port;
}

static void refuse_contradictions(const struct arguments *arguments)
{
  if (arguments->overlay_count && !arguments->disk_bytes && !arguments->layers) refuse("--overlay without --disk");
  bool disk = arguments->disk_bytes || arguments->disk_at;
  if (arguments->disk_bytes && arguments->disk_at) refuse("--disk with --disk-at");
  if (!disk != !arguments->writable_count) refuse(disk ? "--disk without --writable" : "--writable without --disk");
  if (arguments->doors.direct && !arguments->doors.proxy) refuse("--direct without --egress");
  /* The routes would be the host's own. */
  if (arguments->guests_most && (arguments->subreaper || !arguments->becomes)) refuse("--guests with --subreaper, or without --become");
  if (arguments->doors.direct && arguments->subreaper) refuse("--direct with --subreaper");
  /* What is placed in the cell's folders would be a part of every liner, and a liner's own folders may execute. */
  bool unlined = arguments->subreaper || arguments->noexec || arguments->place_count || !arguments->disk_bytes || !arguments->pts;
  if (arguments->cradle && unlined) refuse("--cradle where no liner can be");
}

void arguments_parse(struct arguments *arguments, char **argv)
{
  struct reader reader = { .next = argv[0] ? argv + 1 : argv };
  while (*reader.next) {
    const char *option = reader.option = *reader.next++;
    if (!strcmp(option, "--disk")) add_disk(arguments, &reader);
    else if (!strcmp(option, "--disk-at")) arguments->disk_at = value(&reader);
    else if (!strcmp(option, "--writable")) read_writable(&arguments->writables[next_index(&arguments->writable_count, &reader)], &reader);
    else if (!strcmp(option, "--folder")) read_writable(&arguments->folders[next_index(&arguments->folder_count, &reader)], &reader);
    else if (!strcmp(option, "--recognise")) read_recognition(&arguments->recognitions[next_index(&arguments->recognition_count, &reader)], &reader);
    else if (!strcmp(option, "--overlay")) read_overlay(&arguments->overlays[next_index(&arguments->overlay_count, &reader)], &reader);
    else if (!strcmp(option, "--layers")) arguments->layers = value(&reader);
    else if (!strcmp(option, "--place")) read_place(&arguments->places[next_index(&arguments->place_count, &reader)], &reader);
    else if (!strcmp(option, "--bind")) read_binding(&arguments->bindings[next_index(&arguments->binding_count, &reader)], &reader);
    else if (!strcmp(option, "--noexec")) arguments->noexec = true;
    else if (!strcmp(option, "--veil")) add_path(&arguments->veils, value(&reader));
    else if (!strcmp(option, "--pts")) arguments->pts = true;
    else if (!strcmp(option, "--mask")) add_path(&arguments->masks, value(&reader));
    else if (!strcmp(option, "--readonly")) add_path(&arguments->readonlys, value(&reader));
    else if (!strcmp(option, "--detach")) add_path(&arguments->detaches, value(&reader));
    else if (!strcmp(option, "--release")) add_path(&arguments->releases, value(&reader));
    else if (!strcmp(option, "--remove")) add_path(&arguments->removals, value(&reader));
    else if (!strcmp(option, "--proc")) arguments->own_proc = true;
    else if (!strcmp(option, "--guests")) add_guests(arguments, &reader);
    else if (!strcmp(option, "--become")) add_own_ids(arguments, &reader);
    else if (!strcmp(option, "--tell")) arguments->tells = true;
    else if (!strcmp(option, "--hide")) arguments->hides = true;
    else if (!strcmp(option, "--once") || !strcmp(option, "--await")) continue; /* done by then */
    else if (!strcmp(option, "--join")) add_join(arguments, &reader);
    else if (!strcmp(option, "--join-below")) add_join_below(arguments, &reader);
    else if (!strcmp(option, "--enter")) add_enter(arguments, &reader);
    else if (!strcmp(option, "--subreaper")) arguments->subreaper = true;
    else if (!strcmp(option, "--egress")) add_egress(arguments, &reader);
    else if (!strcmp(option, "--direct")) arguments->doors.direct = true;
    else if (!strcmp(option, "--cradle")) add_cradle(arguments, &reader);
    else refuse(option);
  }
  refuse_contradictions(arguments);
}

void arguments_wipe(char **argv, char **envp)
{
  for (char **lists[] = { argv, envp, NULL }, ***list = lists; *list; list++)
    for (char **text = *list; *text; text++) memset(*text, 0, strlen(*text));
}
