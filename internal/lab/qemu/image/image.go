package image

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

//go:embed init.sh
var initScript []byte

// Flavour says which kernel a guest gets.
type Flavour string

const (
	// Cloud is the distribution's kernel for virtual machines: small, with virtio-net and 802.1Q.
	Cloud Flavour = "cloud"
	// Full is the distribution's kernel for any machine: it also has e1000 and e1000e, and what guests within a guest
	// need, bridges and veths.
	Full Flavour = "full"
	// Host is a kernel that Heddle runs on, for any machine: it also has what a hypervisor uses, such as taps,
	// bonds and bridges. Options.Kernel selects it; by default it is OldestKernel.
	Host Flavour = "host"
)

// OldestKernel is the oldest kernel series with tcx (Linux 6.6) for which Debian 12 and 13 have packages.
const OldestKernel = "6.12"

// contents returns the kernel's meta packages, Debian's name before Ubuntu's, and the modules that guests may ask for.
func (f Flavour) contents() (metas, modules []string, err error) {
	modules = []string{"virtio_pci", "virtio_net", "8021q"}
	switch f {
	case Cloud:
		return []string{"linux-image-cloud-amd64", "linux-image-virtual"}, modules, nil
	case Full:
		return []string{"linux-image-amd64", "linux-image-generic"}, append(modules, "e1000", "e1000e",
			"veth", "bridge"), nil
	case Host:
		return nil, append(modules, "e1000e", "igb", "vmxnet3", "veth", "tun", "bonding", "bridge", "vxlan"), nil
	}
	return nil, nil, fmt.Errorf("guest image: unknown flavour %q (known: %s, %s, %s)", f, Cloud, Full, Host)
}

// Options says what to build and where to keep it.
type Options struct {
	Flavour Flavour
	// Kernel is for the flavour Host: a kernel series that apt knows, such as "6.12", or the paths of the .deb files
	// that a kernel and its modules come in, separated by commas. Empty means OldestKernel.
	Kernel string
	// CacheDir keeps downloads and images between runs; empty means DefaultCacheDir.
	CacheDir string
	// Log gets the steps that take seconds; nil means silence.
	Log func(format string, args ...any)
}

// Image is a guest image on disk. The files belong to the cache: they must not be changed, and stay until someone
// removes the cache directory.
type Image struct {
	Kernel  string `json:"-"` // path of the kernel, compressed or an ELF file
	Initrd  string `json:"-"` // path of the gzip-compressed initramfs; more archives may be appended
	Release string `json:"release"`
	// Modules are the names that the word heddle.modules on the kernel command line may list.
	Modules  []string `json:"modules"`
	Packages []string `json:"packages"` // name=version of the packages the image was made from
}

// DefaultCacheDir is heddle/guests in the user's cache directory ($XDG_CACHE_HOME or ~/.cache), or in /var/cache for a
// process that has no home.
func DefaultCacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = "/var/cache"
	}
	return filepath.Join(dir, "heddle", "guests")
}

// Build returns the image from the cache, or makes it first: that needs apt, a network, and up to 600 MB of disk for
// some seconds. Several processes may call it at once: one builds, the others wait until ctx ends. An interrupted build
// leaves finished downloads for the next one and no half image.
func Build(ctx context.Context, o Options) (*Image, error) {
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("guest image: only made on amd64 so far, this is %s", runtime.GOARCH)
	}
	if _, _, err := o.Flavour.contents(); err != nil {
		return nil, err
	}
	if err := o.checkKernel(); err != nil {
		return nil, err
	}
	if o.CacheDir == "" {
		o.CacheDir = DefaultCacheDir()
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	recipe, err := o.recipe()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.CacheDir, fmt.Sprintf("%s-%s", o.Flavour, recipe))
	if img, err := load(dir); err == nil {
		return img, nil
	}
	if err := os.MkdirAll(o.CacheDir, 0o755); err != nil {
		return nil, fmt.Errorf("guest image: cache directory: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(o.CacheDir, string(o.Flavour)+".lock"))
	if err != nil {
		return nil, fmt.Errorf("guest image: wait for another process that builds it: %w", err)
	}
	defer unlock()
	if img, err := load(dir); err == nil {
		return img, nil
	}
	if err := o.build(ctx, dir); err != nil {
		return nil, fmt.Errorf("guest image (%s kernel) in %s: %w", o.Flavour, o.CacheDir, explain(err))
	}
	return load(dir)
}

// recipe names what the image is made of besides packages of the distribution, so that a changed program or another
// kernel makes a new image.
func (o Options) recipe() (string, error) {
	metas, modules, _ := o.Flavour.contents()
	h := sha256.New()
	fmt.Fprintln(h, "layout 2", metas, modules)
	h.Write(initScript)
	if o.Flavour == Host {
		fmt.Fprintln(h, o.kernelSeries())
	}
	for _, file := range o.kernelFiles() {
		about, err := os.Stat(file)
		if err != nil {
			return "", fmt.Errorf("guest image: kernel package: %w", err)
		}
		fmt.Fprintln(h, file, about.Size(), about.ModTime().UnixNano())
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:12], nil
}

// explain adds what to do to errors that do not say it.
func explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "No space left") {
		return fmt.Errorf("%w (600 MB are needed for a moment; choose another cache directory)", err)
	}
	return err
}

const (
	kernelFile = "vmlinuz"
	initrdFile = "initrd.gz"
	aboutFile  = "image.json"
)

// load opens an image that was finished before.
func load(dir string) (*Image, error) {
	about, err := os.ReadFile(filepath.Join(dir, aboutFile))
	if err != nil {
		return nil, err
	}
	img := &Image{Kernel: filepath.Join(dir, kernelFile), Initrd: filepath.Join(dir, initrdFile)}
	if err := json.Unmarshal(about, img); err != nil {
		return nil, fmt.Errorf("%s: %w (remove the directory to build it anew)", dir, err)
	}
	for _, f := range []string{img.Kernel, img.Initrd} {
		if _, err := os.Stat(f); err != nil {
			return nil, err
		}
	}
	return img, nil
}

// lock takes an exclusive file lock, which the kernel releases if this process dies, and returns the function that
// releases it.
func lock(ctx context.Context, file string) (func(), error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, err
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}
