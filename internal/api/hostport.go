package api

import (
	"context"
	"time"

	"heddle/internal/observe/undone"
	"heddle/internal/plan/problem"
)

// HostPort is a host port: an interface of the host itself on a switch.
type HostPort struct {
	Switch    string    `json:"switch"`
	Name      string    `json:"name"`
	PortGroup string    `json:"portGroup"`
	Origin    Origin    `json:"origin"`
	Device    string    `json:"device"`
	MAC       string    `json:"mac"`
	MTU       int       `json:"mtu"`
	State     PortState `json:"state"`
	Reason    string    `json:"reason,omitempty"`
	// ReasonCode is the reason for programs.
	ReasonCode problem.Code `json:"reasonCode,omitempty"`
	Addresses  []string     `json:"addresses"`
	// Adoption says whose place the port has taken; nil for one that was made by itself.
	Adoption *Adoption `json:"adoption,omitempty"`
}

// AdoptionState is where the adoption of a device's addresses stands.
type AdoptionState string

// The states of an adoption.
const (
	AdoptionPlanned   AdoptionState = "planned"   // a dry run: nothing was done
	AdoptionMoving    AdoptionState = "moving"    // under way
	AdoptionGateway   AdoptionState = "gateway"   // moved; a gateway has yet to answer
	AdoptionConfirm   AdoptionState = "confirm"   // moved, and reached; the operator has yet to confirm
	AdoptionConfirmed AdoptionState = "confirmed" // it stays
	AdoptionReverting AdoptionState = "reverting" // being taken back
	AdoptionReleasing AdoptionState = "releasing" // the device has everything again; a gateway has yet to answer by it
	AdoptionReverted  AdoptionState = "reverted"  // taken back: the device has everything again
)

// Adoption is how a host port took the place of a device (S81).
type Adoption struct {
	// Name is the host port's, Device the one whose addresses it has.
	Name   string        `json:"name"`
	Device string        `json:"device"`
	State  AdoptionState `json:"state"`
	// Gateways have to answer, Missing of them have not.
	Gateways []string `json:"gateways,omitempty"`
	Missing  []string `json:"missing,omitempty"`
	// Deadline is until when the operator has to confirm; zero where that is not waited for.
	Deadline time.Time `json:"deadline,omitzero"`
	// Reason says to people why it was taken back, or for one that is confirmed why it could not be released;
	// ReasonCode to programs.
	Reason     string      `json:"reason,omitempty"`
	ReasonCode undone.Code `json:"reasonCode,omitempty"`
	// Steps are what is or would be done, Warnings what the operator should know.
	Steps    []string `json:"steps,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Declaration is the port as the configuration file would declare it, in YAML.
	Declaration string `json:"declaration,omitempty"`
}

// Adopt asks that a host port take the place of an uplink's device.
type Adopt struct {
	Device string `json:"device"`
	// PortGroup may be left out where only one fits, Name for the next free vmkN.
	PortGroup string `json:"portGroup"`
	Name      string `json:"name"`
	// Gateways have to answer, each of them; without any, a default gateway of each address family.
	Gateways []string `json:"gateways"`
	// GatewayWithin and ConfirmWithin are how long the gateways and the operator have, in nanoseconds.
	GatewayWithin time.Duration `json:"gatewayWithin"`
	ConfirmWithin time.Duration `json:"confirmWithin"`
	DryRun        bool          `json:"dryRun"`
	// Force does it though a program manages the device.
	Force bool `json:"force"`
}

// HostPortName names a host port.
type HostPortName struct {
	Name string `json:"name"`
}

// Release asks that the device of a host port have everything again.
type Release struct {
	Name string `json:"name"`
	// Force leaves it there whether the gateway answers or not.
	Force bool `json:"force"`
}

// HostPortService is what an agent answers about host ports.
type HostPortService interface {
	HostPorts(context.Context) ([]HostPort, error)
	// Adoption is the last adoption of the port, also one that was taken back; without a name the last of all.
	Adoption(context.Context, HostPortName) (*Adoption, error)
	Adopt(context.Context, Adopt) (*Adoption, error)
	// ConfirmAdoption keeps an adoption; without a name the one that waits for it.
	ConfirmAdoption(context.Context, HostPortName) (*Adoption, error)
	// ReleaseAdoption moves everything back. One that was confirmed is then releasing until the gateway answers by the
	// device, or is confirmed again when it doesn't.
	ReleaseAdoption(context.Context, Release) (*Adoption, error)
}
