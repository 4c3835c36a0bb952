package launch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// sale returns an available offering.
func sale(zone, capacityType string, price float64) cloud.Offering {
	return cloud.Offering{Zone: zone, CapacityType: capacityType, Price: price, Available: true}
}

func typed(name string, offerings ...cloud.Offering) cloud.InstanceType {
	return cloud.InstanceType{Name: name, Offerings: offerings, Capacity: map[string]int64{"cpu": 2000, "pods": 29},
		Requirements: []cloud.Requirement{{Key: corev1.LabelInstanceTypeStable, Operator: "In", Values: []string{name}}}}
}

func special(t cloud.InstanceType) cloud.InstanceType {
	t.Special = true
	return t
}

func claimOf(requirements ...karpv1.Requirement) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}, Spec: karpv1.NodeClaimSpec{Requirements: requirements}}
}

func TestSelect(t *testing.T) {
	spotOnly := oneOf(karpv1.LabelCapacityType, "spot")
	one, two := 1, 2
	zones := karpv1.Requirement{Key: corev1.LabelTopologyZone, Operator: "Exists", MinValues: &one}
	capacities := karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{"spot", "on-demand"}, MinValues: &two}
	sizes := karpv1.Requirement{Key: corev1.LabelInstanceTypeStable, Operator: "Exists", MinValues: &two}
	gone := cloud.Offering{Zone: "a", CapacityType: "spot", Price: 0.01}
	reserved := sale("a", "reserved", 0)
	for _, test := range []struct {
		name  string
		claim *karpv1.NodeClaim
		types []cloud.InstanceType
		want  string // capacity type, then ways; or a part of the error
	}{
		{"spot before on demand", claimOf(), []cloud.InstanceType{typed("x", sale("a", "on-demand", 2), sale("b", "spot", 1),
			sale("a", "spot", 1))}, "spot default: x/a x/b"},
		{"on demand where spot is not allowed", claimOf(oneOf(karpv1.LabelCapacityType, "on-demand")),
			[]cloud.InstanceType{typed("x", sale("a", "on-demand", 2), sale("a", "spot", 1))}, "on-demand default: x/a"},
		{"on demand where spot is gone", claimOf(), []cloud.InstanceType{typed("x", sale("a", "on-demand", 2), gone)}, "on-demand default: x/a"},
		{"spot dearer than the cheapest on demand", claimOf(),
			[]cloud.InstanceType{typed("x", sale("a", "on-demand", 2)), typed("y", sale("a", "spot", 3), sale("b", "spot", 1))},
			"spot default: y/b"},
		{"only spot dearer than on demand", claimOf(),
			[]cloud.InstanceType{typed("x", sale("a", "on-demand", 2)), typed("y", sale("a", "spot", 3))}, "on-demand default: x/a"},
		{"dear spot where nothing else is allowed", claimOf(spotOnly),
			[]cloud.InstanceType{typed("x", sale("a", "on-demand", 2)), typed("y", sale("a", "spot", 3))}, "spot default: y/a"},
		{"special types give way", claimOf(), []cloud.InstanceType{special(typed("g", sale("a", "spot", 1))),
			typed("x", sale("a", "spot", 2))}, "spot default: x/a"},
		{"special types where nothing else is left", claimOf(), []cloud.InstanceType{special(typed("g", sale("a", "spot", 1)))},
			"spot default: g/a"},
		{"minValues keep what filters would drop", claimOf(sizes),
			[]cloud.InstanceType{special(typed("g", sale("a", "spot", 5))), typed("x", sale("a", "spot", 2), sale("a", "on-demand", 3))},
			"spot default: x/a g/a"},
		{"minValues that cannot be met", claimOf(sizes), []cloud.InstanceType{typed("x", sale("a", "spot", 2))}, "minValues"},
		{"minValues of one change nothing", claimOf(zones), []cloud.InstanceType{special(typed("g", sale("a", "spot", 1))),
			typed("x", sale("a", "spot", 2))}, "spot default: x/a"},
		{"two capacity types, of which one is requested", claimOf(capacities),
			[]cloud.InstanceType{typed("x", sale("a", "spot", 4), sale("a", "on-demand", 3))}, "on-demand default: x/a"},
		{"two capacity types, of which one is gone", claimOf(capacities), []cloud.InstanceType{typed("x", gone, sale("a",
			"on-demand", 3))}, "minValues"},
		{"reserved before others", claimOf(), []cloud.InstanceType{typed("x", reserved, sale("a", "on-demand", 2))}, "reserved default: x/a"},
		{"reserved and not allowed", claimOf(oneOf(karpv1.LabelCapacityType, "on-demand")),
			[]cloud.InstanceType{typed("x", reserved, sale("a", "on-demand", 2))}, "on-demand default: x/a"},
		{"dedicated tenancy", claimOf(oneOf("karpenter.k8s.aws/instance-tenancy", "dedicated")),
			[]cloud.InstanceType{typed("x", sale("a", "on-demand", 2))}, "on-demand dedicated: x/a"},
		{"either tenancy", claimOf(oneOf("karpenter.k8s.aws/instance-tenancy", "dedicated", "default")),
			[]cloud.InstanceType{typed("x", sale("a", "on-demand", 2))}, "on-demand default: x/a"},
		{"nothing matches", claimOf(oneOf(corev1.LabelInstanceTypeStable, "z")), []cloud.InstanceType{typed("x", sale("a", "spot", 2))},
			"no offering of the 1 instance types"},
		{"all are gone", claimOf(), []cloud.InstanceType{typed("x", gone)}, "all 1 offerings that the claim allows are unavailable: x/a/spot"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := Select(test.claim, test.types)
			var insufficient *cloud.InsufficientCapacityError
			if err != nil {
				if !errors.As(err, &insufficient) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error is %v, want insufficient capacity: %s", err, test.want)
				}
				return
			}
			got := s.CapacityType + " " + s.Tenancy + ":"
			for _, w := range s.Ways {
				got += " " + w.Type.Name + "/" + w.Offering.Zone
			}
			if got != test.want {
				t.Errorf("selected %s, want %s", got, test.want)
			}
		})
	}
}

