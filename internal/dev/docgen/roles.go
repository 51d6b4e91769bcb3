package docgen

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"heddle/cmd/heddle-controller/features"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/roles"
)

const rolesIntro = `# Roles

Which role may make which call of [a controller's API](controller-api.md). A token has a role for the whole cluster, for
one switch with its port groups, or for one port group; grants give it more. How to hand them out:
[let people and tools in](../how-to/many-hosts/access.md).

`

const callsIntro = `
## Calls

Where the third column says "the cluster", the role has to be granted for the whole cluster. Where it says "a part",
the role for any switch or port group is enough: the call shows or changes that part alone. A call that is recorded is
written to the audit log before it begins, and is refused while the log can't be written. Refusals of all calls are
recorded, and so is what comes of ` + "`SignIn`" + `.

| call | who may make it | granted for | recorded |
|---|---|---|---|
`

const fieldsIntro = `
## Fields of the definition

Applying a definition takes the permission for each field that changes: these fields take what is listed here, all
others ` + "`network`" + `. Adding or removing a whole object, such as a port group, takes
` + "`network`" + `, and ` + "`security`" + ` as well where the object has fields of it.

`

const hostCalls = `
Calls that are passed on to a host take ` + "`view` or `capture`" + ` for a part. What shows frames of guests, as captures
and traces do, takes ` + "`capture`" + ` of the port groups that are shown, and is recorded.
`

// rolesPage says which role may make which call.
func rolesPage() string {
	var b strings.Builder
	b.WriteString(generated("internal/platform/access and internal/platform/access/roles") + rolesIntro)
	b.WriteString("| permission | allows | roles |\n|---|---|---|\n")
	for _, p := range roles.Permissions() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p, cell(p.What()), roles.Words(roles.With(p), "and"))
	}
	b.WriteString(callsIntro)
	table := features.List().Rules()
	for _, name := range slices.SortedFunc(maps.Keys(table), func(x, y string) int {
		return cmp.Or(compareRules(table[x], table[y]), cmp.Compare(x, y))
	}) {
		r := table[name]
		scope := "the cluster"
		switch {
		case len(r.Needs) == 0:
			scope = "-"
		case r.Judged:
			scope = "a part"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, mayCall(r), scope,
			map[bool]string{true: "yes", false: "no"}[r.Audit])
	}
	b.WriteString(hostCalls)
	b.WriteString(fieldsIntro)
	for _, field := range []string{"security", "checks", "overrides", "overrides.security"} {
		fmt.Fprintf(&b, "- `%s`: %s\n", field, roles.Words(roles.Of(field), "and"))
	}
	return b.String()
}

// compareRules orders by who may make a call: calls that everybody may make come first.
func compareRules(x, y access.Rule) int {
	return cmp.Or(-cmp.Compare(openness(x), openness(y)), slices.CompareFunc(x.Needs, y.Needs,
		func(p, q roles.Permission) int {
			return cmp.Compare(slices.Index(roles.Permissions(), p), slices.Index(roles.Permissions(), q))
		}))
}

// openness is how little a call takes.
func openness(r access.Rule) int {
	switch {
	case r.Open:
		return 2
	case len(r.Needs) == 0:
		return 1
	}
	return 0
}

// mayCall is who may make a call.
func mayCall(r access.Rule) string {
	switch {
	case openness(r) == 2:
		return "everybody, also without a token"
	case r.SignedIn:
		return "everybody who signed in"
	case openness(r) == 1:
		return "everybody with a token"
	}
	var list []roles.Role
	for _, role := range roles.All() {
		if slices.ContainsFunc(r.Needs, role.Has) {
			list = append(list, role)
		}
	}
	if len(list) == len(roles.All()) {
		return "every role"
	}
	return roles.Words(list, "or")
}
