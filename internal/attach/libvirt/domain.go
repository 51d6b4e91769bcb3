package libvirt

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
)

// Namespace is the XML namespace of Heddle's elements in a domain's metadata.
const Namespace = "urn:heddle:domain:1"

// maxXML limits a domain's description, in bytes.
const maxXML = 8 << 20

// Domain is a domain as its XML describes it.
type Domain struct {
	Name, UUID string
	Interfaces []Interface
	Wants      []Want
	// Needs are host ports and port groups that the domain needs on its host beside its ports: without them a host
	// refuses it when it arrives by a migration. Force: no host refuses it for what it lacks.
	Needs []string
	Force bool
}

// Interface is one <interface>.
type Interface struct {
	Type   string // ethernet, bridge, network, …
	MAC    string // as net.HardwareAddr prints it
	Device string // <target dev>; libvirt sets it at the latest when it makes the tap
	Alias  string // libvirt's name of the adapter, and its id in QEMU; given when the domain starts
	// Network and PortGroup are the attributes of <source network= portgroup=>. In a running domain the type is
	// then that of the network's devices, such as bridge.
	Network, PortGroup string
}

// networkPrefix begins the names of the libvirt networks that stand for switches: heddle-lab for the switch lab, and
// heddle alone for a host's only switch. libvirt puts the taps of such a network into a bridge, from which the hook
// removes them.
const networkPrefix = "heddle"

// onSwitch reports whether the adapter is on a network that stands for a switch, and for which one; "" is the only one.
func (i Interface) onSwitch() (sw string, ok bool) {
	if i.Network == networkPrefix {
		return "", true
	}
	return strings.CutPrefix(i.Network, networkPrefix+"-")
}

// Want is one <heddle:port>: the port that an adapter gets. At most one of the selectors MAC, Device and Alias is set;
// without one it is for every adapter that no other Want names.
type Want struct {
	PortGroup, Switch, Monitor string
	// PortID is the static port that the adapter has, as far as its definition says so.
	PortID             string
	MAC, Device, Alias string
}

// Ours reports whether the domain uses Heddle.
func (d *Domain) Ours() bool {
	return len(d.Wants) > 0 || slices.ContainsFunc(d.Interfaces, func(i Interface) bool {
		_, ok := i.onSwitch()
		return ok
	})
}

// domainXML is the part of a domain's XML that is read here.
type domainXML struct {
	XMLName  xml.Name
	Name     string `xml:"name"`
	UUID     string `xml:"uuid"`
	Metadata struct {
		Ports []struct {
			Attrs []xml.Attr `xml:",any,attr"`
			Items []struct {
				XMLName xml.Name
				Attrs   []xml.Attr `xml:",any,attr"`
			} `xml:",any"`
		} `xml:"urn:heddle:domain:1 ports"`
	} `xml:"metadata"`
	Interfaces []struct {
		Type   string `xml:"type,attr"`
		Source struct {
			Network   string `xml:"network,attr"`
			PortGroup string `xml:"portgroup,attr"`
		} `xml:"source"`
		MAC struct {
			Address string `xml:"address,attr"`
		} `xml:"mac"`
		Target struct {
			Dev string `xml:"dev,attr"`
		} `xml:"target"`
		Alias struct {
			Name string `xml:"name,attr"`
		} `xml:"alias"`
	} `xml:"devices>interface"`
}

