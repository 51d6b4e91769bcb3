// Package adapters is the experiment "guest-adapters": what the model of a guest's network adapter, its queues, its
// offloads and its MTU do to one TCP stream through the switch. The guests are real ones, a kernel with its drivers,
// under QEMU's emulation: their rates are the emulation's, and only the ratios between them say something.
//
//layout:floor=workshop
package adapters
