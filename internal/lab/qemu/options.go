package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"

	"heddle/internal/host/qmp"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/qemu/image"
)

// NIC is the model of a guest's network card.
type NIC string

// The network cards a guest can have. The e1000 family needs the full kernel image, vmxnet3 the one of hosts.
const (
	VirtioNet NIC = "virtio-net"
	E1000     NIC = "e1000"
	E1000E    NIC = "e1000e"
	VMXNet3   NIC = "vmxnet3"
)

// device gives QEMU's name of the card and the modules its driver needs in the guest.
func (n NIC) device() (name string, modules []string, err error) {
	switch n {
	case VirtioNet:
		return "virtio-net-pci", []string{"virtio_pci", "virtio_net"}, nil
	case E1000:
		return "e1000", []string{"e1000"}, nil
	case E1000E:
		return "e1000e", []string{"e1000e"}, nil
	case VMXNet3:
		return "vmxnet3", []string{"vmxnet3"}, nil
	}
	return "", nil, fmt.Errorf("unknown network card %q (known: %s, %s, %s, %s)", n, VirtioNet, E1000, E1000E, VMXNet3)
}

// Flavour is the image that has a driver for the card.
func (n NIC) Flavour() image.Flavour {
	switch n {
	case VirtioNet:
		return image.Cloud
	case VMXNet3:
		return image.Host
	}
	return image.Full
}

// Options describes a guest.
type Options struct {
	Name string // letters, digits, '-', '_' and '.': also the guest's host name
	// NetNS is the namespace with the tap, where QEMU runs; nil means this process's.
	NetNS *netns.NS
	// Tap is the device to which the card is connected. An existing one is used as it is; otherwise it is created
	// like by CreateTap and removed with the guest.
	Tap string
	NIC NIC              // empty means VirtioNet
	MAC net.HardwareAddr // of the card; nil means a local address made from the name
	// Addrs are the addresses of the guest's interface, with prefix length: "192.0.2.1/24", "2001:db8::1/64".
	Addrs []string
	MTU   int // of the guest's card, 68…65535; 0 means the card's default, 1500
	// VLAN gives the addresses to a VLAN interface eth0.VLAN in place of eth0, 1…4094; 0 means none.
	VLAN int
	// Queues is the number of queue pairs and of the guest's CPUs, 1…8; 0 means 1. More than one needs VirtioNet.
	Queues   int
	MemoryMB int // 0 means 256
	// Modules are loaded in the guest in addition to its card's; the image must have them (image.Image.Modules).
	Modules []string
	// Files are copied into the guest before it starts: path in the guest → file of this machine.
	Files map[string]string
	// Image is what to boot; nil means the one for the card from the default cache, built if needed.
	Image *image.Image
	// Console receives what the guest's kernel prints, and blocks the guest while it blocks; nil stores only the
	// end of that, for error messages.
	Console io.Writer
	// OnEvent is called with QEMU's asynchronous events (QMP), in order, from one goroutine; it must not block. May be
	// nil.
	OnEvent func(qmp.Event)
	// Incoming is where the guest arrives from another QEMU by migration, as in QEMU's option -incoming; it has booted
	// there already. Commands that are run earlier wait for it. Empty: it boots here.
	Incoming string
	// ExtraArgs are added to QEMU's command line.
	ExtraArgs []string
}

// withDefaults fills in what may be left out and checks the rest. All faults are reported at once.
func (o Options) withDefaults() (Options, error) {
	if o.NIC == "" {
		o.NIC = VirtioNet
	}
	if o.Queues == 0 {
		o.Queues = 1
	}
	if o.MemoryMB == 0 {
		o.MemoryMB = 256
	}
	if o.MAC == nil {
		o.MAC = localMAC(o.Name)
	}
	_, _, err := o.NIC.device()
	faults := []error{err}
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(!plainName(o.Name), "name %q: must consist of letters, digits, '-', '_' and '.'", o.Name)
	fault(!plainName(o.Tap) || len(o.Tap) > 15, "tap %q: must be a device name of at most 15 characters", o.Tap)
	fault(len(o.MAC) != 6 || o.MAC[0]&1 != 0, "MAC %s: must be a unicast Ethernet address", o.MAC)
	fault(o.MTU != 0 && (o.MTU < 68 || o.MTU > 65535), "MTU %d: must be 68…65535", o.MTU)
	fault(o.VLAN < 0 || o.VLAN > 4094, "VLAN %d: must be 1…4094, or 0 for none", o.VLAN)
	fault(o.Queues < 1 || o.Queues > 8, "queues %d: must be 1…8", o.Queues)
	fault(o.Queues > 1 && o.NIC != VirtioNet, "queues %d: the card %s has one", o.Queues, o.NIC)
	fault(o.MemoryMB < 96, "memory %d MB: must be at least 96", o.MemoryMB)
	for _, a := range o.Addrs {
		_, err := netip.ParsePrefix(a)
		fault(err != nil, "address %q: must be like 192.0.2.1/24", a)
	}
	if err := errors.Join(faults...); err != nil {
		return o, fmt.Errorf("guest %s: %w", o.Name, err)
	}
	return o, nil
}

