/*
 * The file worker: serves FILES.md on two descriptors, with the rights of whoever it runs as.
 *
 * It is a program of the guest's without an execve: the warden forks it as it forks any program, with the guest's ids, rules and filter, and calls
 * this in place of execve. It opens what the engine names, so that no process with other rights ever has to open what a guest made.
 */
#ifndef GLOVEBOX_FILES_H
#define GLOVEBOX_FILES_H

/* Serves until `input` ends: the exit status to end with. `layers` is the folder that holds the upper folders of overlays, or -1. */
int files_worker(int input, int output, int layers);

#endif
