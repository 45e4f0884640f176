/* The requests of FILES.md. Pure: bytes in, a copy of their fields out; no I/O and no allocation. */
#ifndef GLOVEBOX_FILES_REQUEST_H
#define GLOVEBOX_FILES_REQUEST_H

#include <stddef.h>
#include <stdint.h>

enum {
  FILES_HEADER = 8,
  FILES_PAYLOAD_MOST = 65536,
  FILES_DATA_MOST = 262144 - FILES_HEADER, /* with its header as long as a widened pipe holds */
  FILES_CONTENT_MOST = 1048576, /* never held as a whole */
  FILES_PATH_MOST = 4095,
  FILES_MODE_MOST = 07777,
};

enum files_type {
  FILES_STAT = 0x01,
  FILES_READ = 0x02,
  FILES_WRITE = 0x03,
  FILES_LIST = 0x04,
  FILES_MKDIR = 0x05,
  FILES_MOVE = 0x06,
  FILES_COPY = 0x07,
  FILES_REMOVE = 0x08,
  FILES_SYMLINK = 0x09,
  FILES_CHMOD = 0x0a,
  FILES_WATCH = 0x0b,
  FILES_SEARCH = 0x0c,
  FILES_PACK = 0x0d,
  FILES_UNPACK = 0x0e,
  FILES_PROCESSES = 0x0f,
  FILES_CONTENT = 0x40,
  FILES_END = 0x41,
};

enum files_flag {
  STAT_FOLLOW = 1,
  STAT_HASH = 2,
  WRITE_APPEND = 1,
  WRITE_ATOMIC = 2,
  WRITE_EXCLUSIVE = 4,
  LIST_HIDDEN = 1,
  LIST_HASH = 2,
  LIST_ONE_FILESYSTEM = 4,
  PACK_ONE_FILESYSTEM = 4,
  IN_LAYERS = 8, /* of LIST and PACK: the path is relative to the layers folder */
  COPY_EXCLUSIVE = 1,
  REMOVE_RECURSIVE = 1,
  WATCH_RECURSIVE = 1,
  SEARCH_REGEX = 1,
  SEARCH_IGNORE_CASE = 2,
  SEARCH_HIDDEN = 4,
  UNPACK_OWNER = 1,
  UNPACK_MARKS = 2,
};

struct request {
  uint8_t type;
  uint32_t flags;
  uint32_t number; /* mode, depth or the most matches; UINT32_MAX where a mode was not given */
  uint64_t offset, length;
  char path[FILES_PATH_MOST + 1];
  char other[FILES_PATH_MOST + 1]; /* where to, target or pattern */
};

/* What is wrong with a header whose payload may not even have arrived; NULL when nothing is. */
const char *request_header_fault(const uint8_t *header);
/* Takes the payload of a request (neither CONTENT nor END) apart; NULL, or what is wrong with it. */
const char *request_parse(uint8_t type, const uint8_t *payload, size_t length, struct request *request);

#endif
