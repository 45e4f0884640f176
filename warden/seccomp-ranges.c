#include "seccomp-ranges.h"

enum { MOST_RANGES = 256, MOST_REACH = 255 };

struct range {
  uint32_t first, action;
  int is_left;
};

struct writing {
  struct range ranges[MOST_RANGES];
  struct sock_filter *code;
  size_t room, length;
  int has_failed;
};

void ranges_note(struct ranges *ranges, uint32_t number, uint32_t action, int conditions) {
  if (number >= RANGES_MOST_CALLS) return;
  ranges->calls[number].action = action;
  ranges->calls[number].has_rule = 1;
  if (conditions > 0) ranges->calls[number].has_conditions = 1;
}

int ranges_leave(const struct ranges *ranges, uint32_t number) {
  return number >= RANGES_MOST_CALLS || ranges->calls[number].has_conditions;
}

static struct range range_at(const struct ranges *ranges, uint32_t number, uint32_t highest) {
  if (number > highest || ranges_leave(ranges, number)) return (struct range){.first = number, .is_left = 1};
  return (struct range){.first = number, .action = ranges->calls[number].has_rule ? ranges->calls[number].action : ranges->fallback};
}

static void put(struct writing *writing, struct sock_filter instruction) {
  if (writing->length == writing->room) writing->has_failed = 1;
  else writing->code[writing->length++] = instruction;
}

static void put_leaf(struct writing *writing, const struct range *range) {
  /* Where the rest begins is known when all is written. */
  if (range->is_left) put(writing, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
  else put(writing, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, range->action));
}

/* Halves the ranges: as deep as there are bits in their count. */
static void put_tree(struct writing *writing, size_t first, size_t end) {
  if (end - first == 1) return put_leaf(writing, &writing->ranges[first]);
  size_t middle = first + (end - first) / 2;
  size_t node = writing->length;
  put(writing, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, writing->ranges[middle].first, 0, 0));
  put_tree(writing, first, middle);
  size_t reach = writing->length - node - 1;
  if (reach > MOST_REACH) writing->has_failed = 1;
  if (writing->has_failed) return;
  writing->code[node].jt = (unsigned char)reach;
  put_tree(writing, middle, end);
}

size_t ranges_write(const struct ranges *ranges, uint32_t highest, struct sock_filter *code, size_t room) {
  struct writing writing = {.code = code, .room = room};
  size_t count = 0;
  if (highest >= RANGES_MOST_CALLS) highest = RANGES_MOST_CALLS - 1;
  for (uint32_t number = 0; number <= highest + 1; number++) {
    struct range range = range_at(ranges, number, highest);
    if (count > 0 && range.is_left == writing.ranges[count - 1].is_left && range.action == writing.ranges[count - 1].action) continue;
    if (count == MOST_RANGES) return 0;
    writing.ranges[count++] = range;
  }
  put_tree(&writing, 0, count);
  if (writing.has_failed) return 0;
  for (size_t i = 0; i < writing.length; i++)
    if (code[i].code == (BPF_JMP | BPF_JA)) code[i].k = (uint32_t)(writing.length - i - 1);
  return writing.length;
}
