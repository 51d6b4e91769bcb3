/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The switch, showing what it does; see capture/capture.h. */
#define CAPTURING
#include "switch.bpf.c"
