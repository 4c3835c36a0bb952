package review

import (
	"fmt"
	"regexp"
)

// DefaultMarker is the key of the only comment on a pull request.
const DefaultMarker = "default"

// key has nothing that ends a comment of HTML, or that a shell expands.
var key = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$`)

// Marker returns the first line of a comment, which is not shown: by it a workflow finds its comment.
func Marker(name string) (string, error) {
	if !key.MatchString(name) {
		return "", fmt.Errorf("want 1 to 100 letters, digits, '.', '_', '/' or '-', a letter or a digit first")
	}
	return "<!-- kubectl-karpenter simulate --diff " + name + " -->", nil
}
