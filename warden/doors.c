#include "doors.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "routes.h"

enum { BACKLOG = 256, BUFFER_BYTES = 262144 };

union place {
  struct sockaddr any;
  struct sockaddr_in four;
  struct sockaddr_in6 six;
};

static const union place FOUR_HERE = { .four = { .sin_family = AF_INET, .sin_addr.s_addr = __builtin_bswap32(INADDR_LOOPBACK) } };
static const union place FOUR_ANY = { .four = { .sin_family = AF_INET } };
static const union place SIX_HERE = { .six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT } };
static const union place SIX_ANY = { .six = { .sin6_family = AF_INET6 } };

static void set(int fd, int level, int name, int value)
{
  setsockopt(fd, level, name, &value, sizeof value);
}

/* What is not read waits in the kernel, which counts it to nobody in particular: there must be little of it. */
static void arrange(int fd, const union place *place, int type)
{
  const bool stream = type == SOCK_STREAM;
  if (place->any.sa_family == AF_INET6) set(fd, IPPROTO_IPV6, IPV6_V6ONLY, place == &SIX_HERE);
  if (stream) set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  set(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
  set(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES);
  /* Nothing is lost on the way, and nobody shares it: what paces itself, as the host's choice may, does so for nothing. Those that are taken in have it from here. */
  if (stream) setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", sizeof "reno" - 1);
  if (stream) return set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  /* An answer comes from where the question went, which is an address of nobody's. */
  set(fd, IPPROTO_IP, IP_FREEBIND, 1);
  if (place->any.sa_family == AF_INET6) set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
  else set(fd, IPPROTO_IP, IP_PKTINFO, 1);
}

/* -1 with errno. */
static int bind_at(const union place *place, uint16_t port, int type)
{
  union place at = *place;
  socklen_t length = at.any.sa_family == AF_INET6 ? sizeof at.six : sizeof at.four;
  /* At the same place in both. */
  at.four.sin_port = htons(port);
  int fd = socket(at.any.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  arrange(fd, place, type);
  if (bind(fd, &at.any, length) == 0 && (type == SOCK_DGRAM || listen(fd, BACKLOG) == 0)) return fd;
  int error = errno;
  close(fd);
  errno = error;
  return -1;
}

static int add(struct doors *doors, int fd, struct door door)
{
  if (fd < 0) return -1;
  door.fd = fd;
  doors->list[doors->count++] = door;
  return 0;
}

static bool is_without_six(void)
{
  int fd = bind_at(&SIX_HERE, 0, SOCK_DGRAM);
  if (fd >= 0) close(fd);
  return fd < 0;
}

/* One for both families, where there are both. */
static int bind_anywhere(uint16_t port, int type)
{
  int fd = bind_at(&SIX_ANY, port, type);
  return fd < 0 && errno == EAFNOSUPPORT ? bind_at(&FOUR_ANY, port, type) : fd;
}

static int open_direct(struct doors *doors, const char **object)
{
  const bool four_only = is_without_six();
  *object = "the routes to itself";
  if (routes_bring_home(AF_INET) < 0 || (!four_only && routes_bring_home(AF_INET6) < 0)) return -1;
  *object = "the door for DNS";
  if (add(doors, bind_anywhere(DOORS_DNS, SOCK_DGRAM), (struct door){ .kind = DOOR_QUERIES, .port = DOORS_DNS }) < 0) return -1;
  return add(doors, bind_anywhere(DOORS_DNS, SOCK_STREAM), (struct door){ .kind = DOOR_DIRECT, .port = DOORS_DNS });
}

/* Also where some could not be had: -1 with the errno of the last of them. A port that another has is left to it. */
static int add_ports(const struct doors_plan *plan, struct doors *doors)
{
  int error = 0;
  for (uint16_t i = 0; plan->direct && i < plan->port_count; i++) {
    const uint16_t port = plan->ports[i];
    bool there = false;
    for (size_t each = 0; each < doors->count; each++) there = there || doors->list[each].port == port;
    if (!there && add(doors, bind_anywhere(port, SOCK_STREAM), (struct door){ .kind = DOOR_DIRECT, .port = port }) < 0 && errno != EADDRINUSE) error = errno;
  }
  errno = error;
  return error ? -1 : 0;
}

int doors_open(const struct doors_plan *plan, struct doors *doors, const char **object)
{
  const struct door proxy = { .kind = DOOR_PROXY, .port = plan->proxy };
  doors->count = 0;
  if (!plan->proxy) return 0;
  *object = "the door of the proxy";
  if (add(doors, bind_at(&FOUR_HERE, plan->proxy, SOCK_STREAM), proxy) < 0) return -1;
  if (add(doors, bind_at(&SIX_HERE, plan->proxy, SOCK_STREAM), proxy) < 0 && !is_without_six()) return -1;
  if (plan->direct && open_direct(doors, object) < 0) return -1;
  *object = "the door of a port";
  return add_ports(plan, doors);
}

static bool is_wanted(const struct doors_plan *plan, const struct door *door)
{
  bool wanted = door->kind != DOOR_DIRECT || door->port == DOORS_DNS;
  for (uint16_t i = 0; i < plan->port_count; i++) wanted = wanted || plan->ports[i] == door->port;
  return wanted;
}

void doors_replace_ports(const struct doors_plan *plan, struct doors *doors)
{
  size_t kept = 0;
  for (size_t i = 0; i < doors->count; i++) {
    if (is_wanted(plan, &doors->list[i])) doors->list[kept++] = doors->list[i];
    else close(doors->list[i].fd);
  }
  doors->count = kept;
  add_ports(plan, doors);
}

void doors_close(struct doors *doors)
{
  for (size_t i = 0; i < doors->count; i++) close(doors->list[i].fd);
  doors->count = 0;
}
