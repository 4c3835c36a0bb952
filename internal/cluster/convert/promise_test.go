package convert

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPromises checks that controllers have the index of their pod, wherever the first of them is.
func TestPromises(t *testing.T) {
	for bare := range 20 {
		text, wantPods, wantOwners := "", []string{}, make([]string, bare)
		for i := range bare {
			pod := fmt.Sprintf("pod-%d", i)
			text, wantPods = text+pod+" ", append(wantPods, pod)
		}
		pods, owners := promises(text + "a/one b c/two")
		if diff := cmp.Diff(append(wantPods, "a", "b", "c"), pods); diff != "" {
			t.Errorf("%d pods without a controller: pods: -want +got:\n%s", bare, diff)
		}
		if diff := cmp.Diff(append(wantOwners, "one", "", "two"), owners); diff != "" {
			t.Errorf("%d pods without a controller: owners: -want +got:\n%s", bare, diff)
		}
		if _, owners := promises(text); owners != nil {
			t.Errorf("%d pods without a controller have the owners %q", bare, owners)
		}
	}
}
