package placement_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestDomainsTwin compares the domains of pods with several topology keys with those among all combinations of values.
func TestDomainsTwin(t *testing.T) {
	tasks := 0
	for seed := range uint64(150) {
		d := newDice(seed)
		d.rich, d.foreign = true, true
		got, want := placement.DomainTwins(d.world().snapshot(nil))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
		tasks += len(got)
	}
	if tasks < 100 {
		t.Errorf("%d tasks have several topology keys, want 100", tasks)
	}
}

// catalogKeys are labels of a catalog with 100 values each.
var catalogKeys = []string{"example.com/line", "example.com/memory", "example.com/disk", "example.com/network"}

// labeled is a world with one pool, whose 800 types have the catalog keys. The pool leaves the labels rack and row
// open. The pods are of one tenant, and kinds of pods of others.
func labeled(others int, tenant ...model.PodSpec) world {
	c := wideCatalog(800)
	for _, key := range catalogKeys {
		c.WellKnown[key] = true
	}
	for i := range c.Types {
		for k, key := range catalogKeys {
			c.Types[i].Requirements = append(c.Types[i].Requirements, in(key, fmt.Sprint((i*(2*k+1)+i/100*k)%100)))
		}
	}
	w := world{pods: tenant, pools: []model.PoolSpec{{Name: "default", UID: "default", Catalog: c, Requirements: []label.Requirement{
		in(model.LabelPool, "default"), {Key: "rack", Operator: label.Exists}, {Key: "row", Operator: label.Exists}}}}}
	for i := range others {
		p := small(fmt.Sprintf("other-%d", i))
		p.Requests[0].Value += int64(i)
		w.pods = append(w.pods, p)
	}
	return w
}

func small(name string) model.PodSpec {
	return model.PodSpec{UID: name, Namespace: "other", Name: name, Created: epoch, Labels: map[string]string{"app": name},
		Requests: []quantity.Amount{{Name: "cpu", Value: 100}, {Name: "memory", Value: 256 * mi}, {Name: "pods", Value: 1}}}
}

// spreadOver returns a pod that is spread over the keys.
func spreadOver(keys ...string) model.PodSpec {
	p := small("tenant")
	own := model.Selector{Namespaces: []string{"other"}, Requirements: []label.Requirement{in("app", "tenant")}}
	for _, key := range keys {
		p.Spread = append(p.Spread, model.Spread{Key: key, MaxSkew: 1, Selector: own})
	}
	return p
}

// apartFrom returns a pod that keeps all pods of all namespaces out of its domains of the keys.
func apartFrom(keys ...string) model.PodSpec {
	p := small("tenant")
	for _, key := range keys {
		p.Terms = append(p.Terms, model.Term{Key: key, Anti: true, Selector: model.Selector{AllNamespaces: true}})
	}
	return p
}

// naming makes the pod name 300 values of each of the keys.
func naming(p model.PodSpec, keys ...string) model.PodSpec {
	var all []label.Requirement
	for _, key := range keys {
		r := label.Requirement{Key: key, Operator: label.In}
		for i := range 300 {
			r.Values = append(r.Values, fmt.Sprintf("v%03d", i))
		}
		all = append(all, r)
	}
	p.Alternatives = [][]label.Requirement{all}
	return p
}

// TestManyDomains checks that topology keys with many values cost bounded memory and work, whether types restrict their
// combinations or not, and that the pods of others get nodes.
func TestManyDomains(t *testing.T) {
	for _, test := range []struct {
		name   string
		tenant model.PodSpec
		refuse plan.Code
		others int
	}{
		{"spread over labels of the catalog", spreadOver(catalogKeys...), plan.OK, 50},
		{"apart from all pods by labels of the catalog", apartFrom(catalogKeys...), plan.OK, 50},
		{"spread over open labels", naming(spreadOver("rack", "row"), "rack", "row"), plan.TooManyDomains, 50},
		{"apart from all pods by open labels", naming(apartFrom("rack", "row"), "rack", "row"), plan.TooManyDomains, 50},
	} {
		t.Run(test.name, func(t *testing.T) {
			second := test.tenant // the constraints of a single pod cannot bind
			second.Name, second.UID = "tenant-2", "tenant-2"
			snap := labeled(test.others, test.tenant, second).snapshot(nil)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p := placement.Schedule(snap, placement.Options{WorkBudget: 20_000_000})
			runtime.ReadMemStats(&after)
			mib := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("work %d, %d MiB allocated", p.Work, mib)
			if p.Work > 20_000_000 || mib > 1024 {
				t.Errorf("work %d and %d MiB, want at most 20,000,000 and 1,024", p.Work, mib)
			}
			for _, refusal := range p.Refused {
				for _, pod := range refusal.Pods {
					if pod.Labels["app"] != "tenant" || refusal.Verdict.Code != test.refuse {
						t.Errorf("%s is refused: %v", pod.Name, refusal.Verdict)
					}
				}
			}
			if want := test.refuse != plan.OK; (len(p.Refused) > 0) != want {
				t.Errorf("refused: %t, want %t", !want, want)
			}
		})
	}
}
