/* file-worker [FOLDER]: the file worker alone, on stdin and stdout, with FOLDER as its layers folder. For tests only. */
#include <fcntl.h>

#include "../../../warden/files.h"

int main(int argc, char **argv)
{
  return files_worker(0, 1, argc > 1 ? open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1);
}
