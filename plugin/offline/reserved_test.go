package offline

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReservationsOfFiles checks that a reservation of --instance-types counts less what nodes and claims use of it,
// and not at all from its end on.
func TestReservationsOfFiles(t *testing.T) {
	types := filepath.Join(t.TempDir(), "types.json")
	const text = `{"instanceTypes": [{"name": "big.4", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "4", "memory": "32Gi", "pods": "64"}, "offerings": [
		{"zone": "a", "capacityType": "on-demand", "price": 0.2}, {"zone": "b", "capacityType": "on-demand", "price": 0.2},
		{"zone": "b", "capacityType": "reserved", "price": 0.0000001, "reservationID": "cr-big", "reservationCount": 2},
		{"zone": "a", "capacityType": "reserved", "price": 0.0000001, "reservationID": "cr-old", "reservationCount": 5, "reservationEnd": "2026-01-01T00:00:00Z"}]}]}`
	if err := os.WriteFile(types, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	pool := strings.Replace(anyPool, "[on-demand]", "[reserved, on-demand]", 1)
	for i := range 4 {
		pool += fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: web-%d}\nspec: {containers: [{name: c, image: i, resources: "+
			"{requests: {cpu: 3}}}]}\n", i)
	}
	const labels = "labels: {karpenter.sh/nodepool: p, node.kubernetes.io/instance-type: big.4, topology.kubernetes.io/zone: b, " +
		"karpenter.sh/capacity-type: reserved, karpenter.kwok.sh/reservation-id: cr-big}"
	node := "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1, " + labels + "}\nspec: {unschedulable: true}\n"
	claim := "---\napiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: c1, " + labels + "}\n" +
		"spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: d}, requirements: []}\nstatus: {providerID: 'kwok://c1'}\n"
	joined := strings.Replace(node, "unschedulable: true", "unschedulable: true, providerID: 'kwok://c1'", 1)
	for name, c := range map[string]struct {
		objects, now string
		want         map[string]int
	}{
		"after the end of one":    {"", "2026-06-01T00:00:00Z", map[string]int{"b reserved": 2, "on-demand": 2}},
		"at its end":              {"", "2026-01-01T00:00:00Z", map[string]int{"b reserved": 2, "on-demand": 2}},
		"before its end":          {"", "2025-12-31T23:59:59Z", map[string]int{"reserved": 4}},
		"a node in it":            {node, "2026-06-01T00:00:00Z", map[string]int{"b reserved": 1, "on-demand": 3}},
		"a claim with its node":   {claim + joined, "2026-06-01T00:00:00Z", map[string]int{"b reserved": 1, "on-demand": 3}},
		"a claim without a node":  {claim, "2026-06-01T00:00:00Z", map[string]int{"b reserved": 1, "on-demand": 3}},
		"two machines, all of it": {claim + node, "2026-06-01T00:00:00Z", map[string]int{"on-demand": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, c.now)
			if err != nil {
				t.Fatal(err)
			}
			o, err := newManifests()
			if err != nil {
				t.Fatal(err)
			}
			o.readPath("-", strings.NewReader(pool+c.objects))
			if err := o.typesOn(types); err != nil {
				t.Fatal(err)
			}
			p := DefaultPolicy()
			err = o.complete(now, p)
			if err != nil || len(o.Problems) > 0 {
				t.Fatal(err, o.Problems)
			}
			got := map[string]int{}
			for _, n := range o.Decide(&p, 1).Answer().Nodes {
				at := n.CapacityType
				if at == "reserved" && len(c.want) > 0 && c.want["reserved"] == 0 {
					at = n.Zone + " " + at
				}
				got[at]++
			}
			if c.want["reserved"] == 4 && got["reserved"] < 4 {
				t.Errorf("%v, want all in reservations", got)
			} else if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("new nodes (-want +got):\n%s", diff)
			}
		})
	}
}
