package part

// Adapter is an adapter of a VM, which it is on whatever host the VM runs. A port's name says nothing: equal names on
// two hosts are two ports.
type Adapter struct{ VM, Name string }

// AdapterOf is an adapter by the VM's UUID and its own name.
func AdapterOf(vm, name string) Adapter { return Adapter{vm, name} }
