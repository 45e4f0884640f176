/* From a liner's first process, which may open doors there, to the warden, which serves them. */
#include "doors-handover.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int doors_hand_over(int link, const struct doors *doors)
{
  union doors_control control = { .bytes = { 0 } };
  struct iovec part = { .iov_base = (void *)doors, .iov_len = sizeof *doors };
  struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(doors->count * sizeof(int)) };
  struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
  *rights = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(doors->count * sizeof(int)) };
  for (size_t i = 0; i < doors->count; i++) memcpy(CMSG_DATA(rights) + i * sizeof(int), &doors->list[i].fd, sizeof(int));
  ssize_t done;
  while ((done = sendmsg(link, &header, MSG_NOSIGNAL)) < 0 && errno == EINTR) { }
  if (done < 0) return -1;
  int32_t error;
  while ((done = recv(link, &error, sizeof error, 0)) < 0 && errno == EINTR) { }
  if (done >= 0) errno = done == (ssize_t)sizeof error ? error : EPIPE;
  return done < 0 || errno ? -1 : 0;
}

void doors_answer(int link, int error)
{
  const int32_t answer = error;
  while (send(link, &answer, sizeof answer, MSG_NOSIGNAL) < 0 && errno == EINTR) { }
}

/* Gives each door its descriptor, or closes them all. */
static bool assign(struct cmsghdr *rights, struct doors *doors)
{
  const size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  const bool fits = doors && doors->count == count && count <= DOORS_MOST;
  for (size_t i = 0; i < count; i++) {
    int fd;
    memcpy(&fd, CMSG_DATA(rights) + i * sizeof(int), sizeof fd);
    if (fits) doors->list[i].fd = fd;
    else close(fd);
  }
  return fits;
}

bool doors_take_over(struct msghdr *header, struct doors *doors)
{
  bool taken = false;
  for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part))
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) taken = assign(part, taken ? NULL : doors);
  return taken;
}
