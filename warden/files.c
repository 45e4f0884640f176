#include "files.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include "die.h"
#include "files-operations.h"

static files_operation *const OPERATIONS[] = {
  [FILES_STAT] = files_stat,       [FILES_READ] = files_read,       [FILES_WRITE] = files_write,
  [FILES_LIST] = files_list,       [FILES_MKDIR] = files_mkdir,     [FILES_MOVE] = files_move,
  [FILES_COPY] = files_copy,       [FILES_REMOVE] = files_remove,   [FILES_SYMLINK] = files_symlink,
  [FILES_CHMOD] = files_chmod,     [FILES_WATCH] = files_watch,     [FILES_SEARCH] = files_search,
  [FILES_PACK] = files_pack,       [FILES_UNPACK] = files_unpack,   [FILES_PROCESSES] = files_processes,
};

static void serve(struct files *files)
{
  struct frame_in frame;
  struct request request;
  while (reply_flush(files) && files_take(files, &frame)) {
    files->fault = request_parse(frame.type, frame.payload, frame.length, &request);
    if (files->fault) return;
    OPERATIONS[request.type](files, &request);
  }
}

int files_worker(int input, int output, int layers)
{
  struct files files = { .input = input, .output = output, .layers = layers };
  /* Modes are given exactly; a reader that is gone and a file that is too large are told by errno, so that what was begun can be undone. */
  umask(0);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
  if (!files_open(&files)) {
    dprintf(2, "files: no memory\n");
    return DIE_STATUS;
  }
  serve(&files);
  files_close(&files);
  if (!files.fault) return 0;
  dprintf(2, "files: %s\n", files.fault);
  return DIE_STATUS;
}
