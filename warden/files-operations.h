/* One function for each request of FILES.md: it answers with whatever replies belong to it and then exactly one DONE or ERROR. */
#ifndef GLOVEBOX_FILES_OPERATIONS_H
#define GLOVEBOX_FILES_OPERATIONS_H

#include "files-frames.h"

typedef void files_operation(struct files *files, const struct request *request);

files_operation files_stat, files_read, files_write, files_list, files_mkdir, files_move, files_copy, files_remove, files_symlink, files_chmod;
files_operation files_watch, files_search, files_pack, files_unpack, files_processes;

#endif
