#include "routes.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A route without a destination, and its one attribute. */
struct request {
  struct nlmsghdr header;
  struct rtmsg route;
  struct rtattr attribute;
  uint32_t interface;
};

struct answer {
  struct nlmsghdr header;
  struct nlmsgerr error;
  struct request request; /* the kernel sends back what it refused */
};

static int ask(int netlink, const struct request *request)
{
  struct answer answer = { 0 };
  ssize_t got;
  if (send(netlink, request, sizeof *request, 0) < 0) return -1;
  while ((got = recv(netlink, &answer, sizeof answer, MSG_TRUNC)) < 0 && errno == EINTR) { }
  if (got < 0) return -1;
  errno = got >= (ssize_t)NLMSG_LENGTH(sizeof answer.error) && answer.header.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EPROTO;
  return errno ? -1 : 0;
}

int routes_bring_home(int family)
{
  struct request request = {
    .header = { .nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWROUTE, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL },
    /* In the table that /proc shows, so that everyone can read what is so. */
    .route = { .rtm_family = (unsigned char)family, .rtm_table = RT_TABLE_MAIN, .rtm_protocol = RTPROT_STATIC, .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL },
    .attribute = { .rta_len = RTA_LENGTH(sizeof request.interface), .rta_type = RTA_OIF },
    .interface = if_nametoindex("lo"),
  };
  int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (netlink < 0) return -1;
  int result = ask(netlink, &request), error = errno;
  close(netlink);
  errno = error;
  return result;
}
