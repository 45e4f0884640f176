#include "lines.h"

#include <string.h>

#include "../wire.h"

static void add(struct input *input, const void *bytes, size_t length)
{
  if (length > INPUT_MOST - input->length) length = INPUT_MOST - input->length;
  memcpy(input->bytes + input->length, bytes, length);
  input->length += length;
}

static void add_lines(struct input *input, struct chance *chance, const char *const *lines, uint32_t count)
{
  for (uint32_t left = 1 + chance_below(chance, 6); left; left--) {
    const char *line = lines[chance_below(chance, count)];
    add(input, line, strlen(line));
  }
}

/* A `|` is a NUL. */
static void add_words(struct input *input, struct chance *chance, const char *const *lines, uint32_t count)
{
  size_t from = input->length;
  add_lines(input, chance, lines, count);
  for (size_t at = from; at < input->length; at++)
    if (input->bytes[at] == '|') input->bytes[at] = 0;
}

static void add_warden(struct input *input, struct chance *chance)
{
  static const char *const lines[] = {
    "--disk|1000000|1000|--writable|/workspace|1000|1000|755|", "--join|3|", "--enter|5|", "--join-below|4|cgroup.procs|", "--egress|3128|--direct|", "--become|1|1|", "--guests|64|--become|2|2|",
    "--overlay|/usr|3|", "--layers|/l|", "--place|/a|/b|ro,noexec|", "--bind|/a|/b|", "--veil|/v|", "--mask|/m|", "--readonly|/r|", "--pts|--cradle|5|5|", "--tell|", "--hide|--once|",
    "--recognise|7|/x|", "--folder|/f|0|0|700|", "--subreaper|", "--noexec|", "--detach|/d|", "--release|/e|", "--disk-at|/disk|",
  };
  add(input, "warden", 7);
  add_words(input, chance, lines, sizeof lines / sizeof *lines);
}

static void add_launcher(struct input *input, struct chance *chance)
{
  static const char *const lines[] = {
    "--parent|7|", "--await|", "--copied|/x/runc|", "--join|/c/cgroup.procs|", "--enter|5|", "--open|4|/p|", "--open-folder|6|/q|", "--read|8|/r|", "--stage|usr|/usr|", "--veil|etc|/e|", "--mount|9|m|rw|1000|-|",
    "--pass|10|11|", "--root|65536|1000|10|", "--layer|/usr|/usr|", "--devices|", "--map|65536|65536|12|13|", "--inspect|14|", "--build|", "--drop|65536|", "--runtime|65536|", "--closed|",
    "--give|g|ro|/g|", "--show|/s|/t|", "--hide|/h|", "--rootless|", "--fix|/x|", "--within|0|", "--apart|", "--put|5|0|",
  };
  add(input, "launcher", 9);
  add_words(input, chance, lines, sizeof lines / sizeof *lines);
  if (chance_below(chance, 8)) add(input, "--\0/usr/bin/bwrap\0--ro-bind\0/\0/", 32);
}

static void add_requests(struct input *input, struct chance *chance)
{
  static const char words[] = "\3\0\0\0--await\0--\0true";
  for (uint32_t left = 1 + chance_below(chance, 4); left; left--) {
    uint32_t type = 1 + chance_below(chance, 3), length = type == 1 ? sizeof words : type == 2 ? 4 : 0;
    uint8_t header[12];
    wire_put_u32(header, 1 + chance_below(chance, 3));
    wire_put_u32(header + 4, type);
    wire_put_u32(header + 8, length);
    add(input, header, sizeof header);
    add(input, words, length);
  }
}

static void add_filter(struct input *input, struct chance *chance)
{
  static const char *const lines[] = {
    "foreign kill-process\n", "rule allow read\n", "rule errno:38 clone 0 masked-eq 2114060288 0\n", "maybe allow no_such_call\n", "first kill-process ptrace\n", "known write\n", "above errno:38\n",
    "rule allow personality 0 eq 0 1 ne 5\n", "rule log openat 2 ge 0x40 3 lt 7\n", "rule trap 300\n", "rule allow write 0 le 2\n",
  };
  static const char *const defaults[] = { "default errno:1\n", "default allow\n", "default kill-thread\n" };
  const char *first = defaults[chance_below(chance, 3)];
  add(input, first, strlen(first));
  add_lines(input, chance, lines, sizeof lines / sizeof *lines);
}

void lines_seed(struct input *input, struct chance *chance, enum input_kind kind)
{
  if (kind == INPUT_WARDEN_WORDS) add_warden(input, chance);
  if (kind == INPUT_LAUNCHER_WORDS) add_launcher(input, chance);
  if (kind == INPUT_LAUNCHER_REQUESTS) add_requests(input, chance);
  if (kind == INPUT_FILTER_LINES) add_filter(input, chance);
}
