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
	// Adoption describes from which device the port has taken over; nil for a port that took over from none.
	Adoption *Adoption `json:"adoption,omitempty"`
}

// AdoptionState is the state of the adoption of a device's addresses.
type AdoptionState string

// The states of an adoption.
const (
	AdoptionPlanned   AdoptionState = "planned"   // a dry run: nothing was done
	AdoptionMoving    AdoptionState = "moving"    // in progress
	AdoptionGateway   AdoptionState = "gateway"   // moved; a gateway must still answer
	AdoptionConfirm   AdoptionState = "confirm"   // moved, and reached; the operator must still confirm
	AdoptionConfirmed AdoptionState = "confirmed" // it stays
	AdoptionReverting AdoptionState = "reverting" // being undone
	AdoptionReleasing AdoptionState = "releasing" // the device has all again; a gateway must still answer by it
	AdoptionReverted  AdoptionState = "reverted"  // undone: the device has everything again
)

// Adoption describes how a host port takes over from a device (S81).
type Adoption struct {
	// Name is the name of the host port, Device that of the device whose addresses it takes.
	Name   string        `json:"name"`
	Device string        `json:"device"`
	State  AdoptionState `json:"state"`
	// Gateways must answer; Missing are those that have not answered yet.
	Gateways []string `json:"gateways,omitempty"`
	Missing  []string `json:"missing,omitempty"`
	// Deadline is until when the operator must confirm; zero if no confirmation is awaited.
	Deadline time.Time `json:"deadline,omitzero"`
	// Reason describes for people why it was undone, or for a confirmed one why it could not be released; ReasonCode is
	// the same for programs.
	Reason     string      `json:"reason,omitempty"`
	ReasonCode undone.Code `json:"reasonCode,omitempty"`
	// Steps are the steps that are or would be done, Warnings are for the operator.
	Steps    []string `json:"steps,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Declaration is the port in the form of the configuration file, in YAML.
	Declaration string `json:"declaration,omitempty"`
}

// Adopt is a request that a host port take over from an uplink's device.
type Adopt struct {
	Device string `json:"device"`
	// PortGroup may be empty if only one fits; an empty Name is the next free vmkN.
	PortGroup string `json:"portGroup"`
	Name      string `json:"name"`
	// Gateways must all answer; if it is empty, a default gateway of each address family must.
	Gateways []string `json:"gateways"`
	// GatewayWithin and ConfirmWithin are how long the gateways and the operator have, in nanoseconds.
	GatewayWithin time.Duration `json:"gatewayWithin"`
	ConfirmWithin time.Duration `json:"confirmWithin"`
	DryRun        bool          `json:"dryRun"`
	// Force adopts even if a program manages the device.
	Force bool `json:"force"`
}

// HostPortName names a host port.
type HostPortName struct {
	Name string `json:"name"`
}

// Release is a request to give everything back to the device of a host port.
type Release struct {
	Name string `json:"name"`
	// Force leaves everything on the device whether the gateway answers or not.
	Force bool `json:"force"`
}

// HostPortService has the calls about host ports.
type HostPortService interface {
	HostPorts(context.Context) ([]HostPort, error)
	// Adoption returns the last adoption of the port, also if it was undone; without a name the last of all.
	Adoption(context.Context, HostPortName) (*Adoption, error)
	Adopt(context.Context, Adopt) (*Adoption, error)
	// ConfirmAdoption keeps an adoption; without a name the one that waits for confirmation.
	ConfirmAdoption(context.Context, HostPortName) (*Adoption, error)
	// ReleaseAdoption moves everything back. A confirmed adoption is then releasing until the gateway answers through
	// the device, or is confirmed again if it does not answer.
	ReleaseAdoption(context.Context, Release) (*Adoption, error)
}