// A request has at most 60 types and 300 ways. The cheapest are kept, but minValues take precedence.
func TestSelectFewer(t *testing.T) {
	var types []cloud.InstanceType
	for i := range 80 {
		var offerings []cloud.Offering
		for zone := range 6 {
			offerings = append(offerings, sale(fmt.Sprint("zone-", zone), "spot", float64(i+1)+float64(zone)/100))
		}
		made := typed(fmt.Sprintf("t%02d", i), offerings...)
		family := "cheap"
		if i == 79 {
			family = "dear"
		}
		made.Requirements = append(made.Requirements, cloud.Requirement{Key: "family", Operator: "In", Values: []string{family}})
		types = append(types, made)
	}
	two := 2
	for _, test := range []struct {
		name  string
		claim *karpv1.NodeClaim
		last  string
	}{
		{"cheapest", claimOf(), "t59"},
		{"minValues", claimOf(karpv1.Requirement{Key: "family", Operator: "Exists", MinValues: &two}), "t79"},
	} {
		s, err := Select(test.claim, types)
		if err != nil {
			t.Fatal(err)
		}
		chosen := map[string]bool{}
		for _, w := range s.Ways {
			chosen[w.Type.Name] = true
		}
		switch {
		case len(chosen) != 60:
			t.Errorf("%s: len(chosen) is %v, want 60", test.name, len(chosen))
		case len(s.Ways) != 300:
			t.Errorf("%s: len(s.Ways) is %v, want 300", test.name, len(s.Ways))
		case !chosen["t00"]:
			t.Errorf(`%s: chosen["t00"] is false`, test.name)
		case s.Ways[len(s.Ways)-1].Type.Name != test.last:
			t.Errorf("%s: s.Ways[len(s.Ways)-1].Type.Name is %v, want %v, types in %d", test.name, s.Ways[len(s.Ways)-1].Type.Name,
				test.last, len(s.Ways))
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, p := range []indexSet{{0}, {7}, {8}, {0, 2, 3}, {1, 500, 999}} {
		text := p.text()
		if diff := cmp.Diff(p, indexSetOf(text)); diff != "" || len(text) > 167 {
			t.Errorf("%v as %q (-want +got):\n%s", p, text, diff)
		}
	}
	all := make(indexSet, 1000)
	for i := range all {
		all[i] = i
	}
	if n := len(all.text()); n > 256 {
		t.Errorf("1,000 places are a tag of %d characters, EC2 accepts 256", n)
	}
	if indexSetOf("") != nil || indexSetOf("not base64!") != nil {
		t.Error("a text without places does not mean all")
	}
	e := Record{Batch: "b", Attempt: 1, Size: 3, Index: 2}
	entries := map[string]Record{"x": {Batch: "b", Attempt: 1, Size: 3}, "other": {Batch: "b", Attempt: 2, Size: 3, Index: 1}}
	if diff := cmp.Diff(indexSet{0, 2}, indexesOf(entries, e)); diff != "" {
		t.Errorf("places of the claims that exist (-want +got):\n%s", diff)
	}
	entries["y"] = Record{Batch: "b", Attempt: 1, Size: 3, Index: 1}
	if p := indexesOf(entries, e); p != nil {
		t.Errorf("all claims exist: places %v, want nil", p)
	}
}

func TestOutcomeAt(t *testing.T) {
	list := []launched{{id: "i-1"}, {id: "i-2", claim: "tagged"}, {id: "i-3"}}
	for _, test := range []struct {
		name   string
		places indexSet
		place  int
		claim  string
		want   string
	}{
		{"by order", nil, 2, "c", "i-3"},
		{"by tag", nil, 0, "tagged", "i-2"},
		{"another's by tag", nil, 1, "c", ""},
		{"too few", nil, 3, "c", ""},
		{"among some", indexSet{4, 5, 9}, 9, "c", "i-3"},
		{"not among them", indexSet{4, 5, 9}, 0, "c", ""},
	} {
		got := ""
		if b := (&outcome{instances: list, indexes: test.places}).instanceFor(test.place, test.claim); b != nil {
			got = b.id
		}
		if got != test.want {
			t.Errorf("%s: instance %q, want %q", test.name, got, test.want)
		}
	}
}
