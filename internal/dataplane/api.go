package dataplane

//go:generate go tool bpf2go -cc clang-19 -target bpfel -no-global-types -cflags "-I../../bpf -O2 -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -mcpu=v3" vswitch ../../bpf/switch.bpf.c
//go:generate go tool bpf2go -cc clang-19 -target bpfel -no-global-types -cflags "-I../../bpf -O2 -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -mcpu=v3" capturing ../../bpf/capturing.bpf.c
//go:generate go tool bpf2go -cc clang-19 -target bpfel -no-global-types -cflags "-I../../bpf -O2 -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -mcpu=v3" overlay ../../bpf/overlay.bpf.c
//go:generate go tool bpf2go -cc clang-19 -target bpfel -no-global-types -cflags "-I../../bpf -O2 -Wall -Wextra -Wno-unused-parameter -Wno-unused-function -mcpu=v3" capturingtunnel ../../bpf/capturingtunnel.bpf.c

import (
	"log/slog"
)

// Options say where an instance is in the file system, and how large its tables are.
type Options struct {
	// PinDir is a directory for this agent alone on a mounted bpffs; it is created when missing.
	PinDir string
	// MACTable is how many learned MACs the table holds, 0 = the default (spec.HostSettings).
	MACTable int
	Log      *slog.Logger
}
