package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
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
	for name, c := range map[string]struct {
		kind, owner, meta, cpu string
		live                   bool
		want                   bool
	}{
		"a ReplicaSet":            {"ReplicaSet", "web", "uid: a", "500m", false, true},
		"a Deployment":            {"Deployment", "web-5d4f6", "uid: a", "500m", false, true},
		"another ReplicaSet":      {"ReplicaSet", "api", "uid: a", "500m", false, false},
		"as much as the template": {"ReplicaSet", "web", "uid: a", "2", false, false},
		"more than the template":  {"ReplicaSet", "web", "uid: a", "3", false, false},
		"resized":                 {"ReplicaSet", "web", resized, "500m", false, true},
		"not resized":             {"ReplicaSet", "web", other, "500m", false, false},
		"set at its creation":     {"ReplicaSet", "web", "annotations: {vpaUpdates: all}", "500m", false, false},
		"live, resized":           {"ReplicaSet", "web", resized, "500m", true, false}, // its siblings say what it gets
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
			o.pods[0] = p
			(&completion{o}).noteTemplates()
			by, known := o.templates["x"]
			if got := known && by.CPU == 2000 && convert.Resized(p.object); got != c.want {
				t.Errorf("the template counts: %t, want %t; %v", got, c.want, o.templates)
			}
		})
	}
}