// plainName reports whether the text is safe as a name in QEMU's options and on the kernel's command line.
func plainName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}

// image returns the image to boot, and checks that it has the card's driver.
func (o Options) image(ctx context.Context) (*image.Image, error) {
	if o.Image != nil {
		return o.Image, nil
	}
	return image.Build(ctx, image.Options{Flavour: o.NIC.Flavour()})
}

// sockets are the paths of the unix sockets that QEMU connects to.
type sockets struct{ qmp, run string }

// args is QEMU's command line.
func (o Options) args(img *image.Image, initrd string, s sockets) ([]string, error) {
	device, modules, err := o.NIC.device()
	if err != nil {
		return nil, err
	}
	netdev := "tap,id=net0,script=no,downscript=no,vhost=off,ifname=" + o.Tap
	// The ROM for network boot would take a second of the start and is not used here.
	card := fmt.Sprintf("%s,netdev=net0,romfile=,mac=%s", device, o.MAC)
	if o.Queues > 1 {
		netdev += ",queues=" + strconv.Itoa(o.Queues)
		// Two interrupt vectors for each queue pair, one for configuration changes and one for the control queue.
		card += fmt.Sprintf(",mq=on,vectors=%d", 2*o.Queues+2)
	}
	// For a machine that can have only one CPU, QEMU before 8.1 leaves memory barriers out of the guest's
	// translated code, although its devices run in a thread of their own: a virtio card then hangs for ever when a
	// notification is missed (QEMU commit c914d46d0a64).
	accel, cpus := "tcg", "1,maxcpus=2"
	if o.Queues > 1 {
		// With a thread for each CPU, QEMU 7 sometimes lets one run into code that another is patching.
		accel, cpus = "tcg,thread=single", strconv.Itoa(o.Queues)
	}
	args := []string{
		"-name", o.Name, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", "pc", "-accel", accel, "-m", strconv.Itoa(o.MemoryMB), "-smp", cpus,
		"-kernel", img.Kernel, "-initrd", initrd, "-append", o.kernelCommandLine(modules),
		"-netdev", netdev, "-device", card,
		"-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-chardev", "socket,id=run,path=" + s.run, "-serial", "chardev:run",
		"-chardev", "socket,id=qmp,path=" + s.qmp, "-mon", "chardev=qmp,mode=control",
	}
	if o.Incoming != "" {
		args = append(args, "-incoming", o.Incoming)
	}
	return append(args, o.ExtraArgs...), nil
}

// kernelCommandLine is the kernel's own words and those that the image's /init reads.
func (o Options) kernelCommandLine(modules []string) string {
	// A kernel that checks whether its timer ticks gives up if a loaded machine lets the guest wait. Its tests of
	// its own ciphers take a fifth of an emulated boot.
	words := []string{"console=ttyS0", "panic=-1", "no_timer_check", "cryptomgr.notests", "heddle.name=" + o.Name}
	if o.Console == nil {
		// Each message costs milliseconds of emulated serial port.
		words = append(words, "quiet")
	}
	modules = append(modules, o.Modules...)
	if o.VLAN != 0 {
		modules = append(modules, "8021q")
		words = append(words, "heddle.vlan="+strconv.Itoa(o.VLAN))
	}
	words = append(words, "heddle.modules="+strings.Join(modules, ","))
	if o.MTU != 0 {
		words = append(words, "heddle.mtu="+strconv.Itoa(o.MTU))
	}
	if len(o.Addrs) > 0 {
		words = append(words, "heddle.addrs="+strings.Join(o.Addrs, ","))
	}
	return strings.Join(words, " ")
}

// binary finds QEMU.
func binary() (string, error) {
	path, err := exec.LookPath("qemu-system-x86_64")
	if err != nil {
		return "", fmt.Errorf("QEMU is not installed: install the package qemu-system-x86: %w", err)
	}
	return path, nil
}

// Installed is why no guest can be started on this machine, or nil: QEMU is there.
func Installed() error {
	_, err := binary()
	return err
}
