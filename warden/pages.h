/* Large buffers that a fork does not carry along: no keeper pins them, and none holds another run's bytes. */
#ifndef GLOVEBOX_PAGES_H
#define GLOVEBOX_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* NULL when there is no memory. */
uint8_t *pages_map(size_t length);
void pages_unmap(uint8_t *bytes, size_t length);
/* The kernel takes whole pages back that hold nothing from `from` on for `length` bytes, nor in front of it on the same page. */
void pages_forget(uint8_t *bytes, size_t from, size_t length);
/* Like realloc: the same bytes in another length, maybe elsewhere; NULL leaves all as it was. */
uint8_t *pages_resize(uint8_t *bytes, size_t from, size_t to);

#endif
