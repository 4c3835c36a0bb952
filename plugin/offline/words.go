package offline

import (
	"fmt"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
)

// plural returns a number of things: "1 node", "2 nodes".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// didYouMean completes an error about a name that is similar to a known one.
func didYouMean(name string, known []string) string {
	if meant := explain.Nearest(name, known); meant != "" {
		return "; did you mean " + meant + "?"
	}
	return ""
}
