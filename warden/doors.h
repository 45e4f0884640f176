/*
 * Doors are the sockets at which what programs want of the world is taken in: the proxy's, on the loopback, and, where programs are to need no proxy, one
 * for each port at which any address at all is taken for the namespace's own. They are opened by whoever is in the namespace and may, and served by the warden.
 */
#ifndef GLOVEBOX_DOORS_H
#define GLOVEBOX_DOORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Both of the proxy, DNS by datagrams and by streams, and the ports. */
enum { DOORS_PORTS_MOST = 64, DOORS_MOST = 4 + DOORS_PORTS_MOST, DOORS_DNS = 53 };

/* As ACCEPTED names them, but for the last. */
enum door_kind { DOOR_PROXY = 1, DOOR_DIRECT = 2, DOOR_QUERIES = 3 };

/* Without pointers: it is sent to those who make liners. */
struct doors_plan {
  uint16_t proxy; /* 0: there are no doors */
  uint8_t direct;
  uint16_t port_count;
  uint16_t ports[DOORS_PORTS_MOST];
};

struct door {
  int fd;
  uint16_t port;
  uint8_t kind;
};

struct doors {
  struct door list[DOORS_MOST];
  size_t count;
};

/*
 * Everything that the plan says, in the namespace that the caller is in; with routes, where it says so. 0, or -1 with errno and what could not be had; what
 * was opened by then is in `doors`. A port that another has is left out.
 */
int doors_open(const struct doors_plan *plan, struct doors *doors, const char **object);
/* The plan's ports instead of those before; what is refused is left out, and so nothing is taken in there. */
void doors_replace_ports(const struct doors_plan *plan, struct doors *doors);
void doors_close(struct doors *doors);

#endif
