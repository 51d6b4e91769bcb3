// Makedeb writes a Debian package from an nfpm description. It is nfpm's library with its Debian writer alone: the
// complete nfpm program also pulls in writers for other formats, whose modules not every module mirror has.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
)

func main() {
	config := flag.String("config", "nfpm.yaml", "description of the package; ${NAME} is taken from the environment")
	compression := flag.String("compression", "xz", "of the package's contents: xz, gzip, zstd, none")
	target := flag.String("target", ".", "directory to write to")
	flag.Parse()
	path, err := write(*config, *target, *compression)
	if err != nil {
		fmt.Fprintln(os.Stderr, "makedeb:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// write makes the package and returns its path. A package that could not be finished is removed.
func write(config, dir, compression string) (path string, err error) {
	c, err := nfpm.ParseFileWithEnvMapping(config, os.Getenv)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", config, err)
	}
	info, err := c.Get("deb")
	if err != nil {
		return "", err
	}
	info = nfpm.WithDefaults(info)
	info.Deb.Compression = compression
	if info.MTime, err = sourceDate(); err != nil {
		return "", err
	}
	if err := nfpm.Validate(info); err != nil {
		return "", err
	}
	path = filepath.Join(dir, deb.Default.ConventionalFileName(info))
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	info.Target = path
	if err := errors.Join(deb.Default.Package(info, f), f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
	}
	return path, nil
}

// sourceDate is the time stamp of everything in the package, so that the same source makes the same package
// (reproducible-builds.org, SOURCE_DATE_EPOCH); now without one.
func sourceDate() (time.Time, error) {
	v := os.Getenv("SOURCE_DATE_EPOCH")
	if v == "" {
		return time.Now(), nil
	}
	s, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds since 1970", v)
	}
	return time.Unix(s, 0).UTC(), nil
}
