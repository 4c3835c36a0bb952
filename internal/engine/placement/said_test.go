package placement_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

const familiesPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default, annotations: {karpenter-go.github.io/node-overhead-price: "PRICE"}}
spec:
  template:
    spec:
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: Exists, minValues: 3}
      - {key: example.com/family, operator: Exists, minValues: 2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    spec:
      containers:
      - {name: c, resources: {requests: {cpu: CPU, memory: 1Gi}}}
`

// TestClaimsSayMinValues: a claim has the pool's minValues on every key, so that the launch respects them. Where they
// were relaxed it has the number of values left, because the API refuses a list of values shorter than its minValues.
func TestClaimsSayMinValues(t *testing.T) {
	types := []byte("a cpu=2 memory=8Gi price=0.1 label:example.com/family=x\nb cpu=4 memory=16Gi price=0.2 label:example.com/family=x\n" +
		"c cpu=8 memory=32Gi price=0.4 label:example.com/family=y\nd cpu=16 memory=64Gi price=0.8 label:example.com/family=y\n")
	for _, test := range []struct {
		name, cpu string
		relax     bool
		want      map[string]int // minValues by key, nil for no claim
		relaxed   bool
	}{
		{"enough of both", "1", false, map[string]int{"node.kubernetes.io/instance-type": 3, "example.com/family": 2}, false},
		{"too few, strict", "5", false, nil, false},
		{"too few, relaxed", "5", true, map[string]int{"node.kubernetes.io/instance-type": 2, "example.com/family": 1}, true},
		{"enough, and it might be relaxed", "1", true, map[string]int{"node.kubernetes.io/instance-type": 3, "example.com/family": 2}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects := replaced(familiesPool, "CPU", test.cpu, "PRICE", "0.005")
			snap := readWorld(t, types, objects).snapshot(nil)
			p := placement.Schedule(snap, placement.Options{RelaxMinValues: test.relax})
			check(t, snap, p)
			if test.want == nil {
				if len(p.Claims) > 0 {
					t.Errorf("%d claims, want none", len(p.Claims))
				}
				return
			}
			if len(p.Claims) != 1 || p.Claims[0].MinValuesRelaxed != test.relaxed {
				t.Fatalf("claims %+v, want one, relaxed: %t", p.Claims, test.relaxed)
			}
			got := map[string]int{}
			for _, r := range p.Claims[0].Requirements {
				if r.MinValues > 0 {
					got[r.Key] = r.MinValues
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("minValues (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNodePriceOfPool: where the price of a node itself is high, two pods share one that costs more than two.
func TestNodePriceOfPool(t *testing.T) {
	types := []byte("small cpu=2 memory=8Gi price=0.10\nlarge cpu=4 memory=16Gi price=0.25\n")
	const objects = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default, annotations: {karpenter-go.github.io/node-overhead-price: "PRICE"}}
spec: {template: {spec: {requirements: []}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    spec:
      containers:
      - {name: c, resources: {requests: {cpu: 1500m, memory: 1Gi}}}
`
	for _, test := range []struct {
		price string
		run   int64
		want  int
	}{{"0.005", 0, 2}, {"0.1", 0, 1}, {"0", 1_000_000_000, 2}} {
		snap := readWorld(t, types, replaced(objects, "PRICE", test.price)).snapshot(nil)
		if p := placement.Schedule(snap, placement.Options{NodePrice: test.run}); len(p.Claims) != test.want {
			t.Errorf("a node costs %s more: %d claims, want %d", test.price, len(p.Claims), test.want)
		}
	}
}

func replaced(text string, pairs ...string) []byte {
	return []byte(strings.NewReplacer(pairs...).Replace(text))
}
