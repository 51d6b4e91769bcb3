package image

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// build makes the image in a directory beside its final one and renames it when it is complete.
func (o Options) build(ctx context.Context, final string) error {
	// While we hold the lock, any work directory of this flavour belongs to a dead build.
	prefix := "build-" + string(o.Flavour) + "-"
	old, _ := filepath.Glob(filepath.Join(o.CacheDir, prefix+"*"))
	for _, dir := range old {
		os.RemoveAll(dir)
	}
	work, err := os.MkdirTemp(o.CacheDir, prefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	root, result := filepath.Join(work, "root"), filepath.Join(work, "image")
	for _, dir := range []string{root, result} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	packages, err := o.packages(ctx, work, root)
	if err != nil {
		return err
	}
	o.Log("making the initramfs")
	img, err := o.assemble(ctx, root, result)
	if err != nil {
		return err
	}
	img.Packages = packages
	about, err := json.MarshalIndent(img, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(result, aboutFile), about, 0o644); err != nil {
		return err
	}
	// A directory that load refused would prevent the rename.
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	return os.Rename(result, final)
}

// packages downloads the packages of the image and unpacks them below root. If the system's package lists do not work,
// it tries once more with fresh ones.
func (o Options) packages(ctx context.Context, work, root string) (names []string, err error) {
	a := apt{dir: filepath.Join(o.CacheDir, "packages"), log: o.Log}
	if err := os.MkdirAll(a.dir, 0o755); err != nil {
		return nil, err
	}
	list, debs, err := o.fetch(ctx, a)
	if err != nil && ctx.Err() == nil && !errors.Is(err, exec.ErrNotFound) {
		fresh, updateErr := a.update(ctx, filepath.Join(work, "lists"))
		if updateErr != nil {
			return nil, fmt.Errorf("%w; %w", err, updateErr)
		}
		list, debs, err = o.fetch(ctx, fresh)
	}
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		names = append(names, p.name+"="+p.version)
	}
	for _, file := range o.kernelFiles() {
		names, debs = append(names, filepath.Base(file)), append(debs, file)
	}
	for i, name := range names {
		o.Log("unpacking %s", name)
		if err := unpack(ctx, debs[i], root); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// fetch finds out which packages the image needs and returns them with the paths of their .deb files.
func (o Options) fetch(ctx context.Context, a apt) (list []*debPackage, debs []string, err error) {
	if list, err = o.findKernel(ctx, a); err != nil {
		return nil, nil, err
	}
	busybox, err := a.show(ctx, "busybox-static")
	if err != nil {
		return nil, nil, err
	}
	if busybox == nil {
		return nil, nil, errors.New("apt does not know the package busybox-static")
	}
	list = append(list, busybox)
	for _, p := range list {
		deb, err := a.fetch(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		debs = append(debs, deb)
	}
	return list, debs, nil
}

// assemble makes kernel and initramfs in result from the packages unpacked below root.
func (o Options) assemble(ctx context.Context, root, result string) (*Image, error) {
	kernel, err := one(root, "boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
	if err != nil {
		return nil, err
	}
	busybox, err := one(root, "bin/busybox", "usr/bin/busybox")
	if err != nil {
		return nil, err
	}
	img := &Image{Release: strings.TrimPrefix(filepath.Base(kernel), "vmlinuz-")}
	if img.Release == "vmlinuz" { // in the directory of its modules
		img.Release = filepath.Base(filepath.Dir(kernel))
	}
	var a Archive
	if err := a.HostFile("bin/busybox", busybox); err != nil {
		return nil, err
	}
	a.File("init", 0o755, initScript)
	// The first process's standard streams; the kernel opens it before /dev is mounted.
	a.charDevice("dev/console", 5, 1)
	modules, err := one(root, "lib/modules/"+img.Release, "usr/lib/modules/"+img.Release)
	if err != nil {
		return nil, err
	}
	if img.Modules, err = o.addModules(ctx, &a, modules); err != nil {
		return nil, err
	}
	if err := writeGzip(filepath.Join(result, initrdFile), &a); err != nil {
		return nil, err
	}
	return img, o.placeKernel(ctx, kernel, result)
}

// addModules puts the flavour's modules below /modules of the initramfs: NAME.ko, and for each module that a guest may
// request NAME.order with the names to load, dependencies first.
func (o Options) addModules(ctx context.Context, a *Archive, dir string) ([]string, error) {
	tree, err := readModuleTree(dir)
	if err != nil {
		return nil, err
	}
	_, wanted, err := o.Flavour.contents()
	if err != nil {
		return nil, err
	}
	for _, name := range wanted {
		list, err := tree.closure(ctx, name)
		if err != nil {
			return nil, err
		}
		var order strings.Builder
		for _, m := range list {
			a.File("modules/"+m.name+".ko", 0o644, m.data)
			order.WriteString(m.name + "\n")
		}
		a.File("modules/"+name+".order", 0o644, []byte(order.String()))
	}
	slices.Sort(wanted)
	return wanted, nil
}

// one finds the single file below root that matches one of the patterns.
func one(root string, patterns ...string) (string, error) {
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(root, p))
		if err != nil {
			return "", err
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("the packages do not have exactly one %s", strings.Join(patterns, " or "))
}

// writeGzip writes the archive compressed.
func writeGzip(file string, a io.WriterTo) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	if _, err := a.WriteTo(z); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return f.Close()
}
