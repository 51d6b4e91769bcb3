package version

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// Info identifies a build: its version and the commit it was built from.
type Info struct {
	// Version is the release that the packager named, else the module's version, which the Go linker takes from the
	// repository.
	Version string `json:"version"`
	// Module is the module's version where Version is a release.
	Module string `json:"module,omitempty"`
	Commit string `json:"commit"`
	Dirty  bool   `json:"dirty"`
	Go     string `json:"go"`
}

// Of returns this program's build. The packager names release with the linker's flag -X main.release=VERSION; it is
// empty in other builds. A build outside a checkout has no commit.
func Of(release string) Info {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return of(release, info)
}

func of(release string, build *debug.BuildInfo) Info {
	const unknown = "(devel)" // as the linker says it, too
	v := Info{Version: cmp.Or(release, build.Main.Version, unknown), Go: runtime.Version()}
	if release != "" && build.Main.Version != unknown {
		v.Module = build.Main.Version
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Dirty = s.Value == "true"
		}
	}
	return v
}

// String is what "--version" shows: the version and Go's, and between them the module's version where it is another.
func (v Info) String() string {
	if v.Module != "" && v.Module != v.Version {
		return v.Version + " (" + v.Module + ") " + v.Go
	}
	return v.Version + " " + v.Go
}
