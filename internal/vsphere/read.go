package vsphere

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// MostBytes limits a dump: one of 100 switches with 1,000 port groups each takes some 200 MB.
const MostBytes = 1 << 30

// zipMark begins a zip file.
const zipMark = "PK\x03\x04"

// Read adds what a dump has: managed objects as JSON, one after the other or in lists, such as govc object.collect
// -json writes, and uplink ports as govc dvs.portgroup.info -json writes them. Objects of other types are left out.
func (inv *Inventory) Read(filename string, r io.Reader) error {
	// Windows writes UTF-16, or UTF-8, with a byte order mark.
	start := bufio.NewReader(transform.NewReader(r, unicode.BOMOverride(transform.Nop)))
	inv.source++
	if mark, _ := start.Peek(len(zipMark)); string(mark) == zipMark {
		return fmt.Errorf("%s is a zip file, such as Export Configuration of the vSphere client makes: its contents "+
			"are for vCenter alone. Dump the objects with govc, or read the vCenter with --vcenter", filename)
	}
	in := &io.LimitedReader{R: start, N: MostBytes + 1}
	dump := newDecoder(in)
	for n := 1; ; n++ {
		o, err := dump.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case in.N == 0:
			return fmt.Errorf("%s is larger than %d MiB: dump fewer switches at a time", filename, MostBytes>>20)
		case err != nil:
			return fmt.Errorf("%s, object %d, before byte %d: this is no dump in JSON: %w", filename, n,
				dump.json.InputOffset(), err)
		}
		inv.add(o)
	}
}

// decoder reads objects from a dump, each once, and holds no more than the largest value of one.
type decoder struct {
	json *json.Decoder
	list bool // within a list
}

func newDecoder(r io.Reader) *decoder { return &decoder{json: json.NewDecoder(r)} }

// next is the next object. The error is io.EOF after the last one.
func (d *decoder) next() (*object, error) {
	for {
		if d.list && d.json.More() {
			if err := d.begin('{'); err != nil {
				return nil, whole(err)
			}
			return d.object()
		}
		token, err := d.json.Token()
		switch {
		case err != nil && d.list:
			return nil, whole(err)
		case err != nil:
			return nil, err
		case token == json.Delim('{'):
			return d.object()
		case token == json.Delim('['), token == json.Delim(']'):
			d.list = token == json.Delim('[')
		default:
			return nil, fmt.Errorf("%v is neither an object nor a list", token)
		}
	}
}

// begin reads the mark at which an object or a list begins.
func (d *decoder) begin(mark json.Delim) error {
	token, err := d.json.Token()
	if err == nil && token != mark {
		err = fmt.Errorf("%v is where %v was expected", token, mark)
	}
	return err
}

// whole makes an end that comes too early no end at all.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// object reads the rest of an object.
func (d *decoder) object() (*object, error) {
	o := &object{}
	err := d.fields(func(name string) error {
		switch name {
		case "self", "obj":
			return d.json.Decode(&o.Self)
		case "name":
			return d.json.Decode(&o.Name)
		case "config":
			return d.json.Decode(&o.Config)
		case "port":
			return d.json.Decode(&o.Port)
		case "changeset":
			return d.changes(o)
		}
		return d.json.Decode(&skipped{})
	})
	return o, whole(err)
}

// fields reads the rest of an object. take decodes the value of the field that it is told in small letters: govc wrote
// names with a capital letter before its version 0.30.
func (d *decoder) fields(take func(name string) error) error {
	for d.json.More() {
		token, err := d.json.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if err := take(strings.ToLower(name)); err != nil {
			return err
		}
	}
	_, err := d.json.Token()
	return err
}

// changes reads the properties of an ObjectUpdate, whose names come before their values.
func (d *decoder) changes(o *object) error {
	if err := d.begin('['); err != nil {
		return err
	}
	for d.json.More() {
		if err := d.begin('{'); err != nil {
			return err
		}
		var property string
		err := d.fields(func(name string) error {
			switch name {
			case "name":
				return d.json.Decode(&property)
			case "val":
				return d.json.Decode(o.property(property))
			}
			return d.json.Decode(&skipped{})
		})
		if err != nil {
			return err
		}
	}
	_, err := d.json.Token()
	return err
}

// property is where a property's value goes.
func (o *object) property(name string) any {
	switch {
	case o.Self.Type != "" && !o.read():
	case name == "name":
		return &o.Name
	case name == "config":
		return &o.Config
	case name == "config.network":
		return &o.Config.Network
	}
	return &skipped{}
}

// skipped is a value that nobody wants.
type skipped struct{}

func (*skipped) UnmarshalJSON([]byte) error { return nil }

// named is the name of an object; vCenter writes %, / and \ in names as %25, %2f and %5c.
func (o *object) named() string {
	name := o.Config.Name
	if name == "" {
		name = o.Name
	}
	if name == "" {
		name = o.Self.Value
	}
	if !strings.Contains(name, "%") {
		return name
	}
	return strings.NewReplacer("%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`, "%25", "%").Replace(name)
}