// Parse reads a domain's XML.
func Parse(r io.Reader) (*Domain, error) {
	var x domainXML
	b, err := io.ReadAll(io.LimitReader(r, maxXML+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the domain's XML: %w", err)
	case len(b) > maxXML:
		return nil, fmt.Errorf("the domain's XML has more than %d bytes", maxXML)
	case len(b) == 0:
		return nil, errors.New("the domain's XML is expected on standard input, which is empty: virsh dumpxml DOMAIN " +
			"| heddle libvirt-hook …")
	}
	if err := xml.Unmarshal(b, &x); err != nil {
		return nil, fmt.Errorf("read the domain's XML: %w", err)
	}
	if x.XMLName.Local != "domain" || x.Name == "" {
		return nil, errors.New("what was given is not the XML of a domain")
	}
	d := &Domain{Name: x.Name, UUID: x.UUID}
	for _, i := range x.Interfaces {
		d.Interfaces = append(d.Interfaces, Interface{Type: i.Type, MAC: canonicalMAC(i.MAC.Address),
			Device: i.Target.Dev, Alias: i.Alias.Name,
			Network: i.Source.Network, PortGroup: i.Source.PortGroup})
	}
	for _, list := range x.Metadata.Ports {
		if err := d.readForce(list.Attrs); err != nil {
			return nil, err
		}
		for _, item := range list.Items {
			if err := d.readItem(item.XMLName, item.Attrs); err != nil {
				return nil, err
			}
		}
	}
	return d, d.check()
}

// readItem reads one element of Heddle's metadata.
func (d *Domain) readItem(name xml.Name, attrs []xml.Attr) error {
	switch name {
	case xml.Name{Space: Namespace, Local: "port"}:
		w, err := readWant(attrs)
		d.Wants = append(d.Wants, w)
		return err
	case xml.Name{Space: Namespace, Local: "needs"}:
		what := ""
		if err := readAttrs("needs", attrs, attr{"name", &what}); err != nil {
			return err
		}
		if what == "" {
			return errors.New("a <heddle:needs> without name: say which host port or port group the domain needs")
		}
		d.Needs = append(d.Needs, what)
		return nil
	}
	return fmt.Errorf("<%s> in Heddle's metadata: only <port> of the namespace %s is known there, and <needs>",
		name.Local, Namespace)
}

// readForce reads the attributes of the element around all others.
func (d *Domain) readForce(attrs []xml.Attr) error {
	force := ""
	if err := readAttrs("ports", attrs, attr{"force", &force}); err != nil {
		return err
	}
	switch force {
	case "", "no":
	case "yes":
		d.Force = true
	default:
		return fmt.Errorf("<heddle:ports force='%s'>: give yes or no", force)
	}
	return nil
}

// canonicalMAC is the MAC in the form that is used for comparison; a text that is not a MAC stays as it is.
func canonicalMAC(s string) string {
	if mac, err := net.ParseMAC(s); err == nil {
		return mac.String()
	}
	return s
}

func readWant(attrs []xml.Attr) (w Want, err error) {
	err = readAttrs("port", attrs, attr{"portGroup", &w.PortGroup}, attr{"switch", &w.Switch},
		attr{"monitor", &w.Monitor}, attr{"mac", &w.MAC}, attr{"dev", &w.Device}, attr{"alias", &w.Alias},
		attr{"portId", &w.PortID})
	w.MAC = canonicalMAC(w.MAC)
	return w, err
}

// attr is an attribute, and where its value goes.
type attr struct {
	name string
	to   *string
}

// readAttrs reads the attributes of an element, which has no others.
func readAttrs(element string, attrs []xml.Attr, fields ...attr) error {
next:
	for _, a := range attrs {
		if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" {
			continue
		}
		var names []string
		for _, f := range fields {
			if a.Name.Local == f.name {
				*f.to = a.Value
				continue next
			}
			names = append(names, f.name)
		}
		return fmt.Errorf("attribute %s of <heddle:%s>: the attributes are %s", a.Name.Local, element,
			strings.Join(names, ", "))
	}
	return nil
}

// selector is how the want names its adapter, "" if it does not.
func (w Want) selector() string {
	var s []string
	for _, f := range []struct{ name, value string }{{"mac", w.MAC}, {"dev", w.Device}, {"alias", w.Alias}} {
		if f.value != "" {
			s = append(s, fmt.Sprintf("%s='%s'", f.name, f.value))
		}
	}
	return strings.Join(s, " ")
}

// names reports whether the want is for that adapter alone.
func (w Want) names(i Interface) bool {
	return w.MAC != "" && w.MAC == i.MAC || w.Device != "" && w.Device == i.Device || w.Alias != "" &&
		w.Alias == i.Alias
}

// check finds what is wrong with the wants themselves.
func (d *Domain) check() error {
	seen := map[string]bool{}
	for _, w := range d.Wants {
		s := w.selector()
		switch {
		case w.PortGroup == "":
			return errors.New("a <heddle:port> without portGroup: say which port group the adapter belongs to")
		case strings.Contains(s, "' "):
			return fmt.Errorf("<heddle:port %s>: name the adapter by one of mac, dev and alias", s)
		case seen[s] && s == "":
			return errors.New("two <heddle:port> for all adapters: let all but one name theirs by mac, dev or alias")
		case seen[s]:
			return fmt.Errorf("two <heddle:port %s>: keep one", s)
		}
		seen[s] = true
	}
	return nil
}
