/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The switch with the code of captures; see capture/capture.h. */
#define CAPTURING
#include "switch.bpf.c"
