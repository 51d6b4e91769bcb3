package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// apt downloads packages without installing them, and stores them in dir.
type apt struct {
	dir string
	log func(format string, args ...any)
	// lists is a directory with our own package lists; empty means the system's.
	lists string
}

// options are the options of apt's programs: where the lists are, and not to switch to the user _apt for downloads, who
// cannot write to a private directory.
func (a apt) options() []string {
	var o []string
	if os.Geteuid() == 0 {
		o = append(o, "-o", "APT::Sandbox::User=root")
	}
	if a.lists != "" {
		o = append(o, "-o", "Dir::State::lists="+a.lists, "-o", "Dir::Cache="+a.lists)
	}
	return o
}

// update downloads current package lists into dir and returns an apt that uses them; the system's are not changed. This
// is for machines whose lists are missing, or so old that the mirror has dropped the packages in them.
func (a apt) update(ctx context.Context, dir string) (apt, error) {
	a.log("fetching package lists")
	a.lists = dir
	for _, sub := range []string{"partial", "archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return a, err
		}
	}
	if _, err := output(ctx, dir, "apt-get", append(a.options(), "-q", "-o", "APT::Update::Error-Mode=any",
		"update")...); err != nil {
		return a, fmt.Errorf("fetch package lists: %w (is there a network?)", err)
	}
	return a, nil
}

// debPackage is one package of the package lists.
type debPackage struct {
	name, version string
	depends       []string // names only; the first one of alternatives
}

// show reads the candidate version of a package from apt's lists; nil if there is none with that name.
func (a apt) show(ctx context.Context, name string) (*debPackage, error) {
	// apt-cache fails for an unknown name, which is an answer and not an error.
	out, err := output(ctx, "", "apt-cache", append(a.options(), "show", "--no-all-versions", name)...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	return parsePackage(string(out)), nil
}

// parsePackage reads one paragraph of "apt-cache show".
func parsePackage(text string) *debPackage {
	var p debPackage
	for _, line := range strings.Split(text, "\n") {
		key, value, _ := strings.Cut(line, ": ")
		switch key {
		case "Package":
			p.name = value
		case "Version":
			p.version = value
		case "Depends", "Pre-Depends":
			for _, dep := range strings.Split(value, ",") {
				name, _, _ := strings.Cut(strings.TrimSpace(dep), " ")
				name, _, _ = strings.Cut(name, ":")
				p.depends = append(p.depends, name)
			}
		}
	}
	if p.name == "" || p.version == "" {
		return nil
	}
	return &p
}

// kernel resolves the first known one of the meta packages to the packages with the kernel image and its modules.
func (a apt) kernel(ctx context.Context, metas []string) ([]*debPackage, error) {
	for _, meta := range metas {
		p, err := a.show(ctx, meta)
		if err != nil {
			return nil, err
		}
		if p == nil {
			continue
		}
		found, err := a.kernelParts(ctx, p)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	return nil, fmt.Errorf("apt knows none of the kernel packages %s: is this Debian or Ubuntu on amd64?",
		strings.Join(metas, ", "))
}

// kernelParts follows the dependencies from a meta package: Debian 12 has one package with everything, others have the
// modules in packages of their own.
func (a apt) kernelParts(ctx context.Context, meta *debPackage) ([]*debPackage, error) {
	var found []*debPackage
	seen := map[string]bool{meta.name: true}
	for queue := meta.depends; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if seen[name] || !kernelPart(name) {
			continue
		}
		seen[name] = true
		p, err := a.show(ctx, name)
		if err != nil {
			return nil, err
		}
		if p == nil {
			return nil, fmt.Errorf("package %s needs %s, which apt does not know", meta.name, name)
		}
		found = append(found, p)
		queue = append(queue, p.depends...)
	}
	return found, nil
}

// fetch downloads the package unless an earlier run has done so, and returns the path of the .deb file.
func (a apt) fetch(ctx context.Context, p *debPackage) (string, error) {
	final := filepath.Join(a.dir, p.name+"_"+strings.ReplaceAll(p.version, ":", "%3a")+".deb")
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	a.log("downloading %s %s", p.name, p.version)
	tmp, err := os.MkdirTemp(a.dir, "download-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if _, err := output(ctx, tmp, "apt-get", append(a.options(), "-q", "download", p.name+"="+
		p.version)...); err != nil {
		return "", fmt.Errorf("download package %s: %w (is there a network?)", p.name, err)
	}
	debs, err := filepath.Glob(filepath.Join(tmp, "*.deb"))
	if err != nil {
		return "", err
	}
	if len(debs) != 1 {
		return "", fmt.Errorf("download package %s: apt-get left %d files instead of one", p.name, len(debs))
	}
	return final, os.Rename(debs[0], final)
}

// unpack extracts the files of a .deb below dir, without running any of its scripts.
func unpack(ctx context.Context, deb, dir string) error {
	if _, err := output(ctx, "", "dpkg-deb", "-x", deb, dir); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(deb), err)
	}
	return nil
}

// output runs a program in dir (empty: here) and gives its standard output; the error carries the end of what it
// printed to standard error.
func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	// A process group of its own, so that a download's helper processes are ended with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", name, ctx.Err())
	}
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("program %s is not installed: guest images are made from Debian packages: %w", name, err)
	}
	if err != nil {
		text := strings.TrimSpace(stderr.String())
		return out, fmt.Errorf("%s: %w: %s", name, err, text[max(0, len(text)-600):])
	}
	return out, nil
}

// kernelPart reports whether a package may hold the kernel or its modules, by its name.
func kernelPart(name string) bool {
	for _, prefix := range []string{"linux-image-", "linux-modules-", "linux-binary-", "linux-base-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
