package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestSuccessorsFromTemplates checks for which pods the template of their workload counts where they move: for those
// that were resized, and in manifests, which do not say so, for those that request less than it.
func TestSuccessorsFromTemplates(t *testing.T) {
	const workload = `
apiVersion: apps/v1
kind: KIND
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: a, resources: {requests: {cpu: "2", memory: 1Gi}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-5d4f6-a, namespace: default, labels: {app: web, pod-template-hash: 5d4f6}, META,
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: NAME, uid: x, controller: true}]}
spec: {nodeName: node-1, containers: [{name: a, image: a, resources: {requests: {cpu: CPU, memory: 2Gi}}}]}
`
	const resized = "managedFields: [{manager: vpa, operation: Update, subresource: resize}]"
	const other = "managedFields: [{manager: kubectl, operation: Update}]"
	larger := []quantity.Amount{{Name: "cpu", Value: 2000}, {Name: "memory", Value: 2 << 30}, {Name: "pods", Value: 1}}
	for name, c := range map[string]struct {
		kind, owner, meta, cpu string
		live                   bool
		want                   []quantity.Amount
	}{
		"a ReplicaSet":            {"ReplicaSet", "web", "uid: a", "500m", false, larger},
		"a Deployment":            {"Deployment", "web-5d4f6", "uid: a", "500m", false, larger},
		"another ReplicaSet":      {"ReplicaSet", "api", "uid: a", "500m", false, nil},
		"as much as the template": {"ReplicaSet", "web", "uid: a", "2", false, nil},
		"more than the template":  {"ReplicaSet", "web", "uid: a", "3", false, nil},
		"resized":                 {"ReplicaSet", "web", resized, "500m", false, larger},
		"not resized":             {"ReplicaSet", "web", other, "500m", false, nil},
		"set at its creation":     {"ReplicaSet", "web", "annotations: {vpaUpdates: all}", "500m", false, nil},
		"live, resized":           {"ReplicaSet", "web", resized, "500m", true, larger},
		"live, not resized":       {"ReplicaSet", "web", "uid: a", "500m", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := newManifests()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "objects.yaml")
			text := strings.NewReplacer("KIND", c.kind, "NAME", c.owner, "META", c.meta, "CPU", c.cpu).Replace(workload)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if o.readFile(path); len(o.Problems) > 0 || len(o.pods) != 1 {
				t.Fatalf("problems %v, %d pods", o.Problems, len(o.pods))
			}
			p := o.pods[0]
			p.live = c.live
			spec, _ := convert.Pod(p.object, &convert.Vocabulary{}, nil)
			o.owners().succeed(p, &spec)
			if diff := cmp.Diff(c.want, spec.Successor); diff != "" {
				t.Errorf("requests of the successor (-want +got):\n%s", diff)
			}
		})
	}
}
