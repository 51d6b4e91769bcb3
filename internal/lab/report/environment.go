package report

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"time"
)

// Environment is where and when numbers were measured. Fields that the system does not report are empty.
type Environment struct {
	Date     time.Time `json:"date"`
	OS       string    `json:"os"`
	Arch     string    `json:"arch"`
	Kernel   string    `json:"kernel"`
	CPUs     int       `json:"cpus"`
	CPUModel string    `json:"cpu_model"`
	Go       string    `json:"go"`
	Heddle   string    `json:"heddle"`
	Commit   string    `json:"commit"` // with "+changes" when the tree was not clean
	// Load is the load average of the last minute when the measurement began: other work on the machine spoils numbers.
	Load string `json:"load"`
	// Mitigations lists the processor vulnerabilities that the kernel works around; they slow down system calls.
	Mitigations []string `json:"mitigations"`
}

// Collect describes the running system at the given time.
func Collect(now time.Time) Environment {
	e := collectFrom(os.DirFS("/"))
	e.Date = now.UTC().Truncate(time.Second)
	e.OS, e.Arch, e.Go, e.CPUs = runtime.GOOS, runtime.GOARCH, runtime.Version(), runtime.NumCPU()
	if info, ok := debug.ReadBuildInfo(); ok {
		e.Heddle, e.Commit = version(info)
	}
	return e
}

// collectFrom reads the files of /proc and /sys, relative to root.
func collectFrom(root fs.FS) Environment {
	return Environment{
		Kernel:      firstField(root, "proc/sys/kernel/osrelease"),
		CPUModel:    cpuModel(root),
		Load:        firstField(root, "proc/loadavg"),
		Mitigations: mitigations(root),
	}
}

func firstField(root fs.FS, path string) string {
	text, err := fs.ReadFile(root, path)
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return ""
}

func cpuModel(root fs.FS) string {
	text, err := fs.ReadFile(root, "proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func mitigations(root fs.FS) []string {
	const dir = "sys/devices/system/cpu/vulnerabilities"
	found := []string{}
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return found
	}
	for _, e := range entries {
		text, err := fs.ReadFile(root, dir+"/"+e.Name())
		if err == nil && strings.HasPrefix(string(text), "Mitigation:") {
			found = append(found, e.Name())
		}
	}
	sort.Strings(found)
	return found
}

// version reads the module version and the commit that the Go tool stamped into the binary.
func version(info *debug.BuildInfo) (heddle, commit string) {
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if commit != "" && dirty {
		commit += "+changes"
	}
	return info.Main.Version, commit
}

// String returns the environment in one line for people.
func (e Environment) String() string {
	commit := e.Commit
	if hash, changes, ok := strings.Cut(commit, "+"); len(hash) > 12 {
		commit = hash[:12]
		if ok {
			commit += "+" + changes
		}
	}
	parts := []string{fmt.Sprintf("%s %s %s", e.OS, e.Kernel, e.Arch), fmt.Sprintf("%d CPUs %s", e.CPUs, e.CPUModel)}
	if len(e.Mitigations) > 0 {
		parts = append(parts, fmt.Sprintf("%d CPU mitigations", len(e.Mitigations)))
	}
	if e.Load != "" {
		parts = append(parts, "load "+e.Load)
	}
	parts = append(parts, e.Go, strings.TrimSpace("heddle "+e.Heddle+" "+commit), e.Date.Format("2006-01-02 15:04 MST"))
	return strings.Join(parts, " · ")
}
