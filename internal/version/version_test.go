package version

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestOf(t *testing.T) {
	const module = "v0.0.0-20261129182524-1b21d65b0000"
	vcs := []debug.BuildSetting{{Key: "vcs.revision", Value: "1b21d65b"}, {Key: "vcs.modified", Value: "true"}}
	for _, c := range []struct {
		name, release string
		build         debug.BuildInfo
		want          Info
		shown         string
	}{
		{"a release", "0.2.0", debug.BuildInfo{Main: debug.Module{Version: module}, Settings: vcs},
			Info{Version: "0.2.0", Module: module, Commit: "1b21d65b", Dirty: true}, "0.2.0 (" + module + ") "},
		{"a build of the repository", "", debug.BuildInfo{Main: debug.Module{Version: module}, Settings: vcs},
			Info{Version: module, Commit: "1b21d65b", Dirty: true}, module + " "},
		{"a release without a repository", "0.2.0", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			Info{Version: "0.2.0"}, "0.2.0 "},
		{"a build without a repository", "", debug.BuildInfo{}, Info{Version: "(devel)"}, "(devel) "},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Go = runtime.Version()
			got := of(c.release, &c.build)
			if got != c.want || got.String() != c.shown+runtime.Version() {
				t.Errorf("%+v, shown as %q", got, got.String())
			}
		})
	}
}
