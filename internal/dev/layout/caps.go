package layout

// mostMethods is how many methods a type of the product has at most.
const mostMethods = 45

// largeTypes are the types that have more, with how many they may have. A number here only falls.
func largeTypes() map[string]int {
	return map[string]int{}
}
