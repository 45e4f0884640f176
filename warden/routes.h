/* Routes of the namespace that the caller is in. */
#ifndef GLOVEBOX_ROUTES_H
#define GLOVEBOX_ROUTES_H

/* Whatever address of this family a program sends to, it reaches the namespace itself. 0, or -1 with errno. Needs CAP_NET_ADMIN there. */
int routes_bring_home(int family);

#endif
