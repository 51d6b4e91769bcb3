package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heddle/internal/dataplane"
	"heddle/internal/dev/verifier"
	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
)

// guestPatience is how long a guest may take to boot and load the programs.
const guestPatience = 3 * time.Minute

func main() {
	file := flag.String("file", "bpf/verifier-budget.yaml", "the budget")
	write := flag.Bool("write", false, "make what is measured the budget")
	guests := flag.String("kernels", image.OldestKernel,
		"kernels to measure in guests, separated by spaces: series, or paths of .deb files")
	measure := flag.Bool("measure", false, "print what the running kernel says as JSON, and do nothing else")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, *file, *write, *measure, strings.Fields(*guests))
	if err != nil {
		fmt.Fprintln(os.Stderr, "verifier-budget:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, file string, write, measure bool, guests []string) error {
	here, err := running()
	if err != nil {
		return err
	}
	if measure {
		return json.NewEncoder(os.Stdout).Encode(here)
	}
	budget, err := verifier.Read(file)
	if err != nil {
		return err
	}
	all := []verifier.Measured{here}
	for _, kernel := range guests {
		m, err := inGuest(ctx, kernel)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", kernel, err)
		}
		all = append(all, m)
	}
	faults := 0
	for _, m := range all {
		n, err := show(budget, m)
		if err != nil {
			return err
		}
		faults += n
		if over := budget.OverCaps(m); write && len(over) > 0 {
			return fmt.Errorf("kernel %s: %s; %s stays as it is", m.Release, strings.Join(over, "; "), file)
		}
		if write {
			budget.Set(m)
		}
	}
	if write {
		return budget.Write(file)
	}
	if faults > 0 {
		return fmt.Errorf("%d programs are not as %s says: make them cheaper, or put up with it by: make "+
			"verifier-budget", faults, file)
	}
	return nil
}

// show prints one kernel's table and gives how many programs have faults.
func show(b *verifier.Budget, m verifier.Measured) (faults int, err error) {
	rows, known := b.Compare(m)
	fmt.Printf("\nkernel %s", m.Release)
	if !known {
		fmt.Printf(" (series %s is not in the budget: shown, not held)", m.Series())
	}
	fmt.Println()
	for _, r := range rows {
		for _, f := range r.Faults {
			fmt.Printf("%s: %s\n", r.Program, f)
		}
		if len(r.Faults) > 0 {
			faults++
		}
	}
	return faults, verifier.WriteTable(os.Stdout, rows)
}

// running measures the kernel this process runs on.
func running() (verifier.Measured, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return verifier.Measured{}, err
	}
	costs, err := dataplane.MeasureVerifier()
	return verifier.Measured{Release: unix.ByteSliceToString(u.Release[:]), Programs: costs}, err
}

// inGuest measures another kernel by running this program in a guest.
func inGuest(ctx context.Context, kernel string) (m verifier.Measured, err error) {
	ctx, cancel := context.WithTimeout(ctx, guestPatience)
	defer cancel()
	img, err := image.Build(ctx, image.Options{Flavour: image.Host, Kernel: kernel})
	if err != nil {
		return m, err
	}
	self, err := os.Executable()
	if err != nil {
		return m, err
	}
	// No other process can have the tap of that name: the id is this process's.
	g, err := qemu.Start(ctx, qemu.Options{Name: "verifier", Tap: fmt.Sprintf("hvb%d", os.Getpid()), Image: img,
		MemoryMB: 2048,
		Files:    map[string]string{"/bin/verifier-budget": self}})
	if err != nil {
		return m, err
	}
	defer func() {
		if stop := g.Stop(); err == nil {
			err = stop
		}
	}()
	r, err := g.Run(ctx, "/bin/verifier-budget -measure")
	if err != nil {
		return m, err
	}
	if r.ExitCode != 0 {
		return m, fmt.Errorf("the program ended with %d in the guest (it must be built with CGO_ENABLED=0): %s",
			r.ExitCode, r.Stderr)
	}
	return m, json.Unmarshal([]byte(r.Stdout), &m)
}
