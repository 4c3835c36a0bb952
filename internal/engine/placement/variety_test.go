package placement_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

const variedPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: varied}
spec:
  weight: 10
  template:
    spec:
      requirements:
      - {key: topology.kubernetes.io/zone, operator: In, values: [a, b], minValues: ZONES}
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand], minValues: TYPES}
      - {key: example.com/tenancy, operator: Exists, minValues: TENANCIES}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      POD
      containers:
      - {name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}
`

const plainPool = `
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: plain}
spec: {template: {spec: {requirements: []}}}
`

// TestMinValuesOfClaims checks that minValues count what the claim may be launched as: the zones and capacity types of
// its available offerings, and the values of its types that its pods allow. Strict: the pod is refused, or another pool
// takes it. BestEffort: the minimum is lowered, and the claim is marked.
func TestMinValuesOfClaims(t *testing.T) {
	const spread = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, " +
		"whenUnsatisfiable: WHEN, labelSelector: {matchLabels: {app: web}}}]"
	const prefer = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, " +
		"preference: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [b]}]}}]}}"
	for name, c := range map[string]struct {
		zones, types, tenancies int
		pod, out                string
		relax                   bool
		alone, beside           []string // pool and minValues of the claims, without and with another pool
	}{
		"free":        {2, 2, 2, "", "", false, []string{"varied 2 2 2"}, []string{"varied 2 2 2"}},
		"pinned zone": {2, 2, 1, "nodeSelector: {topology.kubernetes.io/zone: b}", "", false, nil, []string{"plain"}},
		"pinned zone, one": {1, 2, 1, "nodeSelector: {topology.kubernetes.io/zone: b}", "", false,
			[]string{"varied 1 2 1"}, []string{"varied 1 2 1"}},
		"pinned zone, relaxed": {2, 2, 1, "nodeSelector: {topology.kubernetes.io/zone: b}", "", true,
			[]string{"varied 1 2 1 relaxed"}, []string{"varied 1 2 1 relaxed"}},
		"pinned capacity": {2, 2, 1, "nodeSelector: {karpenter.sh/capacity-type: spot}", "", false, nil, []string{"plain"}},
		"pinned capacity, one": {2, 1, 1, "nodeSelector: {karpenter.sh/capacity-type: spot}", "", false,
			[]string{"varied 2 1 1"}, []string{"varied 2 1 1"}},
		"pinned capacity, relax": {2, 2, 1, "nodeSelector: {karpenter.sh/capacity-type: spot}", "", true,
			[]string{"varied 2 1 1 relaxed"}, []string{"varied 2 1 1 relaxed"}},
		"pinned tenancy": {1, 1, 2, "nodeSelector: {example.com/tenancy: x}", "", false, nil, []string{"plain"}},
		"pinned tenancy, one": {1, 1, 1, "nodeSelector: {example.com/tenancy: x}", "", false, []string{"varied 1 1 1"},
			[]string{"varied 1 1 1"}},
		"zone b unavailable":    {2, 1, 1, "", " out=b/spot,b/on-demand", false, nil, []string{"plain"}},
		"zone b on-demand only": {2, 2, 1, "", " out=b/spot", false, []string{"varied 2 2 1"}, []string{"varied 2 2 1"}},
		"spot unavailable":      {1, 2, 1, "", " out=a/spot,b/spot,c/spot", false, nil, []string{"plain"}},
		"zone wished":           {2, 2, 2, prefer, "", false, []string{"varied 2 2 2"}, []string{"plain"}},
		"spread wished": {2, 2, 2, strings.Replace(spread, "WHEN", "ScheduleAnyway", 1), "", false,
			[]string{"varied 2 2 2"}, []string{"varied 2 2 2"}}, // two nodes cost too much
		"spread required": {2, 2, 2, strings.Replace(spread, "WHEN", "DoNotSchedule", 1), "", false, nil,
			[]string{"plain", "plain"}},
		"spread, one": {1, 2, 2, strings.Replace(spread, "WHEN", "DoNotSchedule", 1), "", false,
			[]string{"varied 1 2 2", "varied 1 2 2"}, []string{"varied 1 2 2", "varied 1 2 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			types := []byte("m cpu=4 memory=16Gi price=0.2 spot=0.06 zones=a,b,c label:example.com/tenancy=x,y" + c.out + "\n" +
				"n cpu=8 memory=32Gi price=0.4 spot=0.12 zones=a,b,c label:example.com/tenancy=x,y" + c.out + "\n")
			for _, also := range []string{"", plainPool} {
				objects := replaced(variedPool+also, "ZONES", strconv.Itoa(c.zones), "TYPES", strconv.Itoa(c.types),
					"TENANCIES", strconv.Itoa(c.tenancies), "POD", c.pod)
				snap := readWorld(t, types, objects).snapshot(nil)
				p := placement.Schedule(snap, placement.Options{RelaxMinValues: c.relax})
				check(t, snap, p)
				var got []string
				for i := range p.Claims {
					claim, text := &p.Claims[i], p.Claims[i].Pool
					for _, key := range []string{model.LabelZone, model.LabelCapacityType, "example.com/tenancy"} {
						for _, r := range claim.Requirements {
							if r.Key == key && r.MinValues > 0 {
								text += " " + strconv.Itoa(r.MinValues)
							}
						}
					}
					if claim.MinValuesRelaxed {
						text += " relaxed"
					}
					got = append(got, text)
				}
				want := map[bool][]string{false: c.alone, true: c.beside}[also != ""]
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("claims%s (-want +got):\n%s", map[bool]string{true: " beside another pool"}[also != ""], diff)
				}
			}
		})
	}
}
