package port

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// policyFlags are the policies that a port sets for itself on the command line: policies that are not given are
// inherited.
type policyFlags struct {
	vlan  string
	trunk []string
	qinq  bool
	// texts are the values of the other flags, as plan.Field.Parse reads them.
	texts map[string]func() string
}

func (o *policyFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.vlan, "vlan", "", "the port's own VLAN: an id 1–4094, or none for untagged frames")
	f.StringSliceVar(&o.trunk, "trunk", nil, "the port's own trunk: the VLANs that pass with their tags, such as "+
		"0,10-20 (0 = untagged)")
	f.BoolVar(&o.qinq, "qinq", false, "the trunk's tags are 802.1ad")
	o.texts = map[string]func() string{}
	for _, field := range plan.Fields() {
		switch field.Kind {
		case plan.KindVLAN: // handled above
		case plan.KindTruth:
			v := f.Bool(field.Flag, false, field.Usage)
			o.texts[field.Path] = func() string { return strconv.FormatBool(*v) }
		case plan.KindNumber:
			v := f.Int(field.Flag, 0, field.Usage)
			o.texts[field.Path] = func() string { return strconv.Itoa(*v) }
		case plan.KindList:
			v := f.StringSlice(field.Flag, nil, field.Usage)
			o.texts[field.Path] = func() string { return strings.Join(*v, ",") }
		case plan.KindDuration:
			v := f.String(field.Flag, "", field.Usage)
			given := f.Lookup(field.Flag)
			given.Value = cli.TimeText{Value: given.Value}
			o.texts[field.Path] = func() string { return *v }
		default:
			v := f.String(field.Flag, "", field.Usage)
			o.texts[field.Path] = func() string { return *v }
		}
	}
}

// onto sets the given policies.
func (o *policyFlags) onto(c *cobra.Command, p *spec.Policy) error {
	given := c.Flags().Changed
	*p = spec.Policy{}
	for _, field := range plan.Fields() {
		text := o.texts[field.Path]
		if text == nil || !given(field.Flag) {
			continue
		}
		if err := field.Parse(p, text()); err != nil {
			return cli.Usagef("--%s %s: %v", field.Flag, text(), err)
		}
	}
	if given("vlan") || given("trunk") || given("qinq") {
		v, err := o.ownVLAN(given)
		p.VLAN = v
		return err
	}
	return nil
}

func (o *policyFlags) ownVLAN(given func(string) bool) (*spec.VLAN, error) {
	v := &spec.VLAN{}
	switch {
	case given("vlan") && given("trunk"):
		return nil, cli.Usagef("--vlan and --trunk exclude each other: a port is in one VLAN, or a trunk")
	case given("qinq") && !given("trunk"):
		return nil, cli.Usagef("--qinq is about a trunk's tags: say which VLANs, with --trunk")
	case given("trunk") && len(o.trunk) == 0:
		return nil, cli.Usagef("--trunk needs VLANs, such as 0,10-20")
	case given("trunk"):
		v.Trunk = o.trunk
		if o.qinq {
			v.Outer = "802.1ad"
		}
		return v, nil
	case o.vlan == "none":
		v.None = true
		return v, nil
	}
	id, err := strconv.Atoi(o.vlan)
	if err != nil || id < 1 || id > 4094 {
		return nil, cli.Usagef("--vlan %s: give an id 1–4094, or none for untagged frames", o.vlan)
	}
	v.Access = id
	return v, nil
}
