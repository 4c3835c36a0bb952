package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/capture"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// This file returns what a form for changes offers: workloads, pools and zones; and reads the pools that come back.

// mostWorkloads is the maximum number of workloads that Workloads returns.
const mostWorkloads = 1000

// Workloads returns the first workloads with pods, as NAMESPACE/KIND/NAME.
func (o *Overview) Workloads() []string {
	seen := map[string]bool{}
	for _, p := range o.w.pods {
		if name := workloadNameOf(p.object); name != "" && !karpv1.EndedPod(p.object) {
			seen[name] = true
		}
	}
	list := slices.Sorted(maps.Keys(seen))
	return list[:min(len(list), mostWorkloads)]
}

// Pools returns the manifests of the pools as YAML by name, without what the API server adds.
func (o *Overview) Pools() map[string]string {
	list := map[string]string{}
	for _, p := range o.w.pools {
		list[p.object.Name] = manifestOf(p.object)
	}
	return list
}

// manifestOf returns a pool as YAML, without what the API server adds and the status.
func manifestOf(pool *karpv1.NodePool) string {
	bare := &karpv1.NodePool{TypeMeta: metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: pool.Name, Annotations: maps.Clone(pool.Annotations)}, Spec: pool.Spec}
	delete(bare.Annotations, corev1.LastAppliedConfigAnnotation)
	var fields map[string]any
	text, err := yaml.Marshal(bare)
	if err == nil {
		err = yaml.Unmarshal(text, &fields)
	}
	if err == nil {
		delete(fields, "status")
		text, err = yaml.Marshal(fields)
	}
	if err != nil {
		return fmt.Sprintf("# %v", err)
	}
	return string(text)
}

// Zones returns the zones of nodes and offerings.
func (o *Overview) Zones() []string {
	var list []string
	for _, n := range o.snap.Nodes {
		list = append(list, n.Labels[model.LabelZone])
	}
	for i := range o.w.sale.Catalogs {
		for _, t := range o.w.sale.Catalogs[i].Types {
			for _, offering := range t.Offerings {
				list = append(list, offering.Zone)
			}
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(zone string) bool { return zone == "" })
}

// replacePools reads the manifests of pools, and puts each in the place of the pool of its name, or beside the others.
// One that says what the pool is already changes nothing.
func (o *Manifests) replacePools(manifests string) error {
	next, named := documentsOf([]byte(manifests)), map[string]bool{}
	for {
		text, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return inputErrorf("the NodePool: %w", err)
		case len(text) == 0 || string(text) == "null":
			continue
		}
		var head objectHead
		if err := json.Unmarshal(text, &head); err != nil || head.Kind != "NodePool" {
			return inputErrorf("the manifest is of kind %q, want a NodePool", head.Kind)
		}
		name := head.Metadata.Name
		if named[name] {
			return inputErrorf("there are two manifests of NodePool %s, want one", name)
		}
		named[name] = true
		if err := o.replacePool(name, text); err != nil {
			return err
		}
	}
}

func (o *Manifests) replacePool(name string, text []byte) error {
	at := slices.IndexFunc(o.pools, func(p sourced[*karpv1.NodePool]) bool { return p.object.Name == name })
	var old *karpv1.NodePool
	if at >= 0 {
		if old = o.pools[at].object; SameManifests(manifestOf(old), string(text)) {
			return nil
		}
		o.pools = slices.Delete(o.pools, at, at+1)
	}
	before := len(o.pools)
	o.read("the change", text)
	if len(o.Problems) > 0 {
		return inputErrorf("%w", errors.Join(o.Problems...))
	}
	if len(o.pools) == before {
		return inputErrorf("the NodePool %s cannot be used", name)
	}
	added := o.pools[before].object
	if old == nil {
		var err error
		o.sale, err = o.withPool(o.sale, added)
		return err
	}
	added.UID = old.UID
	return nil
}

// withPool returns the price list by which a new pool can launch what the pools of its node class can.
func (o *objects) withPool(s *capture.PriceList, pool *karpv1.NodePool) (*capture.PriceList, error) {
	ref := classOf(pool)
	at := slices.IndexFunc(o.pools, func(p sourced[*karpv1.NodePool]) bool { return p.object != pool && classOf(p.object) == ref })
	if at < 0 {
		return nil, inputErrorf("what NodePool %s can launch is not known: spec.template.spec.nodeClassRef: is %s %s, want one that another "+
			"NodePool has", pool.Name, ref.Kind, ref.Name)
	}
	list := *s
	list.Catalogs = slices.Clone(s.Catalogs)
	for i := range list.Catalogs {
		if c := &list.Catalogs[i]; slices.Contains(c.Pools, o.pools[at].object.Name) {
			c.Pools = append(slices.Clip(c.Pools), pool.Name)
		}
	}
	return &list, nil
}

// SameManifests reports whether two texts of manifests say the same: comments, the order of fields and line ends do not
// matter. A text without objects says nothing, and is never the same.
func SameManifests(a, b string) bool {
	one, two := valuesOf(a), valuesOf(b)
	return len(one) > 0 && reflect.DeepEqual(one, two)
}

// valuesOf returns the documents of a text that are not empty, nil for a text that cannot be read.
func valuesOf(text string) []any {
	list := []any{}
	for next := documentsOf([]byte(text)); ; {
		document, err := next()
		var value any
		switch {
		case errors.Is(err, io.EOF):
			return list
		case err != nil || len(document) > 0 && json.Unmarshal(document, &value) != nil:
			return nil
		case value != nil:
			list = append(list, value)
		}
	}
}
