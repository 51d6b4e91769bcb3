package health

import "heddle/internal/api"

// Other is what another controller says of itself.
type Other struct {
	Name string
	// Away says why it does not answer, Apart why it is none of the cluster, NoRoom why its disk takes no change; ""
	// for not so.
	Away, Apart, NoRoom string
}

// Others looks at another controller.
func Others(o Other) []api.HealthFinding {
	switch {
	case o.Away != "":
		return []api.HealthFinding{finding("controllers", api.HealthWrong, "controller "+o.Name+" does not answer: "+
			o.Away, "start it, or look at the network between the controllers")}
	case o.Apart != "":
		return []api.HealthFinding{finding("controllers", api.HealthWrong, "controller "+o.Name+": "+o.Apart,
			"heddle-controller list")}
	case o.NoRoom != "":
		return []api.HealthFinding{finding("disk", api.HealthWrong, "controller "+o.Name+": "+o.NoRoom,
			"make space on that machine; where the majority of the controllers has none, nothing can be changed")}
	}
	return nil
}
