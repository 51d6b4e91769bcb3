package lab

import (
	"errors"
	"fmt"
	"os"

	"heddle/internal/dataplane"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/scenario"
)

// Check returns why labs cannot be built on this machine, nil if they can. It tries what they need: it loads the switch
// program, and makes a namespace with each kind of device, which it removes again.
func Check() error { return check(os.Geteuid()) }

func check(user int) error {
	if user != 0 {
		return errors.New("labs take root: they are network namespaces and programs in the kernel")
	}
	if err := dataplane.CheckKernel(); err != nil {
		return err
	}
	rec, err := dataplane.NewRecorder()
	if err != nil {
		return err
	}
	if err := rec.Close(); err != nil {
		return err
	}
	ns, err := netns.New(fmt.Sprintf("labcheck%d", os.Getpid()))
	if err != nil {
		return err
	}
	return errors.Join(checkDevices(ns), ns.Delete())
}

// checkDevices makes a shaped cable into a bridge.
func checkDevices(ns *netns.NS) error {
	if err := cable(end{ns: ns, device: "a"}, end{ns: ns, device: "b"}, 1500); err != nil {
		return err
	}
	const rate = scenario.Rate(10_000_000_000) // as the experiments' links have
	if err := shape(ns, "a", rate); err != nil {
		return err
	}
	return bridge(ns, bridgeDevice, []string{"b"})
}
