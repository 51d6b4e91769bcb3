package hostdev

import "testing"

func TestADeviceIsFoundByItsAlternativeName(t *testing.T) {
	host, _ := guest(t)
	run(t, host, "ip link property add dev port0 altname enp5s0f0")
	err := host.Do(func() error {
		for name, want := range map[string]string{"enp5s0f0": "port0", "port0": "", "nobody": ""} {
			if got := NamedOtherwise(name); got != want {
				t.Errorf("%s is another name of %q, want %q", name, got, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
