package cloudtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

func testCatalog(t *testing.T, w World) {
	types := catalog(t, w, w.Provider(t))
	if diff := cmp.Diff(types, catalog(t, w, w.Provider(t))); diff != "" {
		t.Errorf("the catalog of a new process differs:\n%s", diff)
	}
	names := map[string]bool{}
	for i := range types {
		if names[types[i].Name] {
			t.Errorf("type %s is listed twice", types[i].Name)
		}
		names[types[i].Name] = true
		checkType(t, &types[i])
	}
}

func checkType(t *testing.T, it *cloud.InstanceType) {
	t.Helper()
	keys := map[string]bool{}
	for _, r := range it.Requirements {
		if keys[r.Key] {
			t.Errorf("type %s has two requirements on %s", it.Name, r.Key)
		}
		keys[r.Key] = true
		if r.Key == corev1.LabelInstanceTypeStable && !slices.Equal(r.Values, []string{it.Name}) {
			t.Errorf("type %s calls itself %v", it.Name, r.Values)
		}
		if !slices.Contains([]string{"In", "NotIn", "Exists", "DoesNotExist"}, r.Operator) {
			t.Errorf("type %s has the operator %q on %s", it.Name, r.Operator, r.Key)
		}
	}
	for _, key := range []string{corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable} {
		if !keys[key] {
			t.Errorf("type %s says nothing about %s", it.Name, key)
		}
	}
	for _, resource := range []string{"cpu", "memory", "pods"} {
		if it.Allocatable()[resource] <= 0 {
			t.Errorf("type %s has no allocatable %s", it.Name, resource)
		}
	}
	type unique struct{ zone, capacityType, reservation, requirements string }
	offerings := map[unique]bool{}
	for _, o := range it.Offerings {
		key := unique{o.Zone, o.CapacityType, o.ReservationID, fmt.Sprint(o.Requirements)}
		if offerings[key] || o.Zone == "" || o.CapacityType == "" || o.Price < 0 {
			t.Errorf("type %s has a bad or repeated offering %+v", it.Name, o)
		}
		offerings[key] = true
	}
}

func testDeclared(t *testing.T, w World) {
	p := w.Provider(t)
	declared := p.Declared()
	if p.Name() == "" || strings.ToLower(p.Name()) != p.Name() {
		t.Errorf("Name is %q, want a lower-case word", p.Name())
	}
	if len(p.NodeClasses()) == 0 {
		t.Error("NodeClasses is empty")
	}
	for _, key := range declared.WellKnown {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			t.Errorf("well-known label %q: %v", key, problems)
		}
	}
	for _, it := range catalog(t, w, p) {
		for _, key := range declared.WellKnown {
			if !speaksOf(it, key) {
				t.Errorf("type %s says nothing about the declared label %s", it.Name, key)
			}
		}
	}
	if diff := cmp.Diff(declared, w.Provider(t).Declared()); diff != "" {
		t.Errorf("a new process declares something else:\n%s", diff)
	}
}

func speaksOf(it cloud.InstanceType, key string) bool {
	about := func(r cloud.Requirement) bool { return r.Key == key }
	return slices.ContainsFunc(it.Requirements, about) || !slices.ContainsFunc(it.Offerings, func(o cloud.Offering) bool {
		return !slices.ContainsFunc(o.Requirements, about)
	})
}

// requirementLists returns requirements for the claims of the suite, derived from the catalog. Every operator occurs.
func requirementLists(types []cloud.InstanceType, wellKnown []string) map[string][]karpv1.Requirement {
	first, last := types[0], types[len(types)-1]
	lists := map[string][]karpv1.Requirement{
		"anything":               nil,
		"one type":               {requirement(corev1.LabelInstanceTypeStable, karpv1.OperatorIn, last.Name)},
		"some types":             {requirement(corev1.LabelInstanceTypeStable, karpv1.OperatorIn, last.Name, first.Name, "no-such-type")},
		"any type but one":       {requirement(corev1.LabelInstanceTypeStable, karpv1.OperatorNotIn, first.Name)},
		"one zone":               {requirement(corev1.LabelTopologyZone, karpv1.OperatorIn, last.Offerings[len(last.Offerings)-1].Zone)},
		"any zone but one":       {requirement(corev1.LabelTopologyZone, karpv1.OperatorNotIn, first.Offerings[0].Zone)},
		"one capacity type":      {requirement(karpv1.LabelCapacityType, karpv1.OperatorIn, first.Offerings[0].CapacityType)},
		"type must exist":        {requirement(corev1.LabelInstanceTypeStable, karpv1.OperatorExists)},
		"label of our own":       {requirement("example.com/team", karpv1.OperatorIn, "a")},
		"label of our own, none": {requirement("example.com/team", karpv1.OperatorDoesNotExist)},
		"two on one key": {
			requirement(corev1.LabelInstanceTypeStable, karpv1.OperatorIn, first.Name, last.Name),
			requirement(corev1.LabelInstanceTypeStable, karpv1.OperatorNotIn, first.Name),
		},
	}
	for _, key := range wellKnown {
		low, high, found := integers(types, key)
		if !found {
			continue
		}
		between := []karpv1.Requirement{
			requirement(key, karpv1.OperatorGt, strconv.FormatInt(low, 10)), requirement(key, karpv1.OperatorLte, strconv.FormatInt(high, 10)),
		}
		lists["greater "+key] = between
		lists["less "+key] = []karpv1.Requirement{
			requirement(key, karpv1.OperatorGte, strconv.FormatInt(low, 10)), requirement(key, karpv1.OperatorLt, strconv.FormatInt(high, 10)),
		}
	}
	return lists
}

// integers returns the range of a label whose values are integers on all types that have it. found is false for other
// labels.
func integers(types []cloud.InstanceType, key string) (low, high int64, found bool) {
	for i := range types {
		for _, r := range types[i].Requirements {
			if r.Key != key || r.Operator != "In" {
				continue
			}
			for _, value := range r.Values {
				n, err := strconv.ParseInt(value, 10, 64)
				if err != nil {
					return 0, 0, false
				}
				if !found {
					low, high, found = n, n, true
				}
				low, high = min(low, n), max(high, n)
			}
		}
	}
	return low, high, found && low < high
}
