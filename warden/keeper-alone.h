/* What a keeper that is a program of its own finds when it begins: its name, the program's number where both are, and whether that has a gate. */
#ifndef GLOVEBOX_KEEPER_ALONE_H
#define GLOVEBOX_KEEPER_ALONE_H

enum { KEEPER_ALONE_ARGUMENTS = 3, KEEPER_ALONE_GATE = 'g' };
/* The only descriptors. */
enum { KEEPER_ALONE_LINK = 3, KEEPER_ALONE_STATUS = 4 };

#endif
