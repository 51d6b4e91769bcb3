package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// An upgrade to a program with another layout of tables, or a downgrade from one, has these steps. Meanwhile devices
// continue with the old program and its tables:
//	new tables are made and described      (filling)
//	the content of the old ones is copied
//	the plan is written into them
//	every device gets the new program      (switching)
//	one grace period later: what was learned and counted in between is copied
//	the old tables are removed             (complete)
// A crash leaves the old tables whole until the last step. New tables that no device can have used are thrown away
// after a crash; others are adopted, in addition to the old ones, by the next program that starts, whichever version
// that is.

// openGeneration gives the tables their sizes, and finds the generation to use or makes a directory for a new one.
func (k *Kernel) openGeneration(spec *ebpf.CollectionSpec, macTable int) error {
	all, err := readGenerations(k.dir, layoutOf(spec))
	if err != nil {
		return err
	}
	if k.tweak.spec == nil || macTable != 0 { // otherwise the tweak has set it
		if spec.Maps["macs"].MaxEntries, err = sizeMACTable(all, macTable, k.log); err != nil {
			return errors.Join(err, closeGenerations(all))
		}
	}
	return k.prepareGeneration(all, layoutOf(spec))
}

// prepareGeneration finds the tables to use, or makes a directory for new ones.
func (k *Kernel) prepareGeneration(all []*generation, own layout) (err error) {
	c := choose(all, own)
	for _, g := range c.dead {
		if err := g.remove(); err != nil {
			return errors.Join(fmt.Errorf("remove tables of no use: %w", err), closeGenerations(c.from),
				c.adopt.close())
		}
	}
	if c.adopt != nil {
		k.gen = c.adopt
		return nil
	}
	k.from = c.from
	if err := (&carry{from: c.from, to: &generation{layout: own}}).fits(); err != nil {
		return err
	}
	if k.gen, err = newGeneration(k.dir, c.next, own); err != nil {
		return err
	}
	if err := k.keepMeters(); err != nil {
		return err
	}
	return k.step("described")
}

// takeOver copies the content of old tables into the new ones. Without old ones the new ones are complete.
func (k *Kernel) takeOver() error {
	if k.gen.phase != filling {
		return nil
	}
	if len(k.from) == 0 {
		k.from = nil
		return k.gen.setPhase(complete)
	}
	k.log.Info("the tables in the kernel are another version's: taking over what they hold", "from",
		filepath.Base(k.from[len(k.from)-1].dir), "to", filepath.Base(k.gen.dir))
	if err := k.step("made"); err != nil {
		return err
	}
	if err := k.carry().first(); err != nil {
		return err
	}
	return k.step("filled")
}

func (k *Kernel) carry() *carry {
	return &carry{from: k.from, to: k.gen, maps: &k.objects.vswitchMaps, put: k.objects.HeddleCarry}
}

// exchange attaches the program to the devices that were attached before.
func (k *Kernel) exchange() error {
	if k.from == nil {
		return k.exchangePrograms()
	}
	if err := k.step("planned"); err != nil {
		return err
	}
	if err := k.gen.setPhase(switching); err != nil {
		return err
	}
	if err := k.step("switching"); err != nil {
		return err
	}
	if err := k.exchangePrograms(); err != nil {
		return err
	}
	return k.step("exchanged")
}

func (k *Kernel) exchangePrograms() error {
	errs := []error{k.links.exchange(), k.egress.exchange()}
	for _, l := range k.overlays.links() {
		errs = append(errs, l.exchange())
	}
	return errors.Join(errs...)
}

// finishUpgrade is called one grace period after exchange.
func (k *Kernel) finishUpgrade() error {
	if k.from == nil {
		return nil
	}
	if k.gen.phase != complete {
		if err := k.carry().late(); err != nil {
			return err
		}
		if err := k.step("late"); err != nil {
			return err
		}
		if err := k.gen.setPhase(complete); err != nil {
			return err
		}
	}
	if err := k.step("complete"); err != nil {
		return err
	}
	if err := k.reportLostFlows(); err != nil {
		k.log.Warn("what the version before had metered could not be looked at", "error", err)
	}
	for len(k.from) > 0 {
		if err := k.from[0].remove(); err != nil {
			return fmt.Errorf("remove the old tables: %w", err)
		}
		k.from = k.from[1:]
	}
	k.from = nil
	k.log.Info("the tables of the other version are taken over")
	return nil
}
