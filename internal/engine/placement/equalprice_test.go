package placement_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

// TestEqualPrices checks that of types of one price, such as that of machines that are paid for already, a claim lists
// the smallest that holds its pods first, and none that is larger where limits count it. More pods still share a large
// node.
func TestEqualPrices(t *testing.T) {
	const world = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default, annotations: {karpenter-go.github.io/node-overhead-price: "0.005"}}
spec: LIMITS
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: COUNT
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: c, resources: {requests: {cpu: 500m, memory: 1Gi, EXTRA}}}
`
	const equal = "x-128 cpu=128 memory=512Gi price=PRICE\nx-16 cpu=16 memory=64Gi price=PRICE\nx-2 cpu=2 memory=8Gi price=PRICE\n" +
		"x-4 cpu=4 memory=16Gi price=PRICE\nx-gpu cpu=2 memory=8Gi price=PRICE gpu=1\n"
	// Of these, the one with less memory has more CPUs.
	const crossed = "w-64 cpu=64 memory=36Gi price=PRICE\nr-48 cpu=48 memory=96Gi price=PRICE\n"
	for name, c := range map[string]struct {
		limits, price, count, extra string
		want                        []string
	}{
		"free":                    {"{}", "0", "3", "", []string{"x-2 x-4 x-16 x-128"}},
		"not free":                {"{}", "0.1", "3", "", []string{"x-2 x-4 x-16 x-128"}},
		"free, many pods":         {"{}", "0", "30", "", []string{"x-16 x-128"}},
		"free, a far limit":       {"{limits: {cpu: 1000}}", "0", "3", "", []string{"x-2"}},
		"free, a near limit":      {"{limits: {cpu: 2}}", "0", "3", "", []string{"x-2"}},
		"not free, a far limit":   {"{limits: {cpu: 1000}}", "0.1", "3", "", []string{"x-2"}},
		"free, many, a far limit": {"{limits: {cpu: 1000}}", "0", "30", "", []string{"x-16"}},
		"free, memory decides":    {"{limits: {cpu: 1000}}", "0", "12", "", []string{"x-16"}},
		"free, a limit on nodes":  {"{limits: {nodes: 1}}", "0", "3", "", []string{"x-2 x-4 x-16 x-128"}},
		"a limit on memory":       {"{limits: {memory: 40Gi}}", "0.3", "30", "", []string{"w-64"}},
		"with a device":           {"{}", "0", "1", "example.com/gpu: 1", []string{"x-gpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			types := []byte(strings.ReplaceAll(map[bool]string{false: equal, true: crossed}[strings.Contains(c.limits,
				"memory")], "PRICE", c.price))
			snap := readWorld(t, types, replaced(world, "LIMITS", c.limits, "COUNT", c.count, "EXTRA", c.extra)).snapshot(nil)
			p := placement.Schedule(snap, placement.Options{})
			check(t, snap, p)
			var got []string
			for i := range p.Claims {
				got = append(got, strings.Join(p.Claims[i].Types(), " "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("types of the claims (-want +got):\n%s", diff)
			}
		})
	}
}
