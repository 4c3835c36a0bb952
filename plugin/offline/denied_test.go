package offline

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/karpenter-go/karpenter/api"
	"github.com/karpenter-go/karpenter/plugin/viewer"
)

// TestViewerReads checks that the role for viewers allows everything that is listed, and that each of these kinds is
// either required or has an effect.
func TestViewerReads(t *testing.T) {
	scheme, err := api.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	required := []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "nodes", "pods"}
	for _, list := range liveLists() {
		kinds, _, err := scheme.ObjectKinds(list)
		if err != nil {
			t.Fatal(err)
		}
		kind := schema.GroupKind{Group: kinds[0].Group, Kind: strings.TrimSuffix(kinds[0].Kind, "List")}
		mapping, err := liveKinds().RESTMapping(kind, kinds[0].Version)
		if err != nil {
			t.Fatal(err)
		}
		resource := mapping.Resource.GroupResource().String()
		if !slices.Contains(viewer.Resources(), resource) {
			t.Errorf("the role does not allow to list %s", resource)
		}
		if (effects[resource] == "") != slices.Contains(required, resource) {
			t.Errorf("%s is neither required nor has it an effect, or both", resource)
		}
	}
	for resource := range effects {
		if !slices.Contains(viewer.Resources(), resource) {
			t.Errorf("the role does not allow to list %s", resource)
		}
	}
}
