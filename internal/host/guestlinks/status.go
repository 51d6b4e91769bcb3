package guestlinks

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"heddle/internal/spec"
)

// Domain is a domain that runs, with the devices of its adapters whose link is set down.
type Domain struct {
	Name, UUID string // the UUID in lower case
	Down       []string
}

// statusXML is the part of a domain's status that is read here.
type statusXML struct {
	XMLName xml.Name
	Domain  struct {
		Name       string `xml:"name"`
		UUID       string `xml:"uuid"`
		Interfaces []struct {
			Target struct {
				Dev string `xml:"dev,attr"`
			} `xml:"target"`
			Link struct {
				State string `xml:"state,attr"`
			} `xml:"link"`
		} `xml:"devices>interface"`
	} `xml:"domain"`
}

// maxStatus limits a status, in bytes.
const maxStatus = 8 << 20

var errNoStatus = errors.New("it is not the status of a domain of libvirt's")

// Parse reads the status of a domain, as libvirt writes it.
func Parse(r io.Reader) (d Domain, err error) {
	b, err := io.ReadAll(io.LimitReader(r, maxStatus+1))
	switch {
	case err != nil:
		return d, err
	case len(b) > maxStatus:
		return d, fmt.Errorf("it has more than %d bytes", maxStatus)
	}
	var x statusXML
	if err := xml.Unmarshal(b, &x); err != nil {
		return d, err
	}
	if x.XMLName.Local != "domstatus" || !spec.ValidUUID(x.Domain.UUID) {
		return d, errNoStatus
	}
	d = Domain{Name: x.Domain.Name, UUID: strings.ToLower(x.Domain.UUID)}
	for _, i := range x.Domain.Interfaces {
		if i.Link.State == "down" && i.Target.Dev != "" {
			d.Down = append(d.Down, i.Target.Dev)
		}
	}
	slices.Sort(d.Down)
	return d, nil
}

// read reads the status in a file, which must be a regular one.
func read(dir, name string) (Domain, error) {
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return Domain{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoStatus
	}
	if err != nil {
		return Domain{}, fmt.Errorf("%s: %w", path, err)
	}
	d, err := Parse(f)
	if err != nil {
		return d, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// isStatus reports whether a file of that name may be a domain's status. libvirt writes one under another name first.
func isStatus(name string) bool { return strings.HasSuffix(name, ".xml") }
