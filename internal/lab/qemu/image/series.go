package image

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strings"
)

// seriesForm is the form of a kernel series in the names of packages.
var seriesForm = regexp.MustCompile(`^[0-9]+\.[0-9]+$`)

// checkKernel returns what is wrong with Options.Kernel.
func (o Options) checkKernel() error {
	if o.Kernel == "" || o.Flavour == Host && (len(o.kernelFiles()) > 0 || seriesForm.MatchString(o.Kernel)) {
		return nil
	}
	if o.Flavour != Host {
		return fmt.Errorf("guest image: kernel %q: the flavour %s has a kernel of its own, choose %s", o.Kernel,
			o.Flavour, Host)
	}
	return fmt.Errorf("guest image: kernel %q: give a series (%s) or paths of .deb files", o.Kernel, OldestKernel)
}

// kernelFiles are the .deb files of the kernel, if it is not the distribution's.
func (o Options) kernelFiles() []string {
	if !strings.Contains(o.Kernel, "/") {
		return nil
	}
	return strings.Split(o.Kernel, ",")
}

// kernelSeries is the selected series, empty if the kernel comes from files.
func (o Options) kernelSeries() string {
	if len(o.kernelFiles()) > 0 {
		return ""
	}
	return cmp.Or(o.Kernel, OldestKernel)
}

// findKernel finds the packages of the flavour's kernel: none when it comes from files.
func (o Options) findKernel(ctx context.Context, a apt) ([]*debPackage, error) {
	metas, _, err := o.Flavour.contents()
	if err != nil {
		return nil, err
	}
	if o.Flavour != Host {
		return a.kernel(ctx, metas)
	}
	series := o.kernelSeries()
	if series == "" {
		return nil, nil
	}
	// In a release whose own kernel is of the series, no meta package is named after it.
	for _, meta := range []string{"linux-image-" + series + "-amd64", "linux-image-amd64"} {
		found, err := a.kernel(ctx, []string{meta})
		if err == nil && strings.HasPrefix(found[0].name, "linux-image-"+series+".") {
			return found, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, fmt.Errorf("apt knows no package of a kernel %s: give the path of one, or add a source that has it",
		series)
}
