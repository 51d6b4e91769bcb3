// Package fields says which fields of a definition a program knows. An agent tells its controller, which leaves out of
// the host's slice what the agent does not know, and names it: a field is never ignored silently. It is pure.
//
// A field is named by its place in a document: "switch.mtu", "portGroup.overrides.vlan". The policy fields, which
// switches (in their defaults), port groups and ports have alike, are named once: "policy.security.promiscuous". A
// field whose values are a few words is followed by them: "policy.teaming.policy=ip-hash".
//
//layout:floor=kinds pure
package fields
