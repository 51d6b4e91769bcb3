/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The tunnel's programs with the code of captures; see capture/capture.h. */
#define CAPTURING
#include "overlay.bpf.c"
